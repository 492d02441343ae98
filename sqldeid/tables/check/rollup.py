"""Fold the classes to a node once more, so that the nodes above it are checked on a smaller table.

Which node to fold to is guessed from the nodes that are asked for; a fold that does not pay is dropped and not tried
again. What is answered never depends on it.

Source: search.md §1, *Roll up*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import Fixed, fix, render
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.model.lattice import Node, below

LEAST_CLASSES = 8_000
"""Tables smaller than this are checked in less time than a fold takes."""

LEAST_NODES = 16
"""Nodes of a statement from which a fold is guessed."""

_KEPT = 4
_SHARE_ABOVE = 0.8
"""Share of the nodes asked for that a fold must serve."""

_WORTH = 0.6
"""A fold must leave at most this share of the table that it is made from."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """The classes of a node."""

    node: Node
    table: exp.Table
    written: Fixed
    size: int


class Rollups:
    """The tables to check nodes on; the source's own fold is always among them."""

    def __init__(self, engine: Engine, folded: Folded, name: str) -> None:
        self._engine, self._folded, self._name = engine, folded, name
        self._tables = [Rolled((0,) * len(folded.columns), folded.table, fix(folded.table), folded.size)]
        self._tried: set[Node] = set()

    @property
    def tables(self) -> list[exp.Table]:
        """All of them."""
        return [t.table for t in self._tables]

    def table(self, node: Node) -> Fixed:
        """The smallest table that holds the node's classes."""
        return self._smallest(node).written

    def size(self, node: Node) -> int:
        """Its rows."""
        return self._smallest(node).size

    def _smallest(self, node: Node) -> Rolled:
        return min((t for t in self._tables if below(t.node, node)), key=lambda t: t.size)

    def prepare(self, nodes: Sequence[Node]) -> None:
        """Fold to a node below most of these, where that promises smaller tables."""
        if len(nodes) < LEAST_NODES or self._folded.size < LEAST_CLASSES:
            return
        served = [self._smallest(n) for n in nodes]
        large = [n for n, t in zip(nodes, served, strict=True) if t.size >= LEAST_CLASSES]
        if len(large) < LEAST_NODES:
            return
        base = common_base(large)
        if base not in self._tried:
            self._tried.add(base)
            self._fold(base, self._smallest(base))

    def _fold(self, node: Node, source: Rolled) -> None:
        masks = self._folded.coding.masks(node)
        groups = [{"word": w, "mask": m} for w, m in zip(self._folded.words, masks, strict=True)]
        rolled = self._engine.make("tables/check/roll_up", f"{self._name}_rolled", classes=source.table, groups=groups)
        total = render("tables/fold/total_classes", classes=rolled, words=list(self._folded.words))
        size = int(self._engine.query(total).column("classes")[0].as_py())
        if size > _WORTH * source.size:
            self._engine.drop(rolled)
            return
        self._tables.append(Rolled(node, rolled, fix(rolled), size))
        if len(self._tables) > _KEPT + 1:
            self._engine.drop(self._tables.pop(1).table)


def common_base(nodes: Sequence[Node]) -> Node:
    """A high node below most of these: per axis the highest level that keeps the share that must be served."""
    kept, base = list(nodes), [0] * len(nodes[0])
    least = _SHARE_ABOVE * len(nodes)
    while True:
        raises = [(sum(n[j] > base[j] for n in kept), j) for j in range(len(base))]
        count, axis = max(raises)
        if count < least:
            return tuple(base)
        base[axis] += 1
        kept = [n for n in kept if n[axis] >= base[axis]]
