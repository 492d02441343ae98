"""Nodes → SQL → evaluations: many nodes in one statement, on the folded classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sqldeid.engine.base import Engine
from sqldeid.sql import render
from sqldeid.tables.evaluation import Counts, Evaluation, admissible
from sqldeid.tables.fold import Folded
from sqldeid.tables.lattice import Node
from sqldeid.tables.rollup import Rollups

NODES_PER_STATEMENT = 64
"""Longer statements cost more to plan than they save in round trips."""


@dataclass(slots=True)
class Checker:
    """`evaluate` of the search, answered by the engine; one statement for a batch, a second for what passes.

    Parameters
    ----------
    allowed
        Most rows that may be suppressed; only admissible nodes are asked for their suppressed leaves.
    """

    engine: Engine
    folded: Folded
    k: int
    allowed: int
    name: str
    _leaves: dict[tuple[int, int], tuple[Counts, Counts]] = field(default_factory=dict, init=False)
    _rollups: Rollups = field(init=False)

    def __post_init__(self) -> None:
        self._rollups = Rollups(self.engine, self.folded, self.name)

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes, in their order."""
        done: list[Evaluation] = []
        for start in range(0, len(nodes), NODES_PER_STATEMENT):
            done += self._batch(nodes[start : start + NODES_PER_STATEMENT], histogram)
        return done

    def _batch(self, nodes: Sequence[Node], histogram: bool) -> list[Evaluation]:
        self._rollups.prepare(nodes)
        arms = [self.arm(i, node) for i, node in enumerate(nodes)]
        rows = self.engine.query(
            render("tables/check_nodes", nodes=arms, k=self.k)
        ).to_pylist()
        sizes = self._histograms(arms) if histogram else {}
        found = {
            int(row["node"]): Evaluation(
                nodes[row["node"]],
                core_failing=int(row["failing"]),
                failing=int(row["failing"]),
                classes=int(row["classes"]),
                squares=int(row["squares"]),
                histogram=sizes.get(int(row["node"])),
            )
            for row in rows
        }
        return self._weighed([found[i] for i in range(len(nodes))], arms)

    def _histograms(self, arms: Sequence[dict[str, object]]) -> dict[int, dict[int, int]]:
        read = self.engine.query(render("tables/histogram_nodes", nodes=arms))
        sizes: dict[int, dict[int, int]] = {}
        for node, size, classes in zip(*(read.column(c).to_pylist() for c in ("node", "size", "classes")), strict=True):
            sizes.setdefault(node, {})[size] = classes
        return sizes

    def _weighed(self, found: list[Evaluation], arms: Sequence[dict[str, object]]) -> list[Evaluation]:
        """The suppressed leaves of the admissible nodes."""
        none = (0,) * len(self.folded.columns)
        ask = [i for i, e in enumerate(found) if admissible(e, self.allowed) and e.failing]
        weighed = self._weigh([arms[i] for i in ask], [found[i].node for i in ask]) if ask else {}
        return [
            replace(e, suppressed_leaves=weighed.get(i, none)) if admissible(e, self.allowed) else e
            for i, e in enumerate(found)
        ]

    def _weigh(self, arms: Sequence[dict[str, object]], nodes: Sequence[Node]) -> dict[int, tuple[int, ...]]:
        """Suppressed classes come back, NumPy looks their leaves up: as a join in SQL it took ten times as long."""
        read = self.engine.query(render("tables/list_failing", nodes=arms, k=self.k))
        owner = read.column("node").to_numpy()
        size = read.column("size").to_numpy()
        words = [read.column(w.name).to_numpy() for w in self.folded.words]
        found = {}
        for arm, node in zip(arms, nodes, strict=True):
            mine = np.flatnonzero(owner == arm["id"])
            sums = (
                int((size[mine] * self._leaves_of(j, level, words[c.field.word][mine])).sum())
                for j, (c, level) in enumerate(zip(self.folded.columns, node, strict=True))
            )
            found[int(str(arm["id"]))] = tuple(sums)
        return found

    def _leaves_of(self, column: int, level: int, words: Counts) -> Counts:
        """Leaves, less one, of the generalised values of one column; shape as `words`."""
        coded = self.folded.columns[column]
        if (column, level) not in self._leaves:
            prefixes = coded.prefixes(level)
            order = np.argsort(prefixes)
            self._leaves[column, level] = (prefixes[order], coded.marginal.leaves[level][order] - 1)
        prefixes, leaves = self._leaves[column, level]
        found: Counts = leaves[np.searchsorted(prefixes, words & np.int64(coded.field.mask(level)))]
        return found

    def arm(self, number: int, node: Node) -> dict[str, object]:
        """One node's part of a statement: what to group by."""
        masks = self.folded.coding.masks(node)
        groups = [{"word": w, "mask": m} for w, m in zip(self.folded.words, masks, strict=True)]
        return {"id": number, "groups": groups, "classes": self._rollups.table(node)}
