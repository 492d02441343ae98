"""The line that changes on a terminal while a run is under way; where nobody watches, it is not loaded."""

from __future__ import annotations

from time import monotonic

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text


class _Rate(ProgressColumn):
    """Checks a second since the present step began; nothing where it checks nothing."""

    def render(self, task: Task) -> Text:
        seconds = monotonic() - task.fields.get("since", 0.0)
        if not task.completed or seconds <= 0:
            return Text("")
        return Text(f"{task.completed / seconds:,.1f} checks/s", style="dim")


def changing_line(to: Console) -> Bars:
    """One line: what is done, for how long, how fast; what is too long for the terminal is cut, and gone at the end."""
    what = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
    )
    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=len("0:00:00"))),
        what,
        _Rate(table_column=Column(no_wrap=True)),
    )
    return Bars(*columns, console=to, refresh_per_second=8, transient=True, redirect_stdout=False, expand=True)
