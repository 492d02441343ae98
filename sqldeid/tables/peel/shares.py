"""What each row must lose at least in the mean of any class: a bound by duality, with its proof in numbers. Pure.

Give each combination a share u, in units per row, such that in every class of the *whole source*, at any node, that
can contain a released class, the k greatest shares of its rows sum to at most k times what a row loses at the node,
and no share exceeds what a suppressed row loses. Then every release loses at least the sum of all shares:

A released class R at node N lies in the source's class C of N, which has the same labels, and has at least k rows. The
mean of the shares over R is at most the mean over the k greatest of C, for taking more rows or lesser shares does not
raise it; so at most what a row loses at N, which all rows of R lose. A suppressed row loses at least its share. Summed
over all classes, and the suppressed rows, that is the claim. It holds for every recoding by these hierarchies whose
classes lie at one node each and have k rows, also where rows of one combination part.

The least loss of a node at which a row's class in the source is large enough is such a share of each row (no row of a
class exceeds the class's loss); what is found here is never less, row by row. It is linear programming's dual of
opening classes with a lower bound of k rows each (a facility with a least demand), and shares are found in one pass
from the least loss up: where the k greatest shares of a class sum to too much, the greatest are cut to one height
that just fits. Cutting others later lowers sums, so what fitted once fits for good.

Source
    The least loss of each row: `docs/design/local.md`. Lower bounds of facilities: Guha, Meyerson and Munagala 2000;
    Karger and Minkoff 2000. Weak duality needs no more than the paragraph above.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes

_TABLE = 2**16
"""Places of a table that tells which keys may be there."""

_FACTOR = -7046029254386353131
"""An odd number of 64 bits near 2**64 / 1.618, which spreads keys (Knuth 1998, §6.4)."""


def least_shares(grid: Grid, judge: Judge, nodes: Nodes, row: int, clock: Clock) -> Ints:
    """Shares of the combinations in units per row; shape (combinations,).

    Parameters
    ----------
    nodes
        All nodes, from the least loss up; or all over some columns, the others at the top, where `grid` prices these
        at 0: a class over fewer columns contains the class over all, and loses no more.
    row
        Units that a suppressed row loses.
    """
    shares = _Shares(grid, judge, row)
    for i, (node, masks, least) in enumerate(nodes):
        if clock.over():
            # What was not looked at could only ask for less than the least loss of all that is left.
            return np.minimum(shares.share, int(nodes.least[i:].min()))
        shares.cut(node, masks, least)
    return shares.share


class _Shares:
    """Shares that only fall, and the combinations from the greatest share down."""

    def __init__(self, grid: Grid, judge: Judge, row: int) -> None:
        self.grid, self.judge, self.k = grid, judge, judge.k
        self.share = np.full(len(judge.rows), row, dtype=np.int64)
        self._sort()

    def _sort(self) -> None:
        self.falling = np.argsort(-self.share, kind="stable")
        self.rising = -self.share[self.falling]
        self.sorted = replace(self.grid, words=tuple(word[self.falling] for word in self.grid.words))

    def cut(self, node: Node, masks: list[int], least: int) -> None:
        """Cut the greatest shares of each class at a node to what the class allows.

        Most classes keep to it. To see that, rows of low shares need not be looked at: each counts as `low`, whether
        or not it is there. Only for a class where that is too much are all rows looked at.
        """
        if not len(self.falling) or -self.rising[0] <= least:
            return
        low = least // 2
        over, some = np.searchsorted(self.rising, [-least, -low])
        found = self._beside(masks, int(over), int(some))
        counted = self._counted(found)
        sums = self._sums(found, counted) + low * (self.k - np.add.reduceat(counted, found.first))
        chosen = sums > self.k * least
        if not chosen.any():
            return
        chosen[chosen] = sums[chosen] > self.k * self.grid.cost(node, found.members[found.first[chosen]])
        if not chosen.any():
            return
        found = found.part(chosen)
        if self.judge.columns or (found.total(self.judge.rows) < self.k).any():
            found = self._whole(masks, found)
            found = found.part(self.judge.possible(found))
        if len(found.first):
            self._level(found, self.grid.cost(node, found.members[found.first]))

    def _beside(self, masks: list[int], over: int, some: int) -> Classes:
        """Classes of the first combinations by share, those that surely have none of the first `over` left out."""
        keys = self.sorted.masked(masks, slice(some))
        if over > some // 2:
            return Classes.of(keys, self.falling[:some])
        seen = np.zeros(_TABLE, dtype=np.bool_)
        seen[_hashed(keys[:over])] = True
        near = np.flatnonzero(seen[_hashed(keys)])
        return Classes.of(keys[near], self.falling[near])

    def _whole(self, masks: list[int], some: Classes) -> Classes:
        """The same classes with all of their members."""
        keys = self.sorted.masked(masks)
        place = np.empty(len(keys), dtype=np.int64)
        place[self.falling] = np.arange(len(keys))
        wanted = np.sort(keys[place[some.members[some.first]]])
        seen = np.zeros(_TABLE, dtype=np.bool_)
        seen[_hashed(wanted)] = True
        near = np.flatnonzero(seen[_hashed(keys)])
        at = np.minimum(np.searchsorted(wanted, keys[near]), len(wanted) - 1)
        near = near[wanted[at] == keys[near]]
        return Classes.of(keys[near], self.falling[near])

    def _counted(self, classes: Classes) -> Ints:
        """How many rows of each member are among the first k of its class."""
        rows = self.judge.rows[classes.members]
        before = np.cumsum(rows) - rows
        left = np.repeat(before[classes.first] + self.k, classes.sizes) - before
        return np.asarray(np.minimum(np.maximum(left, 0), rows))

    def _sums(self, classes: Classes, counted: Ints) -> Ints:
        return np.asarray(np.add.reduceat(counted * self.share[classes.members], classes.first))

    def _level(self, classes: Classes, cost: Ints) -> None:
        """Cut the greatest shares of each class to the height at which the k greatest sum to k times its cost."""
        over = self._sums(classes, self._counted(classes)) > self.k * cost
        if not over.any():
            return
        classes, most = classes.part(over), self.k * cost[over]
        counted = self._counted(classes)
        place = np.arange(len(counted)) - np.repeat(classes.first, classes.sizes)
        inside, owner = counted > 0, classes.owner()
        height, weight = np.zeros((2, len(most), int(place[inside].max()) + 1), dtype=np.int64)
        height[owner[inside], place[inside]] = self.share[classes.members[inside]]
        weight[owner[inside], place[inside]] = counted[inside]
        sums = (height * weight).cumsum(axis=1)
        level = (most[:, None] - (sums[:, -1:] - sums)) // weight.cumsum(axis=1)
        following = np.concatenate((height[:, 1:], np.zeros((len(most), 1), dtype=np.int64)), axis=1)
        chosen = (level >= following).argmax(axis=1)
        found = level[np.arange(len(most)), chosen]
        self.share[classes.members] = np.minimum(self.share[classes.members], found[owner])
        self._sort()


def _hashed(keys: Ints) -> Ints:
    """A place in a table for each key; equal keys have one place."""
    spread = np.right_shift(keys * _FACTOR, 64 - _TABLE.bit_length() + 1)
    return np.asarray(spread & (_TABLE - 1), dtype=np.int64)
