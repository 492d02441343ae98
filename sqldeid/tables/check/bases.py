"""Leave the distinct combinations in the source engine where they are too many to copy, and copy coarser classes.

A *base* is a node to which the source engine rolled its classes up. Once they are on the bench, every node above it is
checked there, as on the fold itself. Bases are made for the nodes that the search asks for, so that no node is left out
of the lattice and nothing that a search proves depends on them. What is below every base that is worth the way is
counted where the source is: a node with more classes than that hardly ever passes, since a passing one has no more
than one class for each row it may suppress and one for every k of the others.

Source: search.md §1, *Roll up*.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import SqldeidError
from sqldeid.sql import literal
from sqldeid.tables.check.check import Checker
from sqldeid.tables.fold.fold import Folded, onto_bench
from sqldeid.tables.fold.sensitive import code_name
from sqldeid.tables.model.evaluation import Evaluation, admissible
from sqldeid.tables.model.lattice import Node, below
from sqldeid.tables.plan.plan import TablePlan

CLASS_BYTES = 48
"""Memory of the bench that a class takes while it is grouped: what DuckDB can hold of them without spilling."""

_KEPT = 6
"""Bases kept on the bench; the one used longest ago is dropped first."""

_WORTH = 0.6
"""Classes that stay in the source engine must be at most this share of what they were rolled up from."""

_LARGEST = 700.0
"""Nats of which the exponential is still a float."""

_SIZE = re.compile(r"([0-9.]+) ?(bytes?|[KMGT]i?B)")
_UNITS = {"b": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def most_classes(bench: Engine) -> int:
    """Classes that the bench's memory limit has room for; more of them stay in the source engine."""
    read = bench.row("engine/read_setting", setting=literal("memory_limit"))
    found = _SIZE.fullmatch(read["value"] or "")
    if found is None:
        return sys.maxsize
    return max(1, int(float(found[1]) * 1024 ** _UNITS[found[2][0]]) // CLASS_BYTES)


def room(plan: TablePlan, engine: Engine) -> int | None:
    """Classes that a release of this plan may bring to the bench before its search; None where it needs all of them."""
    return most_classes(engine.bench) if plan.search.by_nodes and not plan.many and plan.population is None else None


@dataclass(slots=True, eq=False)
class _Base:
    """Classes of a node in the source engine, `size` rows; with what checks on them once they are on the bench."""

    node: Node
    there: exp.Table
    size: int
    checker: Checker | None = None


@dataclass(slots=True)
class Bases(Checker):
    """Checks nodes on as few classes as their bases have; for the search it is a checker like any other.

    Parameters
    ----------
    plan
        What was folded.
    source
        The engine that holds the classes: `folded.table` is one of its tables.
    most
        Rows of a base that are brought to the bench: classes, split by sensitive values where criteria look at them.
    checking
        What checks on classes that were brought.

    Notes
    -----
    Cost: one `GROUP BY` of the source engine for a base, and one for each node that is counted there.
    """

    plan: TablePlan = field(kw_only=True)
    source: Engine = field(kw_only=True)
    most: int = field(kw_only=True)
    checking: Callable[[Folded], Checker] = field(kw_only=True)
    _leaves_at: _Base = field(init=False)
    _bases: list[_Base] = field(default_factory=list, init=False)
    _sizes: Sizes = field(init=False)

    def __post_init__(self) -> None:
        Checker.__post_init__(self)
        self._leaves_at = _Base((0,) * len(self.folded.columns), self.folded.table, self.folded.size)
        self._sizes = Sizes.of(self.folded)

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes, in their order."""
        found: dict[Node, Evaluation] = {}
        if histogram:
            found = {node: self._counted(node, histogram=True) for node in nodes}
        else:
            self._answer(sorted(set(nodes)), found)
        return [found[node] for node in nodes]

    def prepare(self, nodes: Sequence[Node]) -> None:
        """Nothing: bases are made when nodes are checked."""

    def near(self, node: Node) -> Checker:
        """What checks a node on the bench; its classes are brought there, however many, if they are not yet."""
        base = self._base_of(node) or self._bring(self._roll_up(node))
        return self._used(base)

    def _answer(self, nodes: Sequence[Node], found: dict[Node, Evaluation]) -> None:
        """Check nodes where they have a base; the others on one made for all of them, or for each part of them."""
        for base in [b for b in self._tables() if b.checker is not None]:
            mine = [node for node in nodes if node not in found and self._base_of(node) is base]
            if mine:
                found.update(zip(mine, self._used(base)(mine), strict=True))
        rest = [node for node in nodes if node not in found]
        if not rest:
            return
        if self._base_for(rest):
            self._answer(rest, found)
        elif len(rest) > 1:
            for part in self._parts(rest):
                self._answer(part, found)
        else:
            found[rest[0]] = self._counted(rest[0])

    def _base_for(self, nodes: Sequence[Node]) -> bool:
        """Make a base for nodes, if its classes promise to be few enough to travel, and are."""
        node = meet(nodes)
        if self._sizes.expected(node) > self.most:
            return False
        base = self._roll_up(node)
        if base.size <= self.most:
            self._bring(base)
            return True
        if base.size <= _WORTH * self._parent(node).size:
            self._keep(base)
        else:
            self._forget(base)
        return False

    def _counted(self, node: Node, *, histogram: bool = False) -> Evaluation:
        """Check a node where its classes are; bring them only if it passes there, for all that is asked of it then."""
        arm = {**self.arm(0, node), "classes": self._parent(node).there}
        read = self.source.ask("tables/check/histogram_nodes", nodes=[arm])
        sizes = dict(zip(*(map(int, read.column(c).to_pylist()) for c in ("size", "classes")), strict=True))
        failing = sum(size * n for size, n in sizes.items() if size < self.k)
        squares = sum(size * size * n for size, n in sizes.items())
        found = Evaluation(node, failing, failing, sum(sizes.values()), squares)
        if admissible(found, self.allowed):
            [found] = self.near(node)([node])
        return replace(found, histogram=sizes if histogram else None)

    def _parts(self, nodes: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        """Nodes in two parts, by whether a column is above the level that all share; so that their bases are small."""
        low = meet(nodes)
        cuts = []
        for j, level in enumerate(low):
            above = [n for n in nodes if n[j] > level]
            if above:
                cuts.append((above, [n for n in nodes if n[j] == level]))
        return min(cuts, key=lambda cut: sum(self._sizes.expected(meet(part)) for part in cut))

    def _tables(self) -> list[_Base]:
        """All that is kept, the source's own classes first."""
        return [self._leaves_at, *self._bases]

    def _base_of(self, node: Node) -> _Base | None:
        """The smallest base on the bench below a node."""
        there = (b for b in self._tables() if b.checker is not None and below(b.node, node))
        return min(there, key=lambda b: b.size, default=None)

    def _parent(self, node: Node) -> _Base:
        """The smallest table of the source engine that holds the node's classes."""
        return min((b for b in self._tables() if below(b.node, node)), key=lambda b: b.size)

    def _used(self, base: _Base) -> Checker:
        """A base's checker; it is now the one used last."""
        if base in self._bases:
            self._bases.remove(base)
            self._bases.append(base)
        if base.checker is None:
            raise SqldeidError("the classes of a base were asked for before they were brought")
        return base.checker

    def _roll_up(self, node: Node) -> _Base:
        """The classes of a node, in the source engine."""
        parent = self._parent(node)
        if parent.node == node:
            return parent
        masks = self.folded.coding.masks(node)
        groups = [{"word": w, "mask": m} for w, m in zip(self.folded.words, masks, strict=True)]
        groups += [{"word": code_name(i), "mask": -1} for i in range(len(self.folded.sensitive))]
        there = self.source.make("tables/check/roll_up", f"{self.name}_base", classes=parent.there, groups=groups)
        size = int(self.source.row("engine/count_rows", table=there)["rows"])
        self._sizes.known[node] = size
        return _Base(node, there, size)

    def _bring(self, base: _Base) -> _Base:
        """Bring a base's classes to the bench."""
        at = replace(self.folded, table=base.there, size=base.size)
        base.checker = self.checking(onto_bench(self.plan, self.source, at))
        base.checker.hopeless = self._is_hopeless
        self._keep(base)
        return base

    def _is_hopeless(self, node: Node, failing: int) -> bool:
        """As the search says while it runs: bases outlive it."""
        return self.hopeless is not None and self.hopeless(node, failing)

    def _keep(self, base: _Base) -> None:
        """Remember a base, and forget another for it where they are many."""
        if base in self._tables():
            return
        self._bases.append(base)
        if len(self._bases) > _KEPT:
            self._forget(self._bases.pop(0))

    def _forget(self, base: _Base) -> None:
        """Drop a base's classes wherever they are."""
        if base.checker is not None:
            base.checker.drop()
        if base.checker is None or self.source.bench is not self.source:
            self.source.drop(base.there)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many classes nodes have: known where they were rolled up, else as if columns were independent.

    Parameters
    ----------
    entropies, groups
        Per column and level; `sensitive` is the entropy of the columns by which classes are split besides.
    known
        Rows of what was rolled up.
    """

    rows: int
    entropies: tuple[tuple[float, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    sensitive: float
    known: dict[Node, int]

    @classmethod
    def of(cls, folded: Folded) -> Sizes:
        """From the marginals; the fold itself is known."""
        counts = [c.marginal.rows for c in folded.columns]
        entropies = tuple(tuple(_entropy(level) for level in column) for column in counts)
        groups = tuple(tuple(int((level > 0).sum()) for level in column) for column in counts)
        sensitive = sum(_entropy(s.rows) for s in folded.sensitive)
        bottom = (0,) * len(counts)
        return cls(folded.rows, entropies, groups, sensitive, {bottom: folded.size})

    def expected(self, node: Node) -> int:
        """Classes of a node: those that rows meet who fall on as many equal cells as the entropies say."""
        total = self.sensitive + sum(h[x] for h, x in zip(self.entropies, node, strict=True))
        cells = math.exp(min(total, _LARGEST))
        found = min(int(-cells * math.expm1(-self.rows / cells)) + 1, self.rows)
        if not self.sensitive:
            found = min(found, math.prod(g[x] for g, x in zip(self.groups, node, strict=True)))
        found = max([found, *(size for x, size in self.known.items() if below(node, x))])
        return min([found, *(size for x, size in self.known.items() if below(x, node))])


def meet(nodes: Sequence[Node]) -> Node:
    """The most general node below all of these."""
    return tuple(min(levels) for levels in zip(*nodes, strict=True))


def _entropy(counts: Ints) -> float:
    """Nats."""
    shares = counts[counts > 0] / counts.sum()
    return -float((shares * np.log(shares)).sum())
