"""The public grid that cuts and statistics of classes lie on: its step comes from the job or a type, never from data.

Every value is replaced by the number of its cell before anything is counted, so that a release depends on cells alone:
whoever moves within a cell changes nothing. A cut lies between the last cell of the left part and the first of the
right one, at the roundest number there is, not at somebody's for being somebody's: it tells that the left neighbour is
at most its step below it, and the right one below the next number of the next coarser step. Steps grow by 2 and 5 in
turn, by 2 first: were the one after 1 the 5, then 42 would be taken of 42, 43 and 44, and tell that the left part ends
at 41.

Source
------
soundness.md 21 (medians are persons); the rule of the roundest number is ours.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ulp
from typing import Literal, get_args

from sqlglot import exp

from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.sql import literal

TimeStep = Literal["second", "minute", "hour", "day", "week"]
SECONDS: dict[str, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
MONDAY = -3 * 86400
"""Weeks begin on Mondays, and 1970 began on a Thursday."""
EXACT = 2.0**53
"""Beyond it a DOUBLE is whole anyway."""
SLACK, RELATIVE = 1e-9, 4e-16
"""Of a step, and of a cell's number: what a decimal fraction may miss its own place by (0.29 is 28.999… hundredths)."""
VAGUE = 2.0**50
"""Of the type's units (of cells, where it has none): from here on a DOUBLE may lie in another cell than its value."""
ORDERED = ("integer", "float", "number", "date", "timestamp")
"""Kinds of columns whose values lie on a grid."""
YEARS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
"""Of the calendar that moments are written in; a date outside it is missing, as an infinite number is."""
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)\(\s*\d+\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_BOUNDS = re.compile(r"\[(?P<low>[^,]+), (?P<high>[^)]+)\)|< (?P<below>.+)|≥ (?P<above>.+)")
BARE = ("*", "missing", "not missing")


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers (or moments) start + step · i; cell i holds what is at least that and less than the next.

    Parameters
    ----------
    kind
        Of the column.
    step, start
        In the column's unit; seconds and seconds since 1970 for dates and times.
    unit
        The least difference that the type has, 0 where it has none (floats, times).
    asked
        As the job would say it.
    """

    kind: str
    step: Fraction
    start: Fraction
    unit: Fraction
    asked: int | float | str

    @property
    def timed(self) -> bool:
        """Whether the column holds dates or times."""
        return self.kind in ("date", "timestamp")

    def cell(self, number: exp.Expr) -> exp.Expr:
        """The number of a value's cell as DOUBLE.

        `number` is a DOUBLE: of dates and times, microseconds since 1970.
        """
        step, start = self.step, self.start
        if self.timed:
            step, start = step * 10**6, start * 10**6
        shifted = number if not start else exp.Sub(this=exp.Paren(this=number), expression=_double(start))
        if step == 1:
            found: exp.Expr = exp.Paren(this=shifted)
        elif step.numerator == 1:  # a tenth is no binary number, and ten is
            found = exp.Mul(this=exp.Paren(this=shifted), expression=_double(Fraction(step.denominator)))
        else:
            found = exp.Div(this=exp.Paren(this=shifted), expression=_double(step), typed=False, safe=False)
        near = found.copy()
        if step.denominator != 1 or self.kind == "float":
            relative = exp.Mul(this=exp.Abs(this=found.copy()), expression=_double(Fraction(str(RELATIVE))))
            slack = exp.Paren(this=exp.Add(this=relative, expression=_double(Fraction(str(SLACK)))))
            near = exp.Add(this=exp.Paren(this=near), expression=slack)
        floor = exp.cast(exp.Floor(this=near), "DOUBLE")
        small = exp.LT(this=exp.Abs(this=found.copy()), expression=_double(Fraction(EXACT)))
        zero = _double(Fraction(0))  # both zeros are one cell
        return exp.Add(
            this=exp.Paren(this=exp.Case(ifs=[exp.If(this=small, true=floor)], default=found.copy())), expression=zero
        )

    def between(self, cut: float, above: float) -> int | None:
        """The roundest cell above `cut` and at most `above`: it bounds a part from the next one.

        Far out, where a DOUBLE may be in a neighbour's cell, it keeps away from both sides, so that it holds of the
        values themselves; None where nothing is left then.
        """
        low, high = int(cut) + 1 + self._doubt(cut), int(above) - self._doubt(above)
        return roundest(low, high) if low <= high else None

    def _doubt(self, cell: float) -> int:
        """How many cells a value may be away from where its DOUBLE is."""
        units = self.step / self.unit if self.unit else 1
        return 2 + int(8 * ulp(cell)) if abs(Fraction(cell)) * units >= VAGUE else 0

    def most(self) -> float:
        """The greatest number that has a cell: beyond it a division by the step would overflow."""
        return float(sys.float_info.max * min(1.0, float(self.step)))

    def near(self, cells: float | Fraction) -> int:
        """The cell that begins nearest to the mean of the middles of cells, of which the mean is given."""
        middle = 0 if self.unit == self.step else Fraction(1, 2) - self.unit / self.step / 2
        return _nearest(Fraction(cells) + middle)

    def mean(self, cells: float) -> float:
        """A mean of cells as a number of the grid: the nearest to the mean of the middles of the cells."""
        return float(self.start + self.step * self.near(cells))

    def shown(self, cell: int) -> str:
        """Where a cell begins, as text."""
        at = self.start + self.step * cell
        if not self.timed:
            return _plain(at)
        moment = datetime(1970, 1, 1) + timedelta(seconds=int(at))
        return moment.date().isoformat() if self.kind == "date" else moment.isoformat(sep=" ")

    def holds(self, text: str) -> bool:
        """Whether a bound, as text, is on the grid."""
        try:
            if self.kind == "date":
                at = Fraction((date.fromisoformat(text) - date(1970, 1, 1)).days * 86400)
            elif self.timed:
                at = Fraction(int((datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()))
            else:
                at = Fraction(text)
        except (ValueError, ZeroDivisionError):
            return False
        return ((at - self.start) / self.step).denominator == 1

    def allows(self, label: object) -> bool:
        """Whether what was released of a class is nothing but numbers of the grid."""
        if label is None or (isinstance(label, str) and label in BARE):
            return True
        if isinstance(label, (int, float)):
            near = (Fraction(label) - self.start) / self.step
            return float(self.start + self.step * _nearest(near)) == float(label)
        found = _BOUNDS.fullmatch(str(label).removesuffix(" or missing"))
        return found is not None and all(self.holds(text) for text in found.groups() if text is not None)


def cell_of(value: exp.Expr, grid: Grid) -> exp.Expr:
    """The number of the grid's cell that a value lies in, as DOUBLE; NULL where it is infinite or in no calendar."""
    if grid.timed:
        kind = exp.DataType.build("timestamp", dialect="duckdb")
        time = exp.cast(value, kind)
        low, high = (exp.cast(literal(year), kind) for year in YEARS)
        there: exp.Expr = exp.Between(this=time, low=low, high=high)
        number = exp.cast(exp.Anonymous(this="EPOCH_US", expressions=[time.copy()]), "DOUBLE")
    else:
        number = exp.cast(value, "DOUBLE")
        there = exp.LTE(this=exp.Abs(this=number.copy()), expression=literal(grid.most()))
    return exp.Case(ifs=[exp.If(this=there, true=grid.cell(number))])


def grid_of(source: Column, asked: int | float | str | None, key: str) -> Grid:
    """The grid that a job asks for, or the resolution of a column's type.

    Raises
    ------
    JobError
        If the type has no resolution of its own, or the grid is not one for it.
    """
    if source.kind in ("date", "timestamp"):
        return _timed(source, asked, key)
    if isinstance(asked, str):
        raise JobError.at(key, f"{source.name} holds numbers; write the step as a number, such as 5")
    unit = _resolution(source)
    if asked is None and not unit:
        raise JobError.at(
            key,
            f"missing; {source.name} is of type {source.shown_type}, which has no resolution of its own: say "
            "which numbers may bound a range, such as grid = 0.5 for 0, 0.5, 1 and so on",
        )
    step = unit if asked is None else Fraction(str(asked))
    fits = unit and (step / unit).denominator == 1
    if unit and not fits:
        raise JobError.at(key, f"{source.name} is of type {source.shown_type}; write a multiple of {_plain(unit)}")
    return Grid(source.kind, step, Fraction(0), unit, asked if asked is not None else _number(step))


def roundest(low: int, high: int) -> int:
    """The number of low … high that the coarsest of the steps 1, 2, 10, 20, 100 … hits; the least of several.

    Each step is a multiple of the one before, so that a coarser hit is always a finer one. Of the step 1 there are
    never several: an odd number is taken where it is the only one, and an even one tells neither low nor high.
    """
    best, step, times = low, 1, 2
    while (hit := -(-low // step) * step) <= high:
        best = hit
        if hit == 0:
            break
        step, times = step * times, 10 // times
    return best


def _timed(source: Column, asked: int | float | str | None, key: str) -> Grid:
    step = "day" if asked is None else asked
    allowed = ("day", "week") if source.kind == "date" else get_args(TimeStep)
    if step not in allowed:
        listed = ", ".join(f'"{a}"' for a in allowed)
        raise JobError.at(key, f"{source.name} is of type {source.shown_type}; write one of {listed}")
    seconds = Fraction(SECONDS[str(step)])
    unit = Fraction(86400 if source.kind == "date" else 0)
    return Grid(source.kind, seconds, Fraction(MONDAY if step == "week" else 0), unit, str(step))


def _resolution(source: Column) -> Fraction:
    if source.kind == "integer" or source.type in ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"):
        return Fraction(1)
    scale = _DECIMAL.fullmatch(source.type.strip())
    return Fraction(1, 10 ** int(scale[1])) if scale is not None else Fraction(0)


def _double(number: Fraction) -> exp.Expr:
    return exp.cast(literal(int(number) if number.denominator == 1 else float(number)), "DOUBLE")


def _nearest(number: Fraction) -> int:
    """Half up."""
    return int((number + Fraction(1, 2)).__floor__())


def _number(step: Fraction) -> int | float:
    return int(step) if step.denominator == 1 else float(step)


def _plain(number: Fraction) -> str:
    """A decimal number without an exponent."""
    if number.denominator == 1:
        return str(number.numerator)
    # Steps come from decimal text, so that the division is exact well within these digits.
    digits = (Decimal(number.numerator) / Decimal(number.denominator)).normalize()
    return f"{digits:f}"
