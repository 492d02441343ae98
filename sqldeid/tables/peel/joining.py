"""What peeling leaves over: suppressed where the limit allows and nothing is cheaper, else joined with a class."""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import NoSolutionError
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.inserting import insert_left
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.state import State

_WORTH = 1000
"""Part of the loss that joining may cost more than suppressing: improvement can still save where rows are joined."""


def place_left_over(state: State, judge: Judge, allowed: int, clock: Clock) -> None:
    """Suppress the combinations that are left or join them with the class that costs least to raise.

    Raises
    ------
    NoSolutionError
        Where even all rows in one class fail, and the limit does not let enough of them go.
    """
    insert_left(state, judge, clock)
    left = state.left
    if not len(left):
        return
    rows = int(state.rows[left].sum())
    kept = state.at.copy(), state.cost.copy()
    suppressed = state.units if rows <= allowed else None
    if _join(state, judge, left) and (suppressed is None or state.units <= suppressed + suppressed // _WORTH):
        return
    if suppressed is None:
        raise NoSolutionError(
            "not even all rows in one class meet the criteria; lower k or what the criteria ask, or raise "
            "suppression_limit"
        )
    state.at, state.cost = kept


def _join(state: State, judge: Judge, left: Ints) -> bool:
    """Merge what is left with one class after the other, the cheapest first, until a class passes."""
    group, node = left, meet(state.grid, left)
    while True:
        state.release(node, group)
        classes = state.classes()
        mine = int(np.flatnonzero(classes.members == group[0])[0])
        own = int(np.searchsorted(classes.first, mine, side="right")) - 1
        chosen = np.arange(len(classes.first)) == own
        group = np.sort(classes.part(chosen).members)
        if judge.passing(classes.part(chosen)).all():
            return True
        others = classes.part(~chosen)
        if not len(others.first):
            return False
        nodes, extra = raised(state, others, group, node)
        best = int(np.lexsort((*nodes[::-1], extra))[0])
        node = tuple(int(x) for x in nodes[:, best])
        group = np.union1d(group, others.part(np.arange(len(others.first)) == best).members)


def meet(grid: Grid, members: Ints) -> Node:
    """The lowest node at which some combinations agree."""
    return tuple(int((g[:, members] != g[:, members[:1]]).any(axis=1).sum()) for g in grid.groups)


def raised(state: State, classes: Classes, group: Ints, node: Node) -> tuple[Ints, Ints]:
    """Per class the node at which it agrees with a group, shape (columns, classes), and the units that both lose more.

    Parameters
    ----------
    group, node
        Combinations that agree at `node`.
    """
    grid, heads = state.grid, classes.members[classes.first]
    own = np.array([(*n,) for n in state.nodes], dtype=np.int64)[state.at[heads]].T
    nodes = np.stack(
        [
            np.maximum((g[:, heads] != g[:, group[:1]]).sum(axis=0), np.maximum(levels, x))
            for g, levels, x in zip(grid.groups, own, node, strict=True)
        ]
    )
    cost = sum((u[x, heads] for u, x in zip(grid.units, nodes, strict=True)), np.zeros(len(heads), dtype=np.int64))
    size = classes.total(state.rows)
    mine = int(state.rows[group].sum())
    before = classes.total(state.rows * state.cost) + int((state.rows * state.cost)[group].sum())
    return nodes, np.asarray(cost * (size + mine) - before)
