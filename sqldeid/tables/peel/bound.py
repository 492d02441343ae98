"""The bound of a problem: shares over all columns, or over parts of them where the lattice is too large. Pure.

What a row loses is a sum over columns. A release, seen in some columns alone, is one whose classes are unions of the
released ones, so have k rows and lie within classes of the source by these columns; a suppressed row loses there what
these columns weigh. So the shares of parts that have no column in common add up to a bound of the whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import LISTED, every_node
from sqldeid.tables.peel.problem import Concealed, Judged, LocalProblem
from sqldeid.tables.peel.shares import least_shares

_PART = 20_000
"""Most nodes over the columns of a part: the bound grows faster than the columns that are looked at together."""

Parts = tuple[tuple[int, ...], ...]


def parts_of(grid: Grid) -> Parts:
    """Columns in parts whose lattices are small enough, as many as fit in the first; one part where all fit."""
    heights = grid.lattice.heights
    if grid.lattice.size <= LISTED:
        return (tuple(range(len(heights))),)
    parts: list[list[int]] = []
    sizes: list[int] = []
    for j, height in sorted(enumerate(heights), key=lambda column: column[1]):
        fitting = next((i for i, size in enumerate(sizes) if size * height <= _PART), None)
        if fitting is None:
            parts.append([])
            sizes.append(1)
            fitting = len(parts) - 1
        parts[fitting].append(j)
        sizes[fitting] *= height
    return tuple(tuple(sorted(part)) for part in parts)


def shares_of(problem: LocalProblem, grid: Grid, parts: Parts, clock: Clock) -> Ints:
    """Shares of each part; shape (parts, combinations)."""
    if len(parts) == 1:
        nodes = every_node(grid, problem.rows)
        return least_shares(grid, Judge(problem), nodes, grid.row, clock)[None, :]
    shares = []
    for i, columns in enumerate(parts):
        part = clock.part(1 / (len(parts) - i))
        shares.append(_part(problem, grid, columns, part))
        clock.stopped |= part.stopped
    return np.stack(shares)


def _part(problem: LocalProblem, grid: Grid, columns: tuple[int, ...], clock: Clock) -> Ints:
    """Shares over some columns, of which combinations that agree in them are one."""
    top = grid.lattice.top
    bottom = tuple(0 if j in columns else x for j, x in enumerate(top))
    classes = Classes.of(grid.keys(bottom))
    place = np.empty(len(problem.rows), dtype=np.int64)
    place[classes.members] = classes.owner()
    heads = classes.members[classes.first]
    seen = replace(
        grid,
        words=tuple(word[heads] for word in grid.words),
        groups=tuple(groups[:, heads] for groups in grid.groups),
        units=tuple(u[:, heads] * (1 if j in columns else 0) for j, u in enumerate(grid.units)),
    )
    judged = tuple(_summed(j, place, len(j.whole)) for j in problem.criteria)
    hidden = problem.concealed
    concealed = None if hidden is None else _summed(hidden, place, len(hidden.tuples))
    rows = classes.total(problem.rows)
    put = replace(problem, leaf=problem.leaf[:, heads], rows=rows, criteria=judged, concealed=concealed)
    weight = sum(problem.attributes[j].weight for j in columns) / sum(a.weight for a in problem.attributes)
    return least_shares(seen, Judge(put), every_node(seen, rows, columns), int(grid.row * weight), clock)[place]


_Counted = TypeVar("_Counted", Judged, Concealed)


def _summed(judged: _Counted, place: Ints, values: int) -> _Counted:
    """A criterion's rows by combination and value, of combinations that are put together."""
    cells = Classes.of(place[judged.combination] * values + judged.value)
    heads = cells.members[cells.first]
    combination, value = place[judged.combination[heads]], judged.value[heads]
    return replace(judged, combination=combination, value=value, rows=cells.total(judged.rows))
