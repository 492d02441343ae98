"""Check shares that bound what any recoding of single classes must lose, node by node. Pure; shares no code with them.

Each combination of the source has a share, in units of what one row loses. They bound the loss of every recoding by the
hierarchies in classes of k rows each, if no share exceeds what a suppressed row loses, and if, at every node, in every
class of the whole source that a released class can lie in, the k greatest shares of rows sum to at most k times what a
row loses there. A released class lies in the source's class with its labels; it has k rows or more, so the mean of
their shares is at most that of the k greatest; and so is, summed over all classes and suppressed rows, what is lost.

Nodes are walked column by column. What a row loses only grows on the way, so a combination whose share is reached
already need not be looked at any further; and a class of such combinations alone keeps to its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Ints

_WIDEST = 2**62


@dataclass(frozen=True, slots=True)
class Leveled:
    """One column of the combinations.

    Parameters
    ----------
    group
        By level, the group of each combination; shape (combinations,).
    cost
        By level, units that one row loses in the column; shape (combinations,).
    """

    group: tuple[Ints, ...]
    cost: tuple[Ints, ...]


Possible = Callable[[Ints, Ints], Flags]
"""Given the combinations of some classes, ordered by class, and where each begins: which can hold a released class."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Shares to be checked.

    Parameters
    ----------
    rows, share
        Of each combination: its rows, and the share of each row of it.
    row
        Units that a suppressed row loses.
    """

    columns: tuple[Leveled, ...]
    rows: Ints
    share: Ints
    k: int
    row: int
    possible: Possible

    def holds(self) -> bool:
        """Whether the shares bound the loss. Cost: a sort of the combinations that a node leaves open, node by node."""
        if len(self.share) and (self.share.min() < 0 or self.share.max() > self.row):
            return False
        open_ = np.flatnonzero(self.share > 0)
        nothing = np.zeros(len(self.rows), dtype=np.int64)
        nodes = self._nodes(0, nothing, 1, open_, nothing[open_])
        return all(self._keeps(key, live, cost) for key, live, cost in nodes)

    def _nodes(self, at: int, key: Ints, width: int, open_: Ints, cost: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """The classes of each node that leaves combinations open, these, and what a row of each loses there."""
        if not len(open_):
            return
        if at == len(self.columns):
            yield key, open_, cost
            return
        column = self.columns[at]
        for group, price in zip(column.group, column.cost, strict=True):
            there = cost + price[open_]
            left = self.share[open_] > there
            if not left.any():
                continue
            size = int(group.max(initial=0)) + 1
            narrow, room = (key, width) if width * size < _WIDEST else _numbered(key)
            yield from self._nodes(at + 1, narrow * size + group, room * size, open_[left], there[left])

    def _keeps(self, key: Ints, open_: Ints, cost: Ints) -> bool:
        """Whether the classes of one node keep to their bound."""
        wanted, where = np.unique(key[open_], return_index=True)
        at = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
        members = np.flatnonzero(wanted[at] == key)
        owner, price = at[members], cost[where]
        order = np.lexsort((-self.share[members], owner))
        members, owner = members[order], owner[order]
        first = np.searchsorted(owner, np.arange(len(wanted)))
        rows, share = self.rows[members], self.share[members]
        size = np.add.reduceat(rows, first)
        before = np.cumsum(rows) - rows
        taken = np.clip(self.k - (before - before[first][owner]), 0, rows)
        over = (size >= self.k) & (np.add.reduceat(taken * share, first) > self.k * price)
        if not over.any():
            return True
        mine = over[owner]
        begins = np.searchsorted(np.cumsum(over)[owner[mine]] - 1, np.arange(int(over.sum())))
        return not self.possible(members[mine], begins).any()


def _numbered(key: Ints) -> tuple[Ints, int]:
    """The same classes by small numbers, and how many there are."""
    found, number = np.unique(key, return_inverse=True)
    return number.reshape(-1).astype(np.int64), len(found)
