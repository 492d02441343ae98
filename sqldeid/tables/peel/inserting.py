"""Put what peeling left over into classes that still pass with it, one combination after the other. Pure."""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.state import State

_TRIED = 12
"""Classes that a combination is tried in at first, those that cost least; then twice as many, and so on."""

_ROUNDS = 3
"""How often what found no class is tried again, as long as others found one: a class that grew may pass with it."""

_MOST = 5000
"""Combinations that are inserted one by one; what is left then is joined as a whole."""


def insert_left(state: State, judge: Judge, clock: Clock) -> None:
    """Insert each combination that is left where it costs least, if that is no more than suppressing it."""
    left = state.left[:_MOST]
    classes = state.classes()
    if not len(left) or not len(classes.first):
        return
    target = _Target(state, judge, classes)
    for _ in range(_ROUNDS):
        before = left
        for i in before.tolist():
            if clock.over():
                return
            target.insert(i)
        left = before[state.at[before] < 0]
        if len(left) in (0, len(before)):
            break


class _Target:
    """Released classes that grow."""

    def __init__(self, state: State, judge: Judge, classes: Classes) -> None:
        self.state, self.judge, self.grid = state, judge, state.grid
        self.head = classes.members[classes.first]
        self.levels = np.array(state.nodes, dtype=np.int64)[state.at[self.head]].T.copy()
        self.size = classes.total(state.rows)
        self.cost = state.cost[self.head]
        self.members = np.split(classes.members, classes.first[1:])

    def insert(self, i: int) -> None:
        """Put a combination into the class that costs least of those that pass with it."""
        levels = np.stack(
            [
                np.maximum(own, (groups[:-1, self.head] != groups[:-1, i : i + 1]).sum(axis=0))
                for own, groups in zip(self.levels, self.grid.groups, strict=True)
            ]
        )
        cost = np.asarray(sum(u[x, self.head] for u, x in zip(self.grid.units, levels, strict=True)), dtype=np.int64)
        rows = int(self.state.rows[i])
        more = cost * (self.size + rows) - self.cost * self.size
        order = np.argsort(more, kind="stable")
        chosen = self._cheapest(i, order[more[order] <= self.grid.row * rows])
        if chosen is None:
            return
        self.members[chosen] = np.append(self.members[chosen], i)
        self.levels[:, chosen], self.cost[chosen] = levels[:, chosen], cost[chosen]
        self.size[chosen] += rows
        self.state.release(tuple(levels[:, chosen].tolist()), self.members[chosen])

    def _cheapest(self, i: int, order: Ints) -> int | None:
        """The first of some classes that passes with a combination."""
        start, many = 0, _TRIED
        while start < len(order):
            tried = order[start : start + many]
            passing = self._passing(i, tried)
            if passing.any():
                return int(tried[passing.argmax()])
            start, many = start + many, 2 * many
        return None

    def _passing(self, i: int, tried: Ints) -> Flags:
        """Which of some classes pass with a combination."""
        if not self.judge.columns or not len(tried):
            return np.ones(len(tried), dtype=np.bool_)
        grown = [np.append(self.members[c], i) for c in tried.tolist()]
        first = np.cumsum([0, *(len(g) for g in grown[:-1])])
        return self.judge.passing(Classes(np.concatenate(grown), first))
