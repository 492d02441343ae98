"""An obvious, slow evaluation of lattice nodes on random small tables, and an exhaustive search over it.

The evaluation shares no code with the search: classes are dictionaries, losses are fractions over cells, row by row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import log, log2

import numpy as np

from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.search import Problem


@dataclass(frozen=True)
class Table:
    """A coded table: `codes[j][r]` is row r's leaf in column j, `groups[j][x][leaf]` its group at level x.

    A class fails the core when it has fewer than `k` rows or fewer than `l` distinct sensitive values, and fails
    when it fails the core or, with `entropy`, when the entropy of its sensitive values is below ln l (not monotone).
    """

    codes: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[tuple[int, ...], ...], ...]
    weights: tuple[Fraction, ...]
    sensitive: tuple[int, ...]
    k: int
    l: int = 1
    entropy: bool = False

    @property
    def rows(self) -> int:
        return len(self.sensitive)

    @property
    def lattice(self) -> Lattice:
        return Lattice(tuple(len(levels) for levels in self.groups))

    def leaves(self, j: int, level: int, group: int) -> int:
        return sum(1 for g in self.groups[j][level] if g == group)

    def marginals(self) -> list[Marginal]:
        return [self._marginal(j) for j in range(len(self.codes))]

    def _marginal(self, j: int) -> Marginal:
        rows, leaves = [], []
        for level in self.groups[j]:
            groups = sorted(set(level))
            rows.append(np.array([sum(level[c] == g for c in self.codes[j]) for g in groups], dtype=np.int64))
            leaves.append(np.array([sum(h == g for h in level) for g in groups], dtype=np.int64))
        return Marginal(f"c{j}", self.weights[j], tuple(rows), tuple(leaves))

    def classes(self, node: Node) -> dict[tuple[int, ...], list[int]]:
        """Row numbers by generalised values."""
        found: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for r in range(self.rows):
            found[tuple(self.groups[j][x][self.codes[j][r]] for j, x in enumerate(node))].append(r)
        return found

    def core_fails(self, rows: list[int]) -> bool:
        return len(rows) < self.k or len({self.sensitive[r] for r in rows}) < self.l

    def fails(self, rows: list[int]) -> bool:
        if self.core_fails(rows):
            return True
        if not self.entropy:
            return False
        n = len(rows)
        counts = Counter(self.sensitive[r] for r in rows).values()
        return n * log(n) - sum(c * log(c) for c in counts) < n * log(self.l) - 1e-9 * n

    def evaluation(self, node: Node, allowed: int) -> Evaluation:
        classes = self.classes(node)
        bad = [(values, rows) for values, rows in classes.items() if self.fails(rows)]
        failing = sum(len(rows) for _, rows in bad)
        lost = tuple(
            sum(len(rows) * (self.leaves(j, node[j], values[j]) - 1) for values, rows in bad) for j in range(len(node))
        )
        logs = tuple(
            sum(len(rows) * millionths(self.leaves(j, node[j], values[j])) for values, rows in bad)
            for j in range(len(node))
        )
        return Evaluation(
            node=node,
            core_failing=sum(len(rows) for rows in classes.values() if self.core_fails(rows)),
            failing=failing,
            classes=len(classes),
            squares=sum(len(rows) ** 2 for rows in classes.values()),
            suppressed_leaves=lost if failing <= allowed else None,
            suppressed_logs=logs if failing <= allowed else None,
            histogram=dict(Counter(len(rows) for rows in classes.values())),
        )

    def loss(self, name: str, node: Node) -> Fraction:
        """The loss of a node, cell by cell."""
        classes = self.classes(node)
        if name == "dm_star":
            return Fraction(sum(len(rows) ** 2 for rows in classes.values()))
        if name == "prec":
            steps = [Fraction(x, max(h - 1, 1)) for x, h in zip(node, self.lattice.heights, strict=True)]
            return sum((w * s for w, s in zip(self.weights, steps, strict=True)), Fraction(0)) / sum(self.weights)
        if name == "entropy":
            return Fraction(sum(self._entropy(j, x) for j, x in enumerate(node)))
        if name == "class_size":
            return 1 - Fraction(len(classes), self.rows)
        if name == "height":
            return sum((w * x for w, x in zip(self.weights, node, strict=True)), Fraction(0))
        by_cells = {"ambiguity": self._ambiguity, "normalised_entropy": self._share_of_entropy, "payout": self._payout}
        if name in by_cells:
            return by_cells[name](node)
        total = Fraction(0)
        for values, rows in classes.items():
            for j, w in enumerate(self.weights):
                total += w * len(rows) * (1 if self.fails(rows) else self._share(j, node[j], values[j]))
        return total / (self.rows * sum(self.weights))

    def _share(self, j: int, level: int, group: int) -> Fraction:
        domain = len(self.groups[j][0])
        return Fraction(self.leaves(j, level, group) - 1, domain - 1) if domain > 1 else Fraction(0)

    def _entropy(self, j: int, x: int) -> float:
        level = self.groups[j][x]
        here = Counter(level[c] for c in self.codes[j])
        own = Counter(self.codes[j])
        return -sum(n * log2(n / here[level[c]]) for c, n in own.items())

    def _ambiguity(self, node: Node) -> Fraction:
        """Row by row: the bits of each cell, weighted."""
        total = 0.0
        for r in range(self.rows):
            for j, (x, w) in enumerate(zip(node, self.weights, strict=True)):
                total += float(w) * log2(self.leaves(j, x, self.groups[j][x][self.codes[j][r]]))
        return Fraction(total / self.rows)

    def _payout(self, node: Node) -> Fraction:
        """Row by row: what is lost of a payout of 1, all of it for a row that is suppressed."""
        domain = sum(millionths(len(groups[0])) for groups in self.groups)
        total = Fraction(0)
        for values, rows in self.classes(node).items():
            lost = sum(millionths(self.leaves(j, node[j], values[j])) for j in range(len(node)))
            total += len(rows) * (1 if self.fails(rows) else Fraction(lost, max(domain, 1)))
        return total / self.rows

    def _share_of_entropy(self, node: Node) -> Fraction:
        total = 0.0
        for j, (x, w) in enumerate(zip(node, self.weights, strict=True)):
            most = self._entropy(j, self.lattice.heights[j] - 1)
            total += float(w) * (self._entropy(j, x) / most if most else 0.0)
        return Fraction(total / float(sum(self.weights)))


def millionths(leaves: int) -> int:
    """log2, in whole millionths."""
    return round(log2(leaves) * 10**6)


IRRATIONAL = ("entropy", "ambiguity", "normalised_entropy")
"""Losses that are logarithms: floats here, compared when rounded."""


class Checker:
    """`Evaluate` over a table; counts what is asked and refuses a node asked twice."""

    def __init__(self, table: Table, allowed: int) -> None:
        self.table, self.allowed = table, allowed
        self.asked: Counter[Node] = Counter()
        self.statements = 0
        self.fail_after: int | None = None
        self.error: BaseException = KeyboardInterrupt()

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        if self.fail_after is not None and self.statements >= self.fail_after:
            raise self.error
        self.asked.update(nodes)
        self.statements += 1
        return [self.table.evaluation(node, self.allowed) for node in nodes]


def problem_of(table: Table, name: str, allowed: int, **options: object) -> Problem:
    """A search problem over a table; `options` are those of `Problem`."""
    loss = make_loss(name, table.marginals(), table.rows)
    checker = Checker(table, allowed)
    return Problem(table.lattice, table.marginals(), table.rows, allowed, loss, checker, **options)  # type: ignore[arg-type]


def sparing(problem: Problem) -> Problem:
    """The problem in full statements, without the suppressed leaves of nodes that cannot win: as a release asks it."""
    ask = problem.evaluate

    def evaluate(nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        found = ask(nodes, histogram=histogram)
        hopeless = [problem.hopeless(e.node, e.failing) for e in found]
        return [
            replace(e, suppressed_leaves=None, suppressed_logs=None) if h else e
            for e, h in zip(found, hopeless, strict=True)
        ]

    return replace(problem, evaluate=evaluate, full_statements=True)


def exhaustive(table: Table, name: str, allowed: int) -> Node | None:
    """The optimum by looking at every node: least loss, then fewest suppressed rows, then lexicographic."""
    best = None
    for node in product(*(range(h) for h in table.lattice.heights)):
        failing = table.evaluation(node, allowed).failing
        if failing > allowed:
            continue
        loss = table.loss(name, node)
        # floats would part nodes that lose alike; other losses are exact
        loss = Fraction(round(float(loss), 9)) if name in IRRATIONAL else loss
        if best is None or (loss, failing, node) < best:
            best = (loss, failing, node)
    return None if best is None else best[2]


def random_table(seed: int, *, columns: int = 4, entropy: bool = False) -> Table:
    """A random table with random nested hierarchies, of up to 40 rows and a few hundred nodes."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, columns + 1))
    n = int(rng.integers(1, 41))
    groups = tuple(_hierarchy(rng) for _ in range(m))
    skew = float(rng.choice([0.3, 1.0, 5.0]))
    codes = tuple(
        tuple(int(c) for c in rng.choice(len(g[0]), size=n, p=rng.dirichlet(np.full(len(g[0]), skew)))) for g in groups
    )
    weights = tuple(Fraction(int(rng.integers(1, 4)), int(rng.integers(1, 4))) for _ in range(m))
    if rng.random() < 0.5:
        weights = (Fraction(1),) * m
    sensitive = tuple(int(s) for s in rng.integers(0, 4, size=n))
    k = int(rng.choice([1, 2, 3, 5]))
    diverse = int(rng.integers(2, 4)) if entropy else 1
    return Table(codes, groups, weights, sensitive, k, diverse, entropy)


def _hierarchy(rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """Random nested levels over 1 … 6 leaves; the last level has one group, or the only level has all."""
    leaves = int(rng.integers(1, 7))
    levels = [tuple(range(leaves))]
    for _ in range(int(rng.integers(0, 4))):
        last = sorted(set(levels[-1]))
        to = {g: int(rng.integers(0, max(1, len(last) - 1))) for g in last}
        levels.append(tuple(to[g] for g in levels[-1]))
    if rng.random() < 0.9:
        levels.append((0,) * leaves)
    return tuple(levels)
