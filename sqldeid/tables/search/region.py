"""What is known about every node of a lattice that fits in memory: one array axis per quasi-identifier.

Every specialisation of a node is a slice, and so is every generalisation. What a check proves is written there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Flags, Floats
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.base import Problem

Number = TypeVar("Number", np.float64, np.float32)

_EXACT = 2**53
"""Integers up to here are exact in the arrays."""


def outer_sum(tables: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
    """The array whose entry at a node is the sum of one table entry per axis."""
    total = tables[0].copy()  # of a single axis the sum would be the table itself, and writing to it would spoil that
    for table in tables[1:]:
        total = total[..., None] + table
    return total


class Region:
    """Lower bounds and status of all nodes of one problem.

    Attributes
    ----------
    least
        Units that the node loses at least, if it is admissible and its loss is not known yet.
    suppressed
        Rows that the node suppresses at least.
    unknown
        Whether the node was neither checked nor found below a node whose core fails for too many rows.
    margin
        Units by which `least` may be off by rounding; 0 where all numbers are exact, then ties are decided here.

    Notes
    -----
    What a check of y proves (for any criterion with a monotone core):

    - core_failing(y) > allowed: every x ≼ y fails.
    - x ≼ y suppresses at least core_failing(y) rows, which lose at x by generalisation no more than they do at y, and
      no more than the widest group of x's level; suppressed they lose everything.
    - `dm_star`, `class_size`: x ≽ y that loses the same has the same classes as y, so it cannot win over y. Ties of
      these are decided by order alone, as their certificate decides them.
    """

    def __init__(self, problem: Problem) -> None:
        loss, self.problem = problem.loss, problem
        self.shape = problem.lattice.heights
        zeros = [np.zeros(h) for h in self.shape]
        parts = loss.parts
        self.parts = zeros if parts is None else [_floats(p, loss.guard) for p in parts]
        self._widest = [_floats(p, 0) for p in loss.widest]
        worst = problem.worst() + loss.bound(problem.lattice.top)
        self.margin = 0.0 if worst < _EXACT and not loss.guard else max(1.0, worst * 2.0**-44)
        self.least = outer_sum(self.parts)
        self.suppressed = np.zeros(self.shape, dtype=np.int32 if problem.rows < 2**31 else np.int64)
        self.unknown = np.ones(self.shape, dtype=np.bool_)

    def learn(self, evaluation: Evaluation) -> None:
        """Write down what a check proves."""
        node = evaluation.node
        downset = tuple(slice(0, x + 1) for x in node)
        if self.problem.loss.parts is None:
            upset = self.least[tuple(slice(x, None) for x in node)]
            np.maximum(upset, self.problem.loss.whole(evaluation) + 1, out=upset)
        if evaluation.core_failing > self.problem.allowed:
            self.unknown[downset] = False
        elif evaluation.core_failing:
            below = self.suppressed[downset]
            np.maximum(below, evaluation.core_failing, out=below)
            self._penalise(evaluation)
        self.unknown[node] = False

    def _penalise(self, evaluation: Evaluation) -> None:
        """Raise `least` below a checked node by what its suppressed rows lose there at least."""
        loss, rows, node = self.problem.loss, evaluation.core_failing, evaluation.node
        if not loss.suppressed_row:
            return
        lost = loss.core_lost(evaluation) or (None,) * len(node)
        tables = []
        for part, widest, own, x in zip(self.parts, self._widest, lost, node, strict=True):
            saved = rows * widest[: x + 1]
            tables.append(part[: x + 1] - (saved if own is None else np.minimum(saved, float(own))))
        tables[0] = tables[0] + float(loss.suppressed_row * rows)
        below = self.least[tuple(slice(0, x + 1) for x in node)]
        np.maximum(below, outer_sum(tables), out=below)

    def open(self) -> Flags:
        """The nodes that may still be the answer."""
        key = self.problem.state.key
        if key is None:
            return self.unknown.copy()
        flags: Flags = self.unknown & (self.least <= key[0] + self.margin)
        if not self.margin:
            self._settle_ties(flags, key[0], key[1], key[2])
        return flags

    def _settle_ties(self, flags: Flags, units: int, suppressed: int, best: Node) -> None:
        """Close the nodes that at most equal the best loss and cannot win by fewer suppressed rows or by order."""
        ties = np.flatnonzero(flags & (self.least == units))
        rows = self.suppressed.ravel()[ties] * (self.problem.loss.parts is not None)
        first = np.ravel_multi_index(best, self.shape)
        lost = ties[(rows > suppressed) | ((rows == suppressed) & (ties > first))]
        flags.ravel()[lost] = False
        self.least.ravel()[lost] = units + 1

    def bound(self, flags: Flags) -> int:
        """Units that no open node can be below; the best loss where none is open."""
        key = self.problem.state.key
        if not flags.any():
            return key[0] if key else 0
        least = int(self.least[flags].min() - self.margin)
        return max(0, least if key is None else min(least, key[0]))


def _floats(part: Sequence[int], guard: int) -> Floats:
    """Units as floats; exact below 2**53."""
    return np.array([float(p / 2**guard) if guard else float(p) for p in part])
