"""m-concealing, re-checked for `verify` and measured for `assess`: every knowledge state summed, nothing pruned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.sql import identifier
from sqldeid.tables.criteria import MConcealing

TOLERANCE = 1e-12
"""A risk above m by less than this share of m is rounding."""


@dataclass(frozen=True, slots=True)
class Concealment:
    """Risks of the rows of one table, by class and known values.

    Parameters
    ----------
    cells
        The table that `split_known` made.
    owner, rows, risk
        Per cell: its class, its rows, and the risk of each of them (inclusion probability applied).
    worst_state
        Names of the known columns of the state that adds most to the greatest risk.
    """

    cells: exp.Table
    owner: Ints
    rows: Ints
    risk: Floats
    worst_state: tuple[str, ...]

    @property
    def greatest(self) -> float:
        """The release's m: the greatest risk; 0 for an empty table."""
        return float(self.risk.max(initial=0.0))

    def failing(self, criterion: MConcealing) -> Ints:
        """Classes with a row above m."""
        return np.unique(self.owner[self.risk > float(criterion.m) * (1 + TOLERANCE)])


def measure(
    engine: Engine,
    name: str,
    rows: exp.Expr,
    columns: Sequence[exp.Expr],
    known: Sequence[exp.Expr],
    criterion: MConcealing,
) -> Concealment:
    """Sum the risk of every row over all knowledge states.

    Parameters
    ----------
    rows
        Table or subquery, called `s`.
    columns, known
        The class's columns, and those of `criterion.known`, in its order.

    Cost: one scan; then one pass over the distinct combinations for each of 2^known states.
    """
    names = [identifier(f"q{i}") for i in range(len(columns))]
    codes = [identifier(f"v{i}") for i in range(len(known))]
    cells = engine.make(
        "tables/verify/split_known",
        f"{name}_known",
        rows=rows,
        columns=[{"name": n, "value": c} for n, c in zip(names, columns, strict=True)],
        known=[{"name": n, "value": c} for n, c in zip(codes, known, strict=True)],
    )
    read = engine.ask("tables/verify/read_known", cells=cells, codes=codes)
    owner, count = (read.column(c).to_numpy().astype(np.int64) for c in ("class", "c"))
    values = [read.column(c.name).to_numpy().astype(np.int64) for c in codes]
    risk, worst_state = _summed(owner, values, count, criterion)
    return Concealment(cells, owner, count, risk, worst_state)


def above(owner: Ints, values: Sequence[Ints], rows: Ints, criterion: MConcealing) -> Flags:
    """Whether each cell's rows have a risk above m."""
    risk = _summed(owner, values, rows, criterion)[0]
    return risk > float(criterion.m) * (1 + TOLERANCE)


def _summed(owner: Ints, values: Sequence[Ints], rows: Ints, criterion: MConcealing) -> tuple[Floats, tuple[str, ...]]:
    """Each cell's risk, and the state that adds most to the greatest one."""
    risk = np.zeros(len(owner))
    for state, fitting in _states(owner, values, rows):
        if chance := criterion.chance(state):
            risk += chance / fitting
    if not len(risk):
        return risk, ()
    at = int(np.argmax(risk))
    mine = owner == owner[at]  # who fits the riskiest row is in its class: a pass over that class alone
    cell = int(np.count_nonzero(mine[:at]))
    terms = [
        (criterion.chance(state) / float(fitting[cell]), state)
        for state, fitting in _states(np.zeros(int(mine.sum()), dtype=np.int64), [v[mine] for v in values], rows[mine])
    ]
    worst = max(terms)[1]
    names = tuple(column for (column, _), knows in zip(criterion.known, worst, strict=True) if knows)
    return risk * float(criterion.inclusion), names


def _states(owner: Ints, values: Sequence[Ints], rows: Ints) -> Iterator[tuple[tuple[bool, ...], Floats]]:
    """Every knowledge state with the rows that fit each cell in it."""
    stack: list[tuple[tuple[bool, ...], Ints]] = [((), owner)]
    while stack:
        state, groups = stack.pop()
        if len(state) == len(values):
            yield state, np.bincount(groups, weights=rows).astype(np.float64)[groups]
            continue
        column = values[len(state)]
        split = np.unique(groups * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
        stack.append(((*state, False), groups))
        stack.append(((*state, True), split.astype(np.int64)))


def pick(engine: Engine, name: str, found: Concealment, classes: Ints, columns: int) -> exp.Table:
    """The labels of some classes, as a table."""
    numbers = engine.put(f"{name}_numbers", pa.table({"class": classes}))
    names = [identifier(f"q{i}") for i in range(columns)]
    return engine.make("tables/verify/pick_classes", f"{name}_picked", cells=found.cells, names=names, numbers=numbers)
