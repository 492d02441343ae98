"""Charts as files: the name is checked before anything is computed, the file written whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqldeid.cli.files import head_of, refuse_over_others
from sqldeid.cli.targets import check_output, is_stdout, write_bytes
from sqldeid.errors import JobError
from sqldeid.report.charts import format_of, render, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plot(option: str, target: str | None) -> None:
    """Refuse what cannot be drawn or written.

    Raises
    ------
    JobError
        If the name ends in no known format, the folder is missing or protected, another's file stands there, or
        Matplotlib is not installed.
    """
    if target is None:
        return
    if is_stdout(target):
        raise JobError.at(option, "name a file; standard output is for text")
    format_of(target, option)
    check_output(option, target)
    refuse_over_others(option, target, "chart", _is_chart)
    require(option)


def _is_chart(path: Path) -> bool:
    """Whether a file is a picture that we drew: it says so at its head."""
    head = head_of(path)
    return head.startswith((b"\x89PNG", b"<?xml")) and b"sqldeid" in head


def write_plot(option: str, target: str, figure: Figure) -> None:
    """Write a chart, which is for the data holder: a new one is for its owner alone.

    Raises
    ------
    EngineError
        If it cannot be written.
    """
    write_bytes(target, render(figure, format_of(target, option)))
