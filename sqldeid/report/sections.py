"""Parts of a report page that every kind of release is told in: a question, an answer in words, a chart, its numbers.

Cells are text; the template escapes them, the one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqldeid.report.words import FEW

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with its caption.

    Parameters
    ----------
    headings
        Of the columns; the first one names the row.
    rows
        As many cells each as there are headings.
    numeric
        Positions of the columns of numbers.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    numeric: frozenset[int] = frozenset()

    @property
    def stacked(self) -> bool:
        """Whether its cells stand one below the other on a narrow screen: two columns of words and more."""
        return len(self.headings) - len(self.numeric) > 2


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as it is embedded, and what stands under it."""

    html: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A question with what answers it, in this order: the answer in short, words, chart, tables."""

    title: str
    answers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    chart: Chart | None = None
    grids: tuple[Grid, ...] = ()


def grid(caption: str, headings: Sequence[str], rows: Iterable[Row], numeric: Iterable[int] = ()) -> Grid:
    """A table."""
    return Grid(caption, tuple(headings), tuple(rows), frozenset(numeric))


def percent(part: float) -> str:
    """A share of 0 … 1 in per cent, to three digits."""
    return f"{100 * part:.3g} %" if abs(part) < 1 else f"{100 * part:.4g} %"


def people(persons: object, noun: str = "") -> str:
    """A number of people of the source, small ones not told exactly."""
    n = int(persons) if isinstance(persons, (int, float)) else 0
    told = f"{n:,}" if n == 0 or n >= FEW else f"fewer than {FEW}"
    return f"{told} {noun}".strip()


def told(value: object) -> str:
    """A figure or a word as a cell shows it; a dash for what is missing."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
