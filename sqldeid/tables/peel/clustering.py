"""Classes from neighbours: for lattices of more nodes than can be visited. Pure.

A combination takes up the one that costs the class least, until the class passes. That needs no node in advance: the
class's node is where its members agree. Combinations are put together in blocks of those that are alike, so that the
work grows with the table, not with its square.

Source
    Greedy k-member clustering: Byun, Kamra, Bertino and Li 2007, with hierarchies' losses; blocks are ours.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.state import State

_BLOCK = 12000
"""Combinations among which a class looks for its members."""

_NEAR = 200
"""Combinations next to the first of a class, among which it looks for the others."""

_TOGETHER = 128
"""Values of columns side by side whose prices are added up in advance."""

_MOST = 40
"""Members that a class takes up beyond k rows to meet its criteria, before it is given up."""


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
    left = state.left
    left = left[_alike(state, left)]
    for start in range(0, len(left), _BLOCK):
        if clock.over():
            break
        members = left[start : start + _BLOCK]
        for found in _Block(state.grid, members).classes(judge, clock):
            state.release(*found)


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


class _Block:
    """Combinations that are alike, each column's values as places in one row of prices."""

    def __init__(self, grid: Grid, members: Ints) -> None:
        self.members = members
        self.kinds, self.groups, self.units, places = [], [], [], []
        begin = 0
        for groups, units in zip(grid.groups, grid.units, strict=True):
            _, at, place = np.unique(groups[0, members], return_index=True, return_inverse=True)
            self.groups.append(groups[:, members[at]])
            self.units.append(units[:, members[at]])
            self.kinds.append(place.reshape(-1))
            places.append(place.reshape(-1) + begin)
            begin += len(at)
        self.place = np.stack(places, axis=1)
        self.known: dict[tuple[int, int, int], tuple[Ints, Ints]] = {}
        self.sets = self._sets()
        self.open = np.arange(len(members))

    def _sets(self) -> list[tuple[list[int], Ints]]:
        """Columns side by side, and for each combination which values it has in all of them."""
        found: list[tuple[list[int], Ints]] = []
        width = _TOGETHER
        for j, kinds in enumerate(self.kinds):
            own = self.groups[j].shape[1]
            if width * own > _TOGETHER:
                found.append(([j], kinds))
                width = own
            else:
                columns, before = found[-1]
                found[-1] = ([*columns, j], before * own + kinds)
                width *= own
        return found

    def classes(self, judge: Judge, clock: Clock) -> list[tuple[Node, Ints]]:
        """Classes with their nodes, one after the other."""
        found = []
        while len(self.open) and not clock.over():
            node, taken = self._grown(judge)
            if taken is not None:
                found.append((node, self.members[taken]))
                gone = np.isin(self.open, taken)
            else:
                gone = self.open == self.open[0]
            self.open = self.open[~gone]
            self.sets = [(columns, kinds[~gone]) for columns, kinds in self.sets]
        return found

    def _grown(self, judge: Judge) -> tuple[Node, Ints | None]:
        """A class around the first combination that is open."""
        head = int(self.open[0])
        levels, taken, rows = [0] * len(self.groups), [head], int(judge.rows[self.members[head]])
        near = self._near(head, taken, levels)
        beyond = 0
        while rows < judge.k or not self._passes(taken, judge):
            beyond += rows >= judge.k
            near = near if len(near) else self._near(head, taken, levels)
            if not len(near) or beyond > _MOST:
                return tuple(levels), None
            best = int(self._prices(head, levels)[self.place[near]].sum(axis=1).argmin())
            one = int(near[best])
            levels = [max(x, int(self._level(j, head, x)[0][self.kinds[j][one]])) for j, x in enumerate(levels)]
            taken.append(one)
            rows += int(judge.rows[self.members[one]])
            near = np.delete(near, best)
        return tuple(levels), np.array(taken)

    def _near(self, head: int, taken: list[int], levels: list[int]) -> Ints:
        """Open combinations that cost a class around one least, all that cost the same; none of those taken."""
        units = np.zeros(len(self.open), dtype=np.int64)
        for columns, kinds in self.sets:
            price = np.zeros(1, dtype=np.int64)
            for j in columns:
                price = np.add.outer(price, self._level(j, head, levels[j])[1]).reshape(-1)
            units += price[kinds]
        most = np.partition(units, _NEAR)[_NEAR] if len(units) > _NEAR else units.max(initial=0)
        found = self.open[units <= most]
        return np.asarray(found[~np.isin(found, taken)])

    def _passes(self, taken: list[int], judge: Judge) -> bool:
        if not judge.columns:
            return True
        members = self.members[np.array(taken)]
        return bool(judge.passing(Classes(members, np.zeros(1, dtype=np.int64)))[0])

    def _prices(self, head: int, levels: list[int]) -> Ints:
        """Units of each value of each column, in a class of some levels around a combination."""
        return np.concatenate([self._level(j, head, x)[1] for j, x in enumerate(levels)])

    def _level(self, column: int, head: int, level: int) -> tuple[Ints, Ints]:
        """At which level each value of a column agrees with a class, and the units of that."""
        kind = int(self.kinds[column][head])
        key = (column, kind, level)
        if key not in self.known:
            groups, units = self.groups[column], self.units[column]
            found = np.maximum((groups[:-1] != groups[:-1, kind : kind + 1]).sum(axis=0), level)
            self.known[key] = found, units[found, np.arange(units.shape[1])]
        return self.known[key]
