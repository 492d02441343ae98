"""Show the progress of a run on standard error: one changing line on a terminal, or one line for each step."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.text import Text

from sqldeid.report.text import count, plain

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class Standing(Protocol):
    """Where a search stands: best loss and bound in the published scale, and what it took so far."""

    @property
    def best(self) -> float | None:
        """Least loss known; None while no admissible node is."""

    @property
    def bound(self) -> float | None:
        """What no node can be below."""

    @property
    def checks(self) -> int:
        """Nodes checked."""

    @property
    def open(self) -> int | None:
        """Nodes that may still win."""


class Progress:
    """A context manager with the two callbacks of a `Listener`.

    Parameters
    ----------
    to
        The console of standard error.
    live
        Whether a line that changes is wanted; it is shown on a terminal only.
    steps
        Whether each step is printed as a line of its own.
    """

    def __init__(self, to: Console, *, live: bool, steps: bool) -> None:
        self._to = to
        self._steps = steps
        self._line: Bars | None = None
        self._task: TaskID | None = None
        if live and to.is_terminal:
            from sqldeid.report.changing_line import changing_line

            self._line = changing_line(to)
            self._task = self._line.add_task("opening the database", total=None)
        self._started = monotonic()
        self._now = ""

    def __enter__(self) -> Progress:
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._line is not None:
            self._line.stop()

    def step(self, release: str, step: str) -> None:
        """A step begins."""
        self._now = f"{plain(release)}: {step}"
        if self._steps:
            self._to.print(Text(f"{monotonic() - self._started:7.2f} s  {self._now}", style="dim"))
        if self._line is not None and self._task is not None:
            self._line.update(self._task, description=self._now, completed=0, since=monotonic())

    def search(self, standing: Standing) -> None:
        """The search asked another statement."""
        if self._line is not None and self._task is not None:
            text = ", ".join([f"{self._now}: {count(standing.checks, 'check')}", *_parts(standing)])
            self._line.update(self._task, description=text, completed=standing.checks)


def _parts(standing: Standing) -> list[str]:
    parts = []
    if standing.best is not None:
        bound = standing.bound or 0.0
        parts += [f"best {standing.best:.4g}", f"gap {max(standing.best - bound, 0.0):.4g}"]
    elif standing.bound:
        parts.append(f"bound {standing.bound:.4g}")
    if standing.open is not None:
        parts.append(f"{standing.open:,} open")
    return parts
