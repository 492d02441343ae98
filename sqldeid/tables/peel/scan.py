"""Many nodes looked at in one go: the classes that some combinations form there, as long as each is cheap enough. Pure.

Nodes are many and most of them small, so that calls would cost more than work. A batch is a table of nodes by
combinations; what a combination loses at a node is a sum of two or three numbers that were added up in advance, each
over some columns. Cells in bins that weigh too little are left out (`bins`); one sort finds the classes of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.peel.bins import Bins, Least
from sqldeid.tables.peel.grid import Classes, Grid, in_order, paired
from sqldeid.tables.peel.nodes import Nodes

_CELLS = 2**16
"""Nodes times combinations of a batch: so that its arrays stay near the processor."""

_NODES = 2**12
"""Most nodes of a batch."""

_ADDED = 16
"""Levels of columns whose losses are added up in advance, in all their ways: each takes a number per combination."""


@dataclass(frozen=True, slots=True)
class Found:
    """Classes at the nodes of a batch.

    Parameters
    ----------
    node
        Place of each class's node among all nodes, rising; shape (classes,).
    cost
        Units that one row of each class loses there; shape (classes,).
    classes
        Their members, as places among the combinations of the scan: those with the greatest limits first.
    """

    node: Ints
    cost: Ints
    classes: Classes

    def part(self, chosen: Flags) -> Found:
        """Some of the classes."""
        return Found(self.node[chosen], self.cost[chosen], self.classes.part(chosen))

    def by_node(self) -> list[tuple[int, Classes]]:
        """Each node that has classes, with these."""
        starts = np.flatnonzero(np.diff(self.node, prepend=-1))
        stops, first, members = [*starts[1:], len(self.node)], self.classes.first, self.classes.members
        ends = np.append(first, len(members))
        return [
            (int(self.node[a]), Classes(members[ends[a] : ends[b]], first[a:b] - ends[a]))
            for a, b in zip(starts, stops, strict=False)
        ]


class Scan:
    """Classes of the combinations that lose less than a limit, at one node after the other.

    Parameters
    ----------
    at
        Which combinations.
    limit
        Units of each of them: at a node where it loses as much or more, it is not looked at; shape as `at`.
    least
        What a class must come to: those that do not may be left out.
    """

    def __init__(self, grid: Grid, nodes: Nodes, at: Ints, limit: Ints, least: Least) -> None:
        limit = np.minimum(limit, 2 * grid.row + 1)
        order, falling = in_order(2 * grid.row + 1 - limit)
        self.grid, self.nodes = grid, nodes
        self.at = at[order]
        self.limit = 2 * grid.row + 1 - falling
        self.reach = np.searchsorted(falling, 2 * grid.row + 1 - nodes.least, side="left")
        self.rank_bits = len(at).bit_length()
        self.code = _compact(grid, nodes, self.at, 62 - self.rank_bits)
        kind = np.dtype(np.int32 if 2 * grid.row + 1 < 2**31 else np.int64)
        self.narrow = self.limit.astype(kind)
        self.added = [_Added(grid, self.at, columns, kind) for columns in _sets(grid)]
        self.bins = Bins(grid, nodes, self.at, self.narrow, least)

    def batch(self, start: int) -> tuple[int, Found]:
        """The classes at as many nodes from one on as are looked at together, and where those end."""
        room = _NODES if self.code is None else min(_NODES, 1 << (62 - self.rank_bits - self.code.width))
        widest = np.maximum.accumulate(self.reach[start : start + room])
        count = max(int(np.searchsorted(widest * np.arange(1, len(widest) + 1), _CELLS, side="right")), 1)
        width = int(widest[count - 1])
        levels = self.nodes.levels[start : start + count]
        cost: Any = reduce(np.add, [added.of(levels, width) for added in self.added])
        near = self.bins.heavy(start, cost < self.narrow[:width], cost)
        found, head, rank = self._sorted(near, start)
        return start + count, Found(head + start, cost[head, rank].astype(np.int64), found)

    def _sorted(self, near: Flags, start: int) -> tuple[Classes, Ints, Ints]:
        """Classes by node and labels, and the node and first member of each."""
        node, rank = np.divmod(np.flatnonzero(near), near.shape[1])
        if self.code is None:
            parts = [w[self.at[rank]] & self.nodes.masks[start + node, i] for i, w in enumerate(self.grid.words)]
            order, keys = in_order(reduce(paired, [node, *parts]))
            node, rank = node[order], rank[order]
        else:
            shift = self.rank_bits + self.code.width
            packed = self.code.words[rank] & self.code.masks[start : start + len(near)][node]
            packed <<= self.rank_bits
            packed |= rank
            packed |= node << shift
            packed.sort()
            rank, keys, node = packed & ((1 << self.rank_bits) - 1), packed >> self.rank_bits, packed >> shift
        first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))) if len(keys) else rank
        return Classes(rank, first), node[first], rank[first]


class _Added:
    """What each combination loses in some columns, for each choice of their levels."""

    def __init__(self, grid: Grid, at: Ints, columns: list[int], kind: np.dtype[Any]) -> None:
        self.columns = columns
        self.heights = [len(grid.units[j]) for j in columns]
        table: Any = np.zeros((1, len(at)), dtype=kind)
        for j in columns:
            own: Any = grid.units[j][:, at].astype(kind)
            table = (table[:, None, :] + own[None, :, :]).reshape(-1, len(at))
        self.table = table

    def of(self, levels: Ints, width: int) -> Ints:
        """For some nodes; shape (nodes, width)."""
        row = np.ravel_multi_index(tuple(levels[:, self.columns].T), self.heights)
        return np.asarray(self.table[:, :width][row])


def _sets(grid: Grid) -> list[list[int]]:
    """Columns side by side, as many together as may be added up in advance."""
    found: list[list[int]] = [[]]
    for j, units in enumerate(grid.units):
        if found[-1] and prod(len(grid.units[x]) for x in found[-1]) * len(units) > _ADDED:
            found.append([])
        found[-1].append(j)
    return found


@dataclass(frozen=True, slots=True)
class _Code:
    """All columns that any node tells apart in one word, and each node as a mask of it."""

    words: Ints
    masks: Ints
    width: int


def _compact(grid: Grid, nodes: Nodes, at: Ints, most: int) -> _Code | None:
    """The words and masks without bits that no node asks for; None where they take more than `most` bits."""
    used = np.bitwise_or.reduce(nodes.masks, axis=0).tolist()
    fields = []
    for field in grid.coding.fields:
        mine = used[field.word] & field.mask(0)
        if mine:
            low = (mine & -mine).bit_length() - 1
            fields.append((field.word, low, (mine >> low).bit_length()))
    width = sum(bits for _, _, bits in fields)
    if width > most:
        return None
    words, masks, shift = np.zeros(len(at), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64), 0
    for word, low, bits in fields:
        keep = (1 << bits) - 1
        words |= ((grid.words[word][at] >> low) & keep) << shift
        masks |= ((nodes.masks[:, word] >> low) & keep) << shift
        shift += bits
    return _Code(words, masks, width)
