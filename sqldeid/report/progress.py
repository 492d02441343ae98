"""How far a run is, on standard error: a line that changes on a terminal, one line a step where steps are asked for."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.status import Status
from rich.text import Text

from sqldeid.report.text import count, plain

SPINNER = 3
"""Columns that the spinner takes, with the one that some terminals keep free."""


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
        self._status = (
            Status("opening the database", console=to, refresh_per_second=8) if live and to.is_terminal else None
        )
        self._started = monotonic()
        self._now = ""

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def step(self, release: str, step: str) -> None:
        """A step begins."""
        self._now = f"{plain(release)}: {step}"
        if self._steps:
            self._to.print(Text(f"{monotonic() - self._started:7.2f} s  {self._now}", style="dim"))
        self._show(self._now)

    def search(self, standing: Standing) -> None:
        """The search asked another statement."""
        self._show(", ".join([f"{self._now}: {count(standing.checks, 'check')}", *_parts(standing)]))

    def _show(self, text: str) -> None:
        if self._status is not None:
            shown = Text(text)
            shown.truncate(self._to.width - SPINNER, overflow="ellipsis")
            self._status.update(shown)


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
