"""Classes from neighbours: for lattices of more nodes than can be visited. Pure.

A combination takes up others, in the ways that cost the class least, until the class passes (`growing`). That needs no
node in advance: the class's node is where its members agree. Those that lie where many do begin, for their classes are
cheap as those of a small node are; what is rare is left for the end. Large tables are cut into blocks of combinations
that are alike, so that the work grows with the table, not with its square.

Source
    Greedy k-member clustering: Byun, Kamra, Bertino and Li 2007, with hierarchies' losses; order and blocks are ours.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Grid
from sqldeid.tables.peel.growing import Pool
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.state import State

_BLOCK, _WORK = 12000, 5_400_000_000
"""Combinations among which a class looks for its members: at least so many; more where the table is so small that all
looks together, a combination seen by another each, are no more than that."""

_WHOLE, _PARTS = 0.6, 0.7
"""Shares of the time after which what is left is put into classes in such blocks, and then in ever smaller ones."""


def low_nodes(grid: Grid, rows: Ints) -> Nodes:
    """The nodes at most two levels up from the bottom."""
    bottom, top = np.array(grid.lattice.bottom), np.array(grid.lattice.top)
    step = np.eye(len(top), dtype=np.int64)
    levels = [bottom, *(bottom + a for a in step), *(bottom + a + b for a in step for b in step)]
    fitting = [x for x in levels if (x <= top).all()]
    return Nodes.of(grid, np.unique(np.array(fitting), axis=0), rows)


def high_nodes(grid: Grid, rows: Ints) -> Nodes:
    """Nodes from the top down, each with one more column a level lower, the column that saves most at each step."""
    mean = [units @ rows for units in grid.units]
    node = list(grid.lattice.top)
    levels = [tuple(node)]
    while any(node):
        saved = [int(m[x] - m[x - 1]) if x else -1 for m, x in zip(mean, node, strict=True)]
        node[saved.index(max(saved))] -= 1
        levels.append(tuple(node))
    return Nodes.of(grid, np.array(levels), rows)


def cluster(state: State, judge: Judge, clock: Clock) -> None:
    """Release what is left in classes of neighbours; what finds too few stays left."""
    whole = max(_BLOCK, _WORK // max(len(state.left), 1))
    for block, share in ((whole, _WHOLE), (_BLOCK, _PARTS), (max(_BLOCK // 8, 1), 1.0)):
        part = clock.part(share)
        _in_blocks(state, judge, block, part)
        if not part.stopped:
            break
        clock.stopped = True


def _in_blocks(state: State, judge: Judge, block: int, clock: Clock) -> None:
    """Classes of neighbours within blocks of those that are alike, around those first that lie where many do."""
    left = state.left
    if len(left) > block:
        left = left[_alike(state, left)]
    for start in range(0, len(left), block):
        pool = Pool(state.grid, judge, left[start : start + block])
        for head in pool.by_density().tolist():
            if clock.over():
                return
            if pool.is_open[head]:
                node, taken = pool.grown(head)
                pool.take(np.array([head]) if taken is None else taken)
                if taken is not None:
                    state.release(node, pool.members[taken])


def _alike(state: State, left: Ints) -> Ints:
    """An order in which those stand together that agree below the top where this saves most."""
    coarse, worth = [], []
    for groups, units in zip(state.grid.groups, state.grid.units, strict=True):
        below = max(len(groups) - 2, 0)
        kinds = np.unique(groups[below, left], return_inverse=True)[1].reshape(-1)
        share = np.bincount(kinds, weights=state.rows[left]) / state.rows[left].sum()
        saved = float((units[-1, left] - units[below, left]).mean())
        coarse.append(kinds)
        worth.append(saved * (1 - float((share**2).sum())))
    fine = [groups[0, left] for groups in state.grid.groups]
    places = np.argsort(worth, kind="stable")
    return np.lexsort([*(fine[j] for j in places), *(coarse[j] for j in places)])
