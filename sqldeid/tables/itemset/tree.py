"""The tree of an item column's codes, and its cuts: each item is shown as its one ancestor on the cut. Pure.

A cut is a set of nodes of which every leaf has exactly one among its ancestors (itself included). One level for all
items is a cut; most cuts mix levels. Nodes are numbered from the leaves up, level by level, so that a node's number
tells its level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints

UNSET = -1


@dataclass(frozen=True, eq=False)
class CodeTree:
    """A tree of codes with the leaves that released persons have, at least one; the loss counts these alone.

    Parameters
    ----------
    groups
        Per level the group of each leaf, from 0 without gaps: level 0 is the leaf itself, the last one a single group.
    leaves
        Which leaf of the hierarchy each one is, ascending.
    origins
        Per level, which group of the hierarchy each group is.
    """

    groups: tuple[Ints, ...]
    leaves: Ints
    origins: tuple[Ints, ...]

    @classmethod
    def over(cls, groups: Sequence[Ints], leaves: Ints) -> CodeTree:
        """The tree of these leaves of a hierarchy, whose levels have these groups."""
        found = [np.unique(of[leaves], return_inverse=True) for of in groups]
        return cls(
            tuple(inverse.astype(np.int64) for _, inverse in found), leaves, tuple(origin for origin, _ in found)
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Number of the first node of each level, and after the last level the number of nodes."""
        sizes = [int(groups.max(initial=0)) + 1 for groups in self.groups]
        return tuple(int(n) for n in np.concatenate([[0], np.cumsum(sizes)]))

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.starts[-1]

    @property
    def top(self) -> int:
        """The root's number."""
        return self.nodes - 1

    @cached_property
    def parent(self) -> Ints:
        """Parent of each node; the root has none (-1)."""
        found = np.full(self.nodes, UNSET, dtype=np.int64)
        for level in range(len(self.groups) - 1):
            found[self.at(level)] = self.at(level + 1)
        return found

    @cached_property
    def losses(self) -> Floats:
        """What an item loses that is shown as a node: (leaves below it - 1) / (all leaves - 1); Iyengar 2002."""
        sizes = np.zeros(self.nodes)
        for level in range(len(self.groups)):
            sizes += np.bincount(self.at(level), minlength=self.nodes)
        return np.asarray((sizes - 1) / max(len(self.leaves) - 1, 1))

    def at(self, level: int) -> Ints:
        """The node of each leaf at a level; shape (leaves,)."""
        return self.groups[level] + self.starts[level]

    def level(self, node: int) -> int:
        """The level of a node."""
        return int(np.searchsorted(self.starts, node, side="right")) - 1

    def origin(self, node: int) -> tuple[int, int]:
        """The level of a node, and which group of the hierarchy it is there."""
        level = self.level(node)
        return level, int(self.origins[level][node - self.starts[level]])

    def cheapest(self, costs: Floats) -> tuple[Ints, float]:
        """The cut whose nodes cost least together, of equal ones the finest: exact, from the leaves up.

        Returns
        -------
        cut
            The node that each leaf is shown as; shape (leaves,).
        cost
            What its nodes cost together.
        """
        best, taken = costs.copy(), np.ones(self.nodes, dtype=np.bool_)
        for level in range(len(self.groups) - 1):
            start, past, upper = self.starts[level], self.starts[level + 1], self.starts[level + 2]
            below = np.bincount(self.parent[start:past], weights=best[start:past], minlength=self.nodes)[past:upper]
            taken[past:upper] = costs[past:upper] < below
            best[past:upper] = np.minimum(costs[past:upper], below)
        return self._highest(taken), float(best[self.top])

    def _highest(self, taken: Flags) -> Ints:
        """Each leaf's highest ancestor among nodes that were taken; leaves all are."""
        found = np.full(len(self.leaves), UNSET, dtype=np.int64)
        for level in reversed(range(len(self.groups))):
            there = self.at(level)
            found = np.where((found == UNSET) & taken[there], there, found)
        return found

    def split(self, cut: Ints, node: int) -> Ints:
        """The cut with a node's children in its place; the same where it is a leaf."""
        level = self.level(node)
        return cut if level == 0 else np.where(cut == node, self.at(level - 1), cut)

    def merge(self, cut: Ints, node: int) -> Ints:
        """The cut with a node in the place of all below it."""
        return np.where(self.at(self.level(node)) == node, node, cut)

    def finest(self, cut: Ints) -> Ints:
        """The cut that shows the same items alike, by the finest labels."""
        only = np.bincount(self.parent[:-1], minlength=self.nodes) == 1
        for level in reversed(range(1, len(self.groups))):
            there = self.at(level)
            cut = np.where((cut == there) & only[there], self.at(level - 1), cut)
        return cut

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Of each node those below it."""
        found: list[list[int]] = [[] for _ in range(self.nodes)]
        for node, parent in enumerate(self.parent.tolist()):
            if parent != UNSET:
                found[parent].append(node)
        return tuple(map(tuple, found))

    def count_cuts(self, most: int) -> int:
        """How many cuts there are that show items differently; `most` + 1 where there are more than `most`."""
        counts = [0] * self.nodes
        for node, below in enumerate(self.children):
            cuts = prod(counts[child] for child in below) if below else 0
            counts[node] = min(cuts + (len(below) != 1), most + 1)
        return counts[self.top]

    def cuts(self) -> Iterator[Ints]:
        """All cuts, of those that show items alike the finest."""
        for nodes in self._cuts_below(self.top):
            taken = np.zeros(self.nodes, dtype=np.bool_)
            taken[list(nodes)] = True
            yield self._highest(taken)

    def _cuts_below(self, node: int) -> Iterator[tuple[int, ...]]:
        below = self.children[node]
        if len(below) != 1:
            yield (node,)
        if below:
            for parts in product(*(list(self._cuts_below(child)) for child in below)):
                yield tuple(n for part in parts for n in part)
