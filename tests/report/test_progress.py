"""The line that tells how far a run is: on a terminal only, with the time it takes and its rate."""

from __future__ import annotations

import io
import re
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from sqldeid.report.progress import Progress


def shown(*, terminal: bool, live: bool = True, steps: bool = False, width: int = 100) -> str:
    """What a run writes to standard error."""
    file = io.StringIO()
    to = Console(file=file, force_terminal=terminal, width=width, color_system=None)
    with Progress(to, live=live, steps=steps) as progress:
        progress.step("a[b]release", "search")
        for checks in (1, 30):
            progress.search(SimpleNamespace(best=0.5, bound=0.25, checks=checks, open=7))  # type: ignore[arg-type]
            time.sleep(0.3)
        progress.step("a[b]release", "stage")
        time.sleep(0.3)
    return file.getvalue()


def test_a_terminal_sees_step_time_and_rate() -> None:
    text = shown(terminal=True)
    assert "a[b]release: search: 30 checks, best 0.5, gap 0.25, 7 open" in text
    assert re.search(r"0:00:0\d", text) and re.search(r"\d checks/s", text)
    last = text.rsplit("stage", 1)[1]
    assert "checks/s" not in last, "a step that checks nothing has no rate"


@pytest.mark.parametrize("width", [20, 40])
def test_the_line_stays_one_line(width: int) -> None:
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown(terminal=True, width=width))
    assert all(len(line) <= width for line in re.split(r"[\r\n]", text))
    assert "\n\n" not in text


def test_elsewhere_and_with_quiet_nothing_is_written() -> None:
    assert shown(terminal=False) == ""
    assert shown(terminal=True, live=False) == ""


def test_verbose_prints_a_line_a_step() -> None:
    lines = shown(terminal=False, live=False, steps=True).splitlines()
    assert [re.sub(r" *\d+\.\d\d s  ", "", line) for line in lines] == ["a[b]release: search", "a[b]release: stage"]


def test_time_and_rate_stay_where_the_terminal_is_narrow() -> None:
    text = shown(terminal=True, width=60)
    text = shown(terminal=True, width=60)
    assert re.search(r"0:00:00 a\[b\]release: search: 30 checks, .*… [\d,.]+ checks/s", text)
