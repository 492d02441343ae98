"""Prove a bound in lattices too large for arrays: split them into boxes, always the one with the least bound.

A box [lo, hi] holds the nodes between two nodes; its bound is that of `lo`. A node y of it whose core fails closes
[lo, y]; what is left of the box are at most m boxes, each starting one level above y in one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from sqldeid.arrays import Ints, unique_rows
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.base import Problem
from sqldeid.tables.search.prediction import Prediction

_STATEMENT = 24
"""Nodes in a statement."""

_PEELED = 200
"""Boxes split between two looks at the clock."""

_CONFIDENT = 0.8
"""Probability of failing that a node is checked for."""


@dataclass(order=True, frozen=True, slots=True)
class _Box:
    """Nodes from `lo` to `hi`, none of which loses less than `bound` units."""

    bound: int
    lo: Node
    hi: Node


@dataclass(slots=True)
class _Failing:
    """Nodes known to fail with all their specialisations, as a growing matrix."""

    levels: Ints
    count: int = 0

    def add(self, node: Node) -> None:
        if self.count == len(self.levels):
            self.levels = np.concatenate([self.levels, np.zeros_like(self.levels)])
        self.levels[self.count] = node
        self.count += 1

    def above(self, node: Node) -> Ints:
        """The failing nodes that generalise `node`."""
        known = self.levels[: self.count]
        return known[(known >= np.array(node)).all(axis=1)]


@dataclass(slots=True)
class Boxes:
    """Branch and bound over boxes, continuing from what `problem.state` knows.

    Exact for every loss and criterion, at any size; how far it comes depends on the time. See `run`.
    """

    problem: Problem
    prediction: Prediction
    heap: list[_Box] = field(init=False)
    failing: _Failing = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        lattice = self.problem.lattice
        self.heap = [_Box(0, lattice.bottom, lattice.top)]
        self.failing = _Failing(np.zeros((64, len(lattice.heights)), dtype=np.int64))
        for evaluation in self.problem.state.checked.values():
            self._learn(evaluation)

    def run(self) -> bool:
        """Split and check until nothing is open or a limit is reached; whether the best node is proven optimal."""
        while nodes := self._gather():
            if self.problem.spent():
                return False
            for evaluation in (found := self.problem.ask(nodes)):
                self._learn(evaluation)
            self.prediction.learn(found)
        return not self.heap

    def _gather(self) -> list[Node]:
        """Split the boxes of least bound by what is known; the nodes to check for those that remain."""
        waiting: list[_Box] = []
        nodes: set[Node] = set()
        most = max(1, self.problem.room(_STATEMENT))
        while self.heap and len(nodes) < most and not (self.steps % _PEELED == 0 and self.problem.spent()):
            self.steps += 1
            box = heappop(self.heap)
            if self._closed(box):
                continue
            known = self._known(box)
            if known is not None:
                self._peel(box, known)
                continue
            waiting.append(box)
            nodes.add(self._propose(box))
        for box in waiting:
            heappush(self.heap, box)
        self._note()
        return sorted(nodes)

    def _note(self) -> None:
        """Publish the proven bound: the least of all boxes."""
        state = self.problem.state
        state.open = None
        if self.heap:
            state.bound = min(self.heap[0].bound, state.key[0]) if state.key else self.heap[0].bound

    def _closed(self, box: _Box) -> bool:
        """Whether no node of the box can be the answer: it loses more, or at most ties and comes later."""
        key = self.problem.state.key
        return key is not None and (box.bound, 0, box.lo) >= key

    def _known(self, box: _Box) -> Node | None:
        """The node whose known failing closes most of the box from below; `lo` if that was checked itself."""
        above = self.failing.above(box.lo)
        if len(above):
            meets = unique_rows(np.minimum(above, np.array(box.hi)))
            return max((tuple(int(x) for x in y) for y in meets), key=lambda y: self._rise(box, y))
        return box.lo if box.lo in self.problem.state.checked else None

    def _rise(self, box: _Box, node: Node) -> tuple[int, int]:
        """The least bound of what is left when [lo, node] is closed, and how much is closed."""
        bounds = [child.bound for child in self._children(box, node, box.bound)]
        return (min(bounds) if bounds else self.problem.worst() * 2, sum(node))

    def _peel(self, box: _Box, node: Node) -> None:
        """Replace a box by what is left of it without [lo, node]."""
        floor = box.bound
        checked = self.problem.state.checked.get(box.lo)
        if checked is not None and self.problem.loss.parts is None:
            floor = max(floor, self.problem.loss.whole(checked) + 1)
        for child in self._children(box, node, floor):
            if not self._closed(child):
                heappush(self.heap, child)

    def _children(self, box: _Box, node: Node, floor: int) -> list[_Box]:
        found, hi = [], list(box.hi)
        for j, (y, top) in enumerate(zip(node, box.hi, strict=True)):
            if y < top:
                lo = (*box.lo[:j], y + 1, *box.lo[j + 1 :])
                found.append(_Box(max(floor, self.problem.loss.bound(lo)), lo, tuple(hi)))
            hi[j] = y
        return found

    def _propose(self, box: _Box) -> Node:
        """A node of the box to check: as high as it is still likely to fail, raised where the bound rises least."""
        loss, node = self.problem.loss, list(box.lo)
        free = [j for j, (x, top) in enumerate(zip(box.lo, box.hi, strict=True)) if x < top]
        while free:
            costs = [loss.bound((*node[:j], node[j] + 1, *node[j + 1 :])) for j in free]
            j = free[int(np.argmin(costs))]
            node[j] += 1
            mean, deviation = self.prediction.at(np.array([node]))
            unlikely = float(self.prediction.fails(mean, deviation)[0]) < _CONFIDENT
            if unlikely or tuple(node) in self.problem.state.checked:
                node[j] -= 1
                free.remove(j)
            elif node[j] == box.hi[j]:
                free.remove(j)
        return tuple(node)

    def _learn(self, evaluation: Evaluation) -> None:
        if evaluation.core_failing > self.problem.allowed:
            self.failing.add(evaluation.node)
