"""Nodes → SQL → evaluations: many nodes in one statement, on the folded classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import identifier, render
from sqldeid.tables.evaluation import Evaluation, admissible
from sqldeid.tables.fold import Folded
from sqldeid.tables.lattice import Node

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
    _leaves: tuple[exp.Table, ...] = field(default=(), init=False)

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        done: list[Evaluation] = []
        for start in range(0, len(nodes), NODES_PER_STATEMENT):
            done += self._batch(nodes[start : start + NODES_PER_STATEMENT], histogram)
        return done

    def _batch(self, nodes: Sequence[Node], histogram: bool) -> list[Evaluation]:
        arms = [self.arm(i, node) for i, node in enumerate(nodes)]
        rows = self.engine.query(
            render("tables/check_nodes", classes=self.folded.table, nodes=arms, k=self.k)
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
        read = self.engine.query(render("tables/histogram_nodes", classes=self.folded.table, nodes=arms))
        sizes: dict[int, dict[int, int]] = {}
        for node, size, classes in zip(*(read.column(c).to_pylist() for c in ("node", "size", "classes")), strict=True):
            sizes.setdefault(node, {})[size] = classes
        return sizes

    def _weighed(self, found: list[Evaluation], arms: Sequence[dict[str, object]]) -> list[Evaluation]:
        """The suppressed leaves of the admissible nodes."""
        none = (0,) * len(self.folded.columns)
        ask = [i for i, e in enumerate(found) if admissible(e, self.allowed) and e.failing]
        weighed = self._weigh([arms[i] for i in ask]) if ask else {}
        return [
            _with_leaves(e, weighed.get(i, none)) if admissible(e, self.allowed) else e for i, e in enumerate(found)
        ]

    def _weigh(self, arms: Sequence[dict[str, object]]) -> dict[int, tuple[int, ...]]:
        columns = [
            {
                "alias": identifier(f"h{j}"),
                "word": self.folded.words[c.field.word],
                "mask": c.field.mask(0),
                "leaves": table,
                "sum": identifier(f"s{j}"),
            }
            for j, (c, table) in enumerate(zip(self.folded.columns, self.leaves(), strict=True))
        ]
        read = self.engine.query(
            render("tables/weigh_suppressed", classes=self.folded.table, nodes=arms, k=self.k, columns=columns)
        )
        return {row["node"]: tuple(int(row[f"s{j}"]) for j in range(len(columns))) for row in read.to_pylist()}

    def leaves(self) -> tuple[exp.Table, ...]:
        """Per quasi-identifier, the table (level, prefix, leaves); made once."""
        if not self._leaves:
            self._leaves = tuple(self._leaf_table(j) for j in range(len(self.folded.columns)))
        return self._leaves

    def _leaf_table(self, j: int) -> exp.Table:
        coded = self.folded.columns[j]
        levels = range(coded.hierarchy.height)
        prefixes = [coded.prefixes(level) for level in levels]
        rows = pa.table(
            {
                "level": np.concatenate([np.full(len(p), level, dtype=np.int64) for level, p in enumerate(prefixes)]),
                "prefix": np.concatenate(prefixes),
                "leaves": np.concatenate([coded.marginal.leaves[level] for level in levels]),
            }
        )
        return self.engine.put(f"{self.name}_leaves_{j}", rows)

    def arm(self, number: int, node: Node) -> dict[str, object]:
        """One node's part of a statement: what to group by, and its levels."""
        masks = self.folded.coding.masks(node)
        groups = [{"word": w, "mask": m} for w, m in zip(self.folded.words, masks, strict=True)]
        return {"id": number, "groups": groups, "levels": list(node)}


def _with_leaves(evaluation: Evaluation, leaves: tuple[int, ...]) -> Evaluation:
    return Evaluation(
        evaluation.node,
        evaluation.core_failing,
        evaluation.failing,
        evaluation.classes,
        evaluation.squares,
        leaves,
        evaluation.histogram,
    )
