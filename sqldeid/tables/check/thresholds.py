"""One check for several k: the class sizes of a node tell what every k suppresses.

A node that is asked for under one k is answered under all of them, so a search for the next k starts from what this one
learnt. Source: issue of the trade-off; search.md §1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.sql import load
from sqldeid.tables.check.check import NODES_PER_STATEMENT, Checker
from sqldeid.tables.model.evaluation import Evaluation, log_leaves
from sqldeid.tables.model.lattice import Node

LISTED_CLASSES = 4_000_000
"""Classes of the source, times nodes, that one statement may list: they are held all at once."""


@dataclass(slots=True)
class Thresholds:
    """Evaluations under k-anonymity for several k, each node counted once.

    Parameters
    ----------
    checker
        Of the folded source; its own k and limit are not used.
    ks
        Least class sizes, ascending.
    allowed
        Most rows that may be suppressed under any limit that is asked for: what suppresses more is not weighed.
    """

    checker: Checker
    ks: tuple[int, ...]
    allowed: int
    known: dict[int, dict[Node, Evaluation]] = field(init=False)

    def __post_init__(self) -> None:
        self.known = {k: {} for k in self.ks}
        load("tables/check/list_classes")

    @property
    def checks(self) -> int:
        """Nodes counted so far."""
        return len(self.known[self.ks[0]])

    def at(self, k: int, nodes: Sequence[Node]) -> list[Evaluation]:
        """The nodes' evaluations under one k, in their order; unknown nodes are counted for every k."""
        known = self.known[k]
        fresh = [node for node in dict.fromkeys(nodes) if node not in known]
        at_once = max(1, min(NODES_PER_STATEMENT, LISTED_CLASSES // max(self.checker.folded.size, 1)))
        for start in range(0, len(fresh), at_once):
            self._count(fresh[start : start + at_once])
        return [known[node] for node in nodes]

    def _count(self, nodes: Sequence[Node]) -> None:
        """One grouping a node answers for every k, with what the suppressed classes lose; NumPy does the rest."""
        checker = self.checker
        checker.prepare(nodes)
        read = checker.engine.ask(
            "tables/check/list_classes", nodes=[checker.arm(i, node) for i, node in enumerate(nodes)]
        )
        owner, size = read.column("node").to_numpy(), read.column("size").to_numpy()
        order = np.lexsort((size, owner))
        starts = np.searchsorted(owner[order], np.arange(len(nodes) + 1))
        words = [read.column(w.name).to_numpy() for w in checker.folded.words]
        for i, node in enumerate(nodes):
            mine = order[starts[i] : starts[i + 1]]
            self._learn(node, size[mine], words, mine)

    def _learn(self, node: Node, sizes: Ints, words: Sequence[Ints], mine: Ints) -> None:
        """All evaluations of one node.

        Parameters
        ----------
        sizes
            Of its classes, ascending.
        words, mine
            Coded values of all classes, and which of them are the node's.
        """
        cuts = np.searchsorted(sizes, self.ks)
        failing = np.concatenate([[0], np.cumsum(sizes)])[cuts].tolist()
        squares = int((sizes * sizes).sum())
        weighed = [i for i, rows in enumerate(failing) if rows <= self.allowed]
        last = int(cuts[weighed[-1]]) if weighed else 0
        leaves = logs = np.zeros((1, len(node)), dtype=np.int64)
        if last:
            lost = self.checker.leaves(node, [w[mine[:last]] for w in words])
            leaves, logs = (
                np.concatenate([leaves, np.cumsum(own * sizes[:last, None], axis=0)])
                for own in (lost, log_leaves(lost + 1))
            )
        for i, k in enumerate(self.ks):
            plain, own = (tuple(x[cuts[i]].tolist()) if i in weighed else None for x in (leaves, logs))
            found = Evaluation(node, failing[i], failing[i], len(sizes), squares, plain, suppressed_logs=own)
            self.known[k][node] = found
