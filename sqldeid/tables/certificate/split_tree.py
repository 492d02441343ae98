"""Build a certificate's split tree from the checks of a search. Pure. See `certificate` for what a leaf means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.certificate.certificate import MOST_LEAVES, Claim, Facts, Leaf, NotProvenError, Split, Tree, _with
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Node

_TRIED = 4
"""Covering nodes tried for a penalty, those with most failing rows first; all of them for a single node."""


def cover(claim: Claim, checked: Mapping[Node, Evaluation]) -> tuple[Tree, tuple[Evaluation, ...]]:
    """A tree over as few of the checked nodes as it needs, and these nodes.

    Raises
    ------
    NotProvenError
        If the checks do not cover the lattice, or too many boxes are needed.
    """
    builder = _Builder(Facts(claim, tuple(checked.values())))
    tree = builder.build()
    used = sorted({leaf[1] for leaf in tree if isinstance(leaf[0], str) and leaf[0] != "B"})
    number = {old: new for new, old in enumerate(used)}
    renumbered = [(step[0], number.get(step[1], -1)) if isinstance(step[0], str) else step for step in tree]
    return renumbered, tuple(builder.facts.nodes[i] for i in used)


class _Builder:
    """Boxes are shrunk by slabs that one leaf closes, and split where no slab is left."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        nodes = np.array([e.node for e in facts.nodes], dtype=np.int64).reshape(len(facts.nodes), -1)
        fails = np.array([e.core_failing > facts.claim.allowed for e in facts.nodes], dtype=np.bool_)
        core = np.array([e.core_failing for e in facts.nodes], dtype=np.int64)
        self.nodes = nodes
        self.failing = _maximal(nodes, np.flatnonzero(fails))
        penal = np.flatnonzero(~fails & (core > 0))
        self.penal = penal[np.argsort(-core[penal], kind="stable")]
        loss, target = facts.claim.loss, facts.claim.target
        self.crowding = (
            [i for i, e in enumerate(facts.nodes) if facts.loses(e) and loss.whole(e) + 1 >= target]
            if loss.parts is None
            else []
        )
        self.by_node = {e.node: i for i, e in enumerate(facts.nodes)}
        self.tree: list[Leaf | Split] = []
        self.leaves = 0

    def build(self) -> Tree:
        heights = self.facts.claim.heights
        everything = (self.failing, self.penal)
        stack = [((0,) * len(heights), tuple(h - 1 for h in heights), everything)]
        while stack:
            lo, hi, near = stack.pop()
            near = (self._reaching(near[0], lo), self._reaching(near[1], lo))
            leaf = self._leaf(lo, hi, near)
            if leaf is not None:
                self._close(leaf)
                continue
            axis, cut = self._split(lo, hi, near)
            self.tree.append((axis, cut))
            stack.append((_with(lo, axis, cut + 1), hi, near))
            stack.append((lo, _with(hi, axis, cut), near))
        return self.tree

    def _close(self, leaf: Leaf) -> None:
        self.leaves += 1
        if self.leaves > MOST_LEAVES:
            raise NotProvenError(f"the proof takes more than {MOST_LEAVES} boxes")
        self.tree.append(leaf)

    def _reaching(self, numbers: Ints, lo: Node) -> Ints:
        """The nodes at or above `lo`: only these cover anything in the box."""
        return numbers[(self.nodes[numbers] >= np.array(lo)).all(axis=1)]

    def _leaf(self, lo: Node, hi: Node, near: tuple[Ints, Ints]) -> Leaf | None:
        facts = self.facts
        if facts.bounded(lo):
            return ("B", -1)
        above = near[0][(self.nodes[near[0]] >= np.array(hi)).all(axis=1)]
        if len(above):
            return ("F", int(above[0]))
        for i in self._covering(near[1], hi, len(near[1]) if lo == hi else _TRIED):
            if facts.penalised(i, lo, hi):
                return ("P", i)
        for i in self.crowding:
            if facts.crowded(i, lo):
                return ("D", i)
        if lo != hi:
            return None
        number = self.by_node.get(lo)
        if number is None or not facts.loses(facts.nodes[number]):
            raise NotProvenError("the checks made do not cover the lattice")
        return ("N", number)

    def _covering(self, numbers: Ints, hi: Node, most: int) -> list[int]:
        cover = numbers[(self.nodes[numbers] >= np.array(hi)).all(axis=1)]
        return [int(i) for i in cover[:most]]

    def _split(self, lo: Node, hi: Node, near: tuple[Ints, Ints]) -> Split:
        """A cut that leaves one side closed at once, if there is one; else one towards the widest failing node."""
        return self._upper_slab(lo, hi, near[1]) or self._lower_slab(lo, hi, near[0]) or self._pivot(lo, hi, near)

    def _upper_slab(self, lo: Node, hi: Node, penal: Ints) -> Split | None:
        """The widest top slab that a bound or a penalty closes."""
        facts, best = self.facts, None
        covering = self._covering(penal, hi, 1)
        for axis in range(len(lo)):
            for level in range(lo[axis] + 1, hi[axis] + 1):
                start = _with(lo, axis, level)
                if facts.bounded(start) or any(facts.penalised(i, start, hi) for i in covering):
                    share = (hi[axis] - level + 1) / (hi[axis] - lo[axis] + 1)
                    best = max(best, (share, axis, level - 1)) if best else (share, axis, level - 1)
                    break
        return (best[1], best[2]) if best else None

    def _lower_slab(self, lo: Node, hi: Node, failing: Ints) -> Split | None:
        """The widest bottom slab below one failing node: it reaches `hi` in every axis but one."""
        if not len(failing):
            return None
        nodes = self.nodes[failing]
        short = nodes < np.array(hi)
        near = np.flatnonzero(short.sum(axis=1) == 1)
        if not len(near):
            return None
        axes = short[near].argmax(axis=1)
        cuts = nodes[near, axes]
        low, high = np.array(lo)[axes], np.array(hi)[axes]
        widest = int(np.argmax((cuts - low + 1) / (high - low + 1)))
        return int(axes[widest]), int(cuts[widest])

    def _pivot(self, lo: Node, hi: Node, near: tuple[Ints, Ints]) -> Split:
        """Towards the node that covers most of the box."""
        low, high = np.array(lo), np.array(hi)
        numbers = near[0] if len(near[0]) else near[1]
        if len(numbers):
            reach = np.minimum(self.nodes[numbers], high)
            best = reach[int(np.argmax((np.log(reach - low + 1.0)).sum(axis=1)))]
            gaps = np.where(best < high, (high - best) / (high - low + 1.0), -1.0)
            axis = int(np.argmax(gaps))
            if gaps[axis] > 0:
                return axis, int(best[axis])
        axis = int(np.argmax(high - low))
        return axis, int((low[axis] + high[axis]) // 2)


def _maximal(nodes: Ints, numbers: Ints) -> Ints:
    """The nodes that no other one lies above."""
    ordered = numbers[np.argsort(-nodes[numbers].sum(axis=1), kind="stable")]
    kept: list[int] = []
    for i in ordered:
        if not kept or not (nodes[kept] >= nodes[i]).all(axis=1).any():
            kept.append(int(i))
    return np.array(kept, dtype=np.int64)
