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

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.bins import Least
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.scan import Found, Scan

_WORTH = 64
"""Nodes at which all combinations are looked at for the work of a new scan, which begins with lower shares."""

_BITS = 16
"""Of a table that tells which keys may be there, and of how many rows at most; more where there are more keys."""

_FEW = 500
"""Combinations that are sorted without asking first which of them have too few rows with others."""

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
    looked = shares.lower(nodes, clock)
    # What was not looked at could only ask for less than the least loss of all that is left.
    return shares.share if looked == len(nodes) else np.minimum(shares.share, int(nodes.least[looked:].min()))


class _Shares:
    """Shares that only fall.

    Nodes are looked at in batches, with the shares before the batch: where a class keeps to its bound with these, it
    does with lower ones. Only for the others are all rows looked at, with the shares of the moment.
    """

    def __init__(self, grid: Grid, judge: Judge, row: int) -> None:
        self.grid, self.judge, self.k = grid, judge, judge.k
        self.share = np.full(len(judge.rows), row, dtype=np.int64)
        self.weights = judge.rows.astype(np.float64)
        self.bits = max(_BITS, len(judge.rows).bit_length() + 1)

    def lower(self, nodes: Nodes, clock: Clock) -> int:
        """Cut the greatest shares of each class at a node to what the class allows; how many nodes were looked at."""
        at, every, least = 0, np.arange(len(self.share)), Least(self.judge.rows, self.k, beyond=True)
        while at < len(nodes):
            scan, looked, before = Scan(self.grid, nodes, every, 2 * self.share, least), 0, self.share.copy()
            while at < len(nodes) and (looked < _WORTH * len(every) or np.array_equal(before, self.share)):
                if clock.over():
                    return at
                start, (at, found) = at, scan.batch(at)
                looked += (at - start) * int(scan.reach[start:at].max())
                for i, classes in self._over(scan, found).by_node():
                    self._cut(nodes.masks[i].tolist(), nodes.node(i), scan.at[classes.members[classes.first]])
        return at

    def _over(self, scan: Scan, found: Found) -> Found:
        """Classes that may ask for more than they can lose; rows that are not at hand count half of that loss.

        So the k first rows at hand, each with what its limit (twice its share) is beyond the loss, sum to more than k
        times the loss: the scan left out no such class.
        """
        at = found.classes.members[found.classes.first]
        found = found.part(scan.limit[at] > 2 * found.cost)
        members, rows = found.classes.members, self.judge.rows[scan.at[found.classes.members]]
        counted = _first_rows(rows, found.classes, self.k)
        sums = found.classes.summed(counted * (scan.limit[members] // 2))
        sums += (found.cost // 2) * (self.k - found.classes.summed(counted))
        return found.part(sums > self.k * found.cost)

    def _cut(self, masks: list[int], node: Node, heads: Ints) -> None:
        """Cut shares in the classes of some combinations at a node, where these ask for too much."""
        classes = self._whole(masks, heads)
        cost = self.grid.cost(node, classes.members[classes.first])
        rows, share = self.judge.rows[classes.members], self.share[classes.members]
        counted = _first_rows(rows, classes, self.k)
        over = classes.summed(counted * share) > self.k * cost
        if over.any():
            self._level(classes.part(over), self.k * cost[over])

    def _whole(self, masks: list[int], heads: Ints) -> Classes:
        """Classes that can hold a released one, those of the heads among them; the greatest shares first in each."""
        keys = self.grid.masked(masks)
        place = _hashed(keys, self.bits)
        seen = np.zeros(1 << self.bits, dtype=np.bool_)
        seen[place[heads]] = True
        near = np.flatnonzero(seen[place])
        if len(near) > _FEW:
            weight = np.bincount(place[near], weights=self.weights[near])
            near = near[weight[place[near]] >= self.k]
        near = near[np.lexsort((-self.share[near], keys[near]))]
        ordered = keys[near]
        first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(near) else near
        classes = Classes(near, first)
        return classes.part(self.judge.possible(classes))

    def _level(self, classes: Classes, most: Ints) -> None:
        """Cut the greatest shares of each class to the height at which the k greatest sum to `most`."""
        counted = _first_rows(self.judge.rows[classes.members], classes, self.k)
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


def _first_rows(rows: Ints, classes: Classes, most: int) -> Ints:
    """How many rows of each member are among the first so many of its class."""
    before = np.cumsum(rows) - rows
    left = np.repeat(before[classes.first] + most, classes.sizes) - before
    return np.asarray(np.minimum(np.maximum(left, 0), rows))


def _hashed(keys: Ints, bits: int) -> Ints:
    """A place in a table of so many bits for each key; equal keys have one place."""
    spread = (keys * _FACTOR).view(np.uint64)
    spread >>= np.uint64(64 - bits)
    return spread.view(np.int64)
