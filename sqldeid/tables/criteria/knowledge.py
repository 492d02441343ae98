"""Risk under partial knowledge: the sum over knowledge states of m-concealing, for many classes at once. Pure.

A state is the set of sensitive columns whose values the attacker knows. States are walked as a tree, a column at a
time: not known (the groups stay) or known (they split). Two things are shared between states. A cell that is alone in
its group stays alone however much more is known, so all states below are one term. And a subtree of weight w adds
between w / (rows of its group) and w / (rows of the cell), so the heaviest subtrees are opened first and the walk ends
as soon as every class is decided.

Source: Mazzone 2019, §5.2, formula 5.1; soundness.md 9.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints

TOLERANCE = 1e-12
"""A risk above m by less than this share of m is rounding."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of some classes, grouped by class and known values.

    Parameters
    ----------
    owner
        Class of each cell, numbered from 0; shape (cells,).
    values
        Codes of the known columns; shape (cells, columns).
    rows
        Rows of each cell; shape (cells,).
    """

    owner: Ints
    values: Ints
    rows: Ints


@dataclass(order=True, slots=True)
class _Subtree:
    """States that agree on the first `depth` columns; `cells` are those not alone in their group yet."""

    negative_weight: float
    number: int
    depth: int = field(compare=False)
    cells: Ints = field(compare=False)
    group_rows: Ints = field(compare=False)
    groups: Ints = field(compare=False)


def decide(cells: Cells, known: Sequence[float], most: float) -> Flags:
    """Whether each cell's risk exceeds `most`; exact but for rounding.

    Parameters
    ----------
    known
        Probability that the attacker knows each column, independently; 0 … 1, in the order of `cells.values`.
    most
        The m of m-concealing (over the inclusion probability, where there is one).
    """
    low, high = _Walk(cells, known).to_the_end(most * (1 + TOLERANCE))
    return ((low + high) / 2 > most * (1 + TOLERANCE)) if len(low) else np.zeros(0, dtype=np.bool_)


def risks(cells: Cells, known: Sequence[float]) -> Floats:
    """Each cell's risk: the sum over states of P(state) / rows equal on quasi-identifiers and the state's columns."""
    low, high = _Walk(cells, known).to_the_end(None)
    exact: Floats = (low + high) / 2
    return exact


class _Walk:
    """Lower and upper bounds of the risks, from both ends, as the tree of states is opened."""

    def __init__(self, cells: Cells, known: Sequence[float]) -> None:
        self.cells, self.order = cells, _by_splitting(cells, known)
        self.probability = [known[j] for j in self.order]
        rows = cells.rows
        total = np.bincount(cells.owner, weights=rows).astype(np.int64)[cells.owner] if len(rows) else rows
        self.low, self.high = 1.0 / total, 1.0 / (rows if self.order else total)
        everything = np.flatnonzero(total > rows)
        self.high[total == rows] = self.low[total == rows]
        self.numbers = count()
        root = _Subtree(-1.0, next(self.numbers), 0, everything, total[everything], cells.owner[everything])
        self.queue = [root]

    def to_the_end(self, most: float | None) -> tuple[Floats, Floats]:
        """The bounds, equal where no limit is given, else far enough to be decided by it."""
        while self.queue:
            part = heapq.heappop(self.queue)
            if most is not None:
                part = self.undecided(part, most)
            if part.depth < len(self.order) and len(part.cells):
                self.open(part)
        return self.low, self.high

    def undecided(self, part: _Subtree, most: float) -> _Subtree:
        """The subtree without the groups whose cells' bounds all lie on one side of the limit.

        Whole groups only: a cell that is decided still counts for those beside it.
        """
        open_ = (self.low[part.cells] <= most) & (self.high[part.cells] > most)
        kept = np.isin(part.groups, part.groups[open_])
        return _Subtree(
            part.negative_weight, part.number, part.depth, part.cells[kept], part.group_rows[kept], part.groups[kept]
        )

    def open(self, part: _Subtree) -> None:
        """Replace a subtree by its two halves: the next column not known, and known."""
        p, weight, next_depth = self.probability[part.depth], -part.negative_weight, part.depth + 1
        at, rows = part.cells, self.cells.rows[part.cells]
        split, split_rows = _split(part.groups, self.cells.values[at, self.order[part.depth]], rows)
        last = next_depth == len(self.order)
        self.low[at] += weight * p * (1.0 / split_rows - 1.0 / part.group_rows)
        alone = split_rows == rows
        closed = np.where(alone | last, 1.0 / split_rows, 1.0 / rows)
        unknown = 1.0 / (part.group_rows if last else rows)
        self.high[at] += weight * (p * closed + (1 - p) * unknown - 1.0 / rows)
        if last:
            return
        stay = np.flatnonzero(~alone)
        known_part = _Subtree(-weight * p, next(self.numbers), next_depth, at[stay], split_rows[stay], split[stay])
        heapq.heappush(self.queue, known_part)
        if p < 1:
            rest = _Subtree(-weight * (1 - p), next(self.numbers), next_depth, at, part.group_rows, part.groups)
            heapq.heappush(self.queue, rest)


def _by_splitting(cells: Cells, known: Sequence[float]) -> list[int]:
    """Columns with most values first: they leave most cells alone; columns that are never known are left out."""
    distinct = [len(np.unique(cells.values[:, j])) for j in range(len(known))]
    return sorted((j for j, p in enumerate(known) if p > 0), key=lambda j: (-distinct[j], j))


def _split(groups: Ints, values: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Groups split by a column's values, numbered anew, and the rows of each cell's new group."""
    _, numbers = np.unique(groups * (values.max(initial=0) + 1) + values, return_inverse=True)
    return numbers, np.bincount(numbers, weights=rows).astype(np.int64)[numbers]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Rows by risk.

    Parameters
    ----------
    risk
        Distinct risks, falling, to thirteen digits; infinite for rows that fail k anyway. Shape (risks,).
    rows
        Rows with at least that risk; shape (risks,).
    """

    risk: Floats
    rows: Ints

    @classmethod
    def of(cls, risk: Floats, rows: Ints) -> Spectrum:
        """Sum rows by risk."""
        distinct, owner = np.unique(_rounded(risk), return_inverse=True)
        counted = np.bincount(owner.reshape(-1), weights=rows, minlength=len(distinct)).astype(np.int64)
        return cls(distinct[::-1], np.cumsum(counted[::-1]))

    def least(self, allowed: int) -> float:
        """The least m such that at most `allowed` rows have a greater risk."""
        beyond = np.flatnonzero(self.rows > allowed)
        return float(self.risk[beyond[0]]) if len(beyond) else 0.0

    def above(self, m: float) -> int:
        """Rows with a risk above `m`."""
        greater = int(np.count_nonzero(self.risk > m * (1 + TOLERANCE)))
        return int(self.rows[greater - 1]) if greater else 0


@dataclass(frozen=True, slots=True)
class Profile:
    """What any m would suppress at one node.

    Parameters
    ----------
    classes
        Rows by the greatest risk of their class: who exceeds m takes the class with it.
    cells
        Rows by their own risk: those above m are suppressed at every specialisation, too.
    """

    classes: Spectrum
    cells: Spectrum


def profile(cells: Cells, known: Sequence[float], inclusion: float, least: int) -> Profile:
    """The risks of some classes, of which those of fewer than `least` rows fail whatever m is."""
    size = np.bincount(cells.owner, weights=cells.rows)[cells.owner]
    risk = np.where(size < least, np.inf, risks(cells, known) * inclusion)
    greatest = np.zeros(int(cells.owner.max(initial=-1)) + 1)
    np.maximum.at(greatest, cells.owner, risk)
    return Profile(Spectrum.of(greatest[cells.owner], cells.rows), Spectrum.of(risk, cells.rows))


def _rounded(risk: Floats) -> Floats:
    """To thirteen digits: equal risks, summed in another order, stay equal."""
    finite = np.isfinite(risk) & (risk > 0)
    scale = 10.0 ** (12 - np.floor(np.log10(np.where(finite, risk, 1.0))))
    rounded: Floats = np.where(finite, np.round(np.where(finite, risk, 1.0) * scale) / scale, risk)
    return rounded
