"""The proof that comes with an optimum: a split tree of boxes that covers the lattice. Pure; nothing is enumerated.

A box is all nodes between `lo` and `hi`. A leaf of the tree says why no node of its box can win:

    F   hi ≼ y, and the criteria's core fails at y for more rows than may be suppressed
    B   the data-free bound at lo is beyond the best loss
    P   hi ≼ y, and suppressing the rows that fail the core at y costs every node of the box too much (or decides a tie)
    D   lo ≽ y, and no generalisation of y can win by what it loses (losses of whole classes)
    N   the box is one node, which is listed and checked

Checking the proof is linear in its leaves and needs the listed nodes' evaluations and the marginals, nothing else.

Source: search.md, *The certificate*; soundness.md 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqldeid.tables.model.evaluation import Evaluation, admissible
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import Loss

MOST_LEAVES = 200_000
"""A proof that needs more is given up: "not proven", never "ok"."""

Leaf = tuple[str, int]
Split = tuple[int, int]
Tree = Sequence[Leaf | Split]
"""Preorder: (axis, cut) splits a box into levels <= cut and levels > cut; (kind, number of the listed node) ends it."""


class NotProvenError(Exception):
    """The checks do not cover the lattice, or covering it takes too many boxes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be proven: no node of the lattice beats `best` (units of loss, suppressed rows, node).

    Parameters
    ----------
    heights
        Levels per quasi-identifier.
    allowed
        Most rows that may be suppressed.
    target
        Units that no node is below; those of `best` for a proof of optimality.
    optimal
        Whether ties are decided too: no node at all is better than `best`. Else only the bound is claimed, a gap.
    """

    heights: tuple[int, ...]
    allowed: int
    loss: Loss
    best: tuple[int, int, Node]
    target: int
    optimal: bool

    def beyond(self, units: int, suppressed: int, lo: Node) -> bool:
        """Whether nodes from `lo` upwards that lose at least `units` and suppress at least `suppressed` cannot win."""
        if not self.optimal:
            return units >= self.target
        if units != self.target:
            return units > self.target
        return suppressed > self.best[1] or (suppressed == self.best[1] and lo > self.best[2])

    def rounded(self, sums: int) -> int:
        """Guarded sums of parts as units."""
        return (sums + (1 << self.loss.guard >> 1)) >> self.loss.guard


@dataclass(frozen=True, slots=True)
class Facts:
    """What the listed nodes' checks prove, for one claim."""

    claim: Claim
    nodes: tuple[Evaluation, ...]

    def part(self, axis: int, level: int) -> int:
        """Guarded units that a column adds at a level before suppression."""
        parts = self.claim.loss.parts
        return 0 if parts is None else parts[axis][level]

    def bounded(self, lo: Node) -> bool:
        """B: the data-free bound."""
        sums = sum(self.part(j, x) for j, x in enumerate(lo))
        return self.claim.beyond(self.claim.rounded(sums), 0, lo)

    def failed(self, number: int, hi: Node) -> bool:
        """F: a node whose core fails for too many rows, at or above `hi`."""
        y = self.nodes[number]
        return y.core_failing > self.claim.allowed and _at_most(hi, y.node)

    def penalised(self, number: int, lo: Node, hi: Node) -> bool:
        """P: what the rows that fail the core at y cost everywhere in the box."""
        y, loss = self.nodes[number], self.claim.loss
        if not y.core_failing or not _at_most(hi, y.node):
            return False
        sums = sum(min(self.kept(y, j, x) for x in range(lo[j], hi[j] + 1)) for j in range(len(lo)))
        units = self.claim.rounded(sums) + loss.suppressed_row * y.core_failing
        return self.claim.beyond(units, y.core_failing, lo)

    def kept(self, y: Evaluation, axis: int, level: int) -> int:
        """A column's part at a level, less the most that the rows suppressed below y can save there (guard is 0)."""
        loss = self.claim.loss
        if not loss.suppressed_row:
            return self.part(axis, level)
        saved = y.core_failing * loss.widest[axis][level]
        if (lost := loss.core_lost(y)) is not None:  # of all failing rows, so of those of the core at most as much
            saved = min(saved, lost[axis])
        return self.part(axis, level) - saved

    def crowded(self, number: int, lo: Node) -> bool:
        """D: a loss of whole classes only grows upwards, and where two nodes lose the same they have the same classes.

        So an admissible y that is not better than the best decides for all above it. Of a y that is not admissible,
        whatever is admissible above has other classes: it loses one unit more at least.
        """
        y, loss = self.nodes[number], self.claim.loss
        if loss.parts is not None or not _at_most(y.node, lo):
            return False
        if admissible(y, self.claim.allowed):
            return self.loses(y) and loss.whole(y) >= self.claim.target
        return self.claim.beyond(loss.whole(y) + 1, 0, lo)

    def listed(self, number: int, lo: Node, hi: Node) -> bool:
        """N: one node, checked."""
        y = self.nodes[number]
        return lo == hi == y.node and self.loses(y)

    def loses(self, y: Evaluation) -> bool:
        """Whether a checked node is not better than the best (or than the target of a gap)."""
        if not admissible(y, self.claim.allowed):
            return True
        units = self.claim.loss.least(y)
        if not self.claim.optimal:
            return units >= self.claim.target
        return (units, y.failing, y.node) >= self.claim.best

    def holds(self, leaf: Leaf, lo: Node, hi: Node) -> bool:
        """Whether a leaf's reason is true of its box."""
        kind, number = leaf
        if kind == "B":
            return self.bounded(lo)
        if not 0 <= number < len(self.nodes):
            return False
        if kind == "F":
            return self.failed(number, hi)
        if kind == "P":
            return self.penalised(number, lo, hi)
        return self.crowded(number, lo) if kind == "D" else kind == "N" and self.listed(number, lo, hi)


def _at_most(x: Node, y: Node) -> bool:
    return all(a <= b for a, b in zip(x, y, strict=True))


def proves(tree: Tree, facts: Facts) -> bool:
    """Whether a tree's leaves hold and, by their splits, cover the whole lattice. Linear in the leaves."""
    heights = facts.claim.heights
    boxes = [((0,) * len(heights), tuple(h - 1 for h in heights))]
    for step in tree:
        if not boxes:
            return False
        lo, hi = boxes.pop()
        first, second = step
        if isinstance(first, str):
            if not facts.holds((first, second), lo, hi):
                return False
            continue
        if not (0 <= first < len(lo) and lo[first] <= second < hi[first]):
            return False
        boxes.append((_with(lo, first, second + 1), hi))
        boxes.append((lo, _with(hi, first, second)))
    return not boxes


def _with(node: Node, axis: int, level: int) -> Node:
    return (*node[:axis], level, *node[axis + 1 :])
