"""Combinations that are grown into classes: who is near whom, and which few together lose least. Pure.

A class around a combination lies at the node where its members agree with this one; so of each other only the levels at
which it agrees with the first are asked. Members are added one by one, and several ways to begin are kept beside each
other, for the nearest neighbours of one combination seldom are near each other.

Source
    Beams: Lowerre 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge

_NEAR = 200
"""About so many combinations next to the first of a class are looked at for its others."""

_WAYS, _EFFORT = 8, 64
"""Ways to begin a class that are kept beside each other at most; ways times rows of a class."""

_TOGETHER = 8192
"""Values of columns side by side whose prices are added up in advance."""

_MOST = 40
"""Members that a class takes up beyond k rows to meet its criteria, before it is given up."""

_STALE = 64
"""Classes after which those that are taken leave the arrays."""

_SEEN, _NEAREST, _AT_ONCE = 500, 8, 32
"""Combinations that each one is compared with to tell how dense it is where it lies; how many of them count."""

_NEVER = 2**61


@dataclass(slots=True)
class _Ways:
    """Beginnings of a class.

    Parameters
    ----------
    levels
        Of each column, as places in the row of prices; shape (columns, ways).
    taken
        Candidates in each; shape (ways, members).
    rows
        Of all members; shape (ways,).
    cost
        Units that a row loses; shape (ways,).
    """

    levels: Ints
    taken: Ints
    rows: Ints
    cost: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


class Pool:
    """Combinations of which classes are made, until none is open.

    Parameters
    ----------
    members
        Which combinations; below, one is its place here.
    """

    def __init__(self, grid: Grid, judge: Judge, members: Ints) -> None:
        self.members, self.judge, self.rows = members, judge, judge.rows[members]
        self.kind: Any = np.int32 if grid.row < 2**31 - 1 else np.int64
        self.groups, self.units, places = [], [], []
        begin = 0
        for groups, units in zip(grid.groups, grid.units, strict=True):
            _, at, place = np.unique(groups[0, members], return_index=True, return_inverse=True)
            self.groups.append(groups[:, members[at]])
            self.units.append(units[:, members[at]])
            places.append(place.reshape(-1) + begin)
            begin += len(at)
        self.place = np.stack(places, axis=1)
        self.begin = np.cumsum([0, *(len(units) for units in self.units)])[:-1]
        self.known: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = {}
        self.sets = self._sets()
        self.open = np.arange(len(members))
        self.is_open: Flags = np.ones(len(members), dtype=np.bool_)
        self.gone = 0
        self.near = max(_NEAR, 4 * judge.k)
        self.ways = min(max(_EFFORT // judge.k, 1), _WAYS)

    def _sets(self) -> list[tuple[list[int], Ints]]:
        """Columns side by side, and for each combination which values it has in all of them."""
        found: list[tuple[list[int], Ints]] = []
        width, begin = 1, 0
        for j, groups in enumerate(self.groups):
            own, kinds = groups.shape[1], self.place[:, j] - begin
            begin += own
            if not found or width * own > _TOGETHER:
                found.append(([j], kinds))
                width = own
            else:
                columns, before = found[-1]
                found[-1] = ([*columns, j], before * own + kinds)
                width *= own
        return found

    def by_density(self) -> Ints:
        """All, those first that have many near: the mean of the least costs of a class with some of all."""
        seen = np.unique(np.linspace(0, len(self.members) - 1, min(_SEEN, len(self.members))).astype(np.int64))
        nearest = np.full((_NEAREST + 1, len(self.members)), np.iinfo(self.kind).max, dtype=self.kind)
        for start in range(0, len(seen), _AT_ONCE):
            costs = [nearest, *(self._costs(int(i))[None] for i in seen[start : start + _AT_ONCE])]
            nearest = np.partition(np.concatenate(costs), _NEAREST, axis=0)[: _NEAREST + 1]
        # One of those seen is nearest to itself; so nobody's nearest counts.
        sparse = nearest.sum(axis=0, dtype=np.int64) - nearest.min(axis=0)
        return np.argsort(sparse, kind="stable")

    def take(self, taken: Ints) -> None:
        """These are in a class, or given up."""
        self.is_open[taken] = False
        self.gone += 1
        if self.gone % _STALE == 0:
            kept = self.is_open[self.open]
            self.open = self.open[kept]
            self.sets = [(columns, kinds[kept]) for columns, kinds in self.sets]

    def grown(self, head: int) -> tuple[Node, Ints | None]:
        """A class around an open combination: its node, and its members, or None where it finds too few."""
        near = self._near(head)
        levels, price = self._around(head)
        at = levels.take(self.place[near]).T + self.begin[:, None]
        own = self.begin[:, None]
        ways = _Ways(own, np.zeros((1, 0), dtype=np.int64), self.rows[[head]])
        found = self._best(ways, at, price, self.rows[near])
        if found is None:
            return (), None
        node, taken = found.levels[:, 0] - self.begin, np.append(near[found.taken[0]], head)
        passing = self._completed(head, node, taken) if self.judge.columns else (node, taken)
        return ((), None) if passing is None else (tuple(passing[0].tolist()), passing[1])

    def _best(self, ways: _Ways, at: Ints, price: Ints, rows: Ints) -> _Ways | None:
        """The way to k rows that costs a row least of those that are found."""
        best: _Ways | None = None
        if ways.rows[0] >= self.judge.k:
            return ways
        while len(ways.rows) and ways.taken.shape[1] < at.shape[1]:
            ways = self._longer(ways, at, price, rows)
            done = np.flatnonzero(ways.rows >= self.judge.k)
            if len(done) and (best is None or ways.cost[done[0]] < best.cost[0]):
                best = _some(ways, done[:1])
            open_ = ways.rows < self.judge.k
            if best is not None:
                open_ &= ways.cost < best.cost[0]
            ways = _some(ways, np.flatnonzero(open_))
        return best

    def _longer(self, ways: _Ways, at: Ints, price: Ints, rows: Ints) -> _Ways:
        """The best ways with one member more, of different levels each, the best first."""
        levels = np.maximum(ways.levels[:, :, None], at[:, None, :])
        cost = price.take(levels).sum(axis=0)
        cost[np.arange(len(cost))[:, None], ways.taken] = _NEVER
        flat = cost.reshape(-1)
        most = min(4 * self.ways, len(flat)) - 1
        chosen = np.flatnonzero(flat <= np.partition(flat, most)[most])
        chosen = chosen[np.argsort(flat[chosen], kind="stable")][: most + 1]
        chosen = chosen[flat[chosen] < _NEVER]
        way, one = np.divmod(chosen, at.shape[1])
        seen: dict[bytes, int] = {}
        for i, found in enumerate(np.ascontiguousarray(levels[:, way, one].T)):
            seen.setdefault(found.tobytes(), i)
        kept = np.fromiter(seen.values(), dtype=np.int64)[: self.ways]
        way, one = way[kept], one[kept]
        taken = np.concatenate([ways.taken[way], one[:, None]], axis=1)
        return _Ways(levels[:, way, one], taken, ways.rows[way] + rows[one], flat[chosen[kept]])

    def _completed(self, head: int, node: Ints, taken: Ints) -> tuple[Ints, Ints] | None:
        """A class with what it takes to meet its criteria, the cheapest first; None where that is too much."""
        levels, price = self._around(head)
        for _ in range(_MOST + 1):
            members = self.members[taken]
            if self.judge.passing(Classes(members, np.zeros(1, dtype=np.int64)))[0]:
                return node, taken
            others = self._near(head, node)
            others = others[~np.isin(others, taken)]
            if not len(others):
                return None
            at = np.maximum(levels.take(self.place[others]), node)
            best = int(price.take(at + self.begin).sum(axis=1).argmin())
            node, taken = at[best], np.append(taken, others[best])
        return None

    def _near(self, head: int, node: Ints | None = None) -> Ints:
        """Open combinations that cost a class around one least, about as many as are looked at."""
        units = self._costs(head, node)
        units[~self.is_open[self.open]] = np.iinfo(self.kind).max
        if node is None:
            units[np.searchsorted(self.open, head)] = np.iinfo(self.kind).max
        step = max(len(units) // (20 * self.near), 1)
        some = units[::step]
        place = min(self.near // step, len(some) - 1)
        found = units <= np.partition(some, place)[place]
        few = min(self.near // 4, len(units) - 1)
        if np.count_nonzero(found) < few:
            found = units <= np.partition(units, few)[few]
        found &= units < np.iinfo(self.kind).max
        return np.asarray(self.open[found])

    def _costs(self, head: int, node: Ints | None = None) -> Any:
        """Units that a row of a class around one loses with each of those that were open when arrays were last cut."""
        total: Any = 0
        for columns, kinds in self.sets:
            price: Any = np.zeros(1, dtype=self.kind)
            for j in columns:
                own = self._level(j, head)
                units = own[1] if node is None else own[2].take(np.maximum(own[0], node[j])).astype(self.kind)
                price = np.add.outer(price, units).reshape(-1)
            total = total + price.take(kinds)
        return total

    def _around(self, head: int) -> tuple[Ints, Ints]:
        """At which level each value of each column agrees with one's; what a row loses at each level there."""
        found = [self._level(j, head) for j in range(len(self.groups))]
        return np.concatenate([levels for levels, _, _ in found]), np.concatenate([price for _, _, price in found])

    def _level(self, column: int, head: int) -> tuple[Ints, Ints, Ints]:
        """At which level each value of a column agrees with one's, the units of that, and of every level."""
        place = int(self.place[head, column])
        key = column, place
        if key not in self.known:
            groups, units = self.groups[column], self.units[column]
            kind = place - sum(g.shape[1] for g in self.groups[:column])
            levels = (groups[:-1] != groups[:-1, kind : kind + 1]).sum(axis=0)
            price = units[:, kind].copy()
            self.known[key] = levels, price[levels].astype(self.kind), price
        return self.known[key]


def _some(ways: _Ways, chosen: Ints) -> _Ways:
    return _Ways(ways.levels[:, chosen], ways.taken[chosen], ways.rows[chosen], ways.cost[chosen])
