"""Columns that are microaggregated: they tell no classes apart, and each row shows a statistic of its class.

Guarantee
    Every row of a class shows the same, so that classes, and with them k, l, t and what else is asked of classes, are
    those of the other quasi-identifying columns. A statistic is a number of a public grid, or missing, and rests on at
    least k persons of the class: the mean on all who have a value; the median on the k or k + 1 in the middle, of whom
    it is the mean; the mode is a value that k persons have; each end of an interval bounds a step of the grid, doubled
    as often as it takes, that k persons lie in. Where fewer have a value it is missing.
Assumes
    One row a person; a grid that was not chosen by looking at persons; that a class is released once.
Does not protect
    A mean or median against all members of the class but one, who pool their values: they solve for the last, to
    within half a step for each member. A mean against who knows one value to be far beyond all others (`top_code`
    bounds that). Against the difference of two releases of nearly the same class. That a mode, or a missing one, tells
    of each member what most have, and an interval that somebody is in either half of its end's step.
Source
    Domingo-Ferrer and Mateo-Sanz 2002 (microaggregation); soundness.md 18 and 21; median and interval are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.tables.plan.columns import OtherColumn
from sqldeid.tables.plan.grid import ORDERED, Grid, cell_of, grid_of

Statistic = Literal["mean", "median", "mode", "interval"]
Shown = int | float | str | None
GREATEST = 2**53
"""Cells beyond it are not told apart as they travel."""


@dataclass(frozen=True, slots=True)
class Aggregated(OtherColumn):
    """A quasi-identifying column of which a statistic of each class leaves.

    Parameters
    ----------
    statistic
        What leaves.
    grid
        The numbers, or moments, that may.
    """

    statistic: Statistic = "mean"
    grid: Grid | None = None

    @property
    def released(self) -> bool:
        """Whether it leaves."""
        return True

    @property
    def aggregated(self) -> bool:
        """Whether a statistic of each class leaves in its place."""
        return True

    @property
    def typed(self) -> bool:
        """Whether what leaves has the source's type."""
        return False

    @property
    def lattice(self) -> Grid:
        """The grid, which every planned column has."""
        if self.grid is None:
            raise ValueError("an aggregated column has a grid")
        return self.grid

    @property
    def cell(self) -> exp.Expr:
        """The cell of the grid that a row of `s` lies in, as DOUBLE; NULL where it has no value."""
        return cell_of(self.column, self.lattice)

    @property
    def shown(self) -> str:
        """What became of its values, for readers."""
        told = f"{self.statistic} of the class, grid {self.lattice.asked}"
        return told if self.top_code is None else f"{told}, from {self.top_code} on {self.top_code}"

    @property
    def noted(self) -> list[object]:
        """The same for the note on the release."""
        return [self.statistic, self.lattice.asked]

    def leaves_as(self, *, text: bool) -> str:
        """BIGINT, DOUBLE or VARCHAR: the type that is released."""
        if text or self.statistic == "interval" or self.lattice.timed:
            return "VARCHAR"
        return "BIGINT" if self.source.kind == "integer" else "DOUBLE"

    def at(self, cell: int, *, text: bool) -> Shown:
        """Where a cell begins, as it is released."""
        match self.leaves_as(text=text):
            case "VARCHAR":
                return self.lattice.shown(cell)
            case "BIGINT":
                return int(self.lattice.start + self.lattice.step * cell)
            case _:
                return float(self.lattice.start + self.lattice.step * cell)

    def averaged(self, total: int, n: int, *, text: bool) -> Shown:
        """The mean of cells whose sum is `total`, as it is released."""
        return self.at(self.lattice.near(Fraction(total, n)), text=text)

    def between(self, low: int, high: int) -> str:
        """The interval from the beginning of one cell to that of another, which it does not hold."""
        return f"[{self.lattice.shown(low)}, {self.lattice.shown(high)})"


def aggregate(name: str, source: Column, part: jobfile.Column, key: str) -> Aggregated:
    """A column that the job aggregates.

    Raises
    ------
    JobError
        If its values have no order, or no grid.
    """
    rule = part.hierarchy
    if not isinstance(rule, jobfile.HierarchyRule) or rule.aggregate is None:
        raise ValueError("the job does not aggregate it")
    where = f"{key}.hierarchy.aggregate"
    if source.kind not in ORDERED:
        raise JobError.at(
            where, f"a column of type {source.shown_type} has no {rule.aggregate}; numbers and dates have"
        )
    grid = grid_of(source, rule.grid, f"{key}.hierarchy.grid")
    return Aggregated(name, source, "quasi-identifying", None, part.top_code, None, rule.aggregate, grid)
