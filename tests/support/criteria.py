"""Random rows, and criteria computed from their definitions."""

from __future__ import annotations

import datetime
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from math import log
from pathlib import Path

from sqldeid.errors import NoSolutionError
from sqldeid.tables.check.check import Checker
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.search import Problem, search

COUNTED = ("distinct", "entropy", "recursive", "equal", "ordered", "hierarchical")
RATIOS = {"delta": "delta_disclosure", "basic": "beta_likeness", "enhanced": "beta_likeness"}
"""Kinds of criteria that bound ratios of shares, and their keys in a job."""

ORDER = ["low", "medium", "high", "extreme"]


"""Of the column `s`; "extreme" is in no row."""


Row = dict[str, object]

DATE = datetime.date(2000, 1, 1)
PARENTS: dict[str, dict[object, tuple[object, ...]]] = {
    "s": {"low": ("lower",), "medium": ("lower",), "high": ("upper",), "extreme": ("upper",)},
    "n": {10 * i + j: (f"{i} tens", "below 0" if i < 0 else "from 0") for i in (-1, 0, 1) for j in range(3)},
    "d": {DATE + datetime.timedelta(40 * i + j): (f"part {min(i, 1)}",) for i in range(3) for j in range(2)},
}
"""Of each sensitive column's values, the labels from level 1 on, without the top; a line of "d" is NULL's."""
PARENTS["days"] = {i: (f"pair {i // 2}",) for i in range(6)}
PARENTS["d"][None] = ("part 1",)
_FOLDER = tempfile.TemporaryDirectory()


@cache
def hierarchy_file(column: str) -> str:
    """The hierarchy of a sensitive column."""
    path = Path(_FOLDER.name) / f"{column}.csv"
    lines = (";".join(map(str, ("" if v is None else v, *up, "*"))) for v, up in PARENTS[column].items())
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def ancestors(column: str, value: object) -> tuple[object, ...]:
    """The nodes above a value, itself the first; a NULL that has no line stands alone up to the top."""
    above = PARENTS[column].get(value, (("NULL",) * len(next(iter(PARENTS[column].values())))))
    return (("leaf", value), *above, "*")


def hierarchical_distance(column: str, p: Mapping[object, Fraction], q: Mapping[object, Fraction]) -> Fraction:
    """At each inner node the smaller of what its children have too much and too little, times its height."""
    chains = [ancestors(column, value) for value in q]
    height, cost = len(chains[0]) - 1, Fraction(0)
    for level in range(1, height + 1):
        extra: dict[tuple[object, object], Fraction] = defaultdict(Fraction)
        for value, chain in zip(q, chains, strict=True):
            extra[chain[level], chain[level - 1]] += p.get(value, Fraction(0)) - q[value]
        for node in {above for above, _ in extra}:
            mine = [x for (above, _), x in extra.items() if above == node]
            cost += Fraction(level, height) * min(sum(x for x in mine if x > 0), -sum(x for x in mine if x < 0))
    return cost


def equal_distance(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def ordered_distance(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    moved, carried = Fraction(0), Fraction(0)
    for a, b in zip(p, q, strict=True):
        carried += a - b
        moved += abs(carried)
    return moved / max(len(p) - 1, 1)


@dataclass(frozen=True)
class Asked:
    """One criterion as a job asks for it."""

    name: str
    column: str
    number: float
    kind: str
    c: float | None = None

    def entry(self) -> dict[str, object]:
        if self.name == "t_closeness":
            order: dict[str, object] = {"order": ORDER} if self.column == "s" and self.kind == "ordered" else {}
            if self.kind == "hierarchical":
                order = {"hierarchy": hierarchy_file(self.column)}
            return {"column": self.column, "t": self.number, "distance": self.kind, **order}
        if self.name == "beta_likeness":
            return {"column": self.column, "beta": self.number, "kind": self.kind}
        if self.name == "delta_disclosure":
            return {"column": self.column, "delta": self.number}
        return {"column": self.column, "l": int(self.number), "kind": self.kind, **({"c": self.c} if self.c else {})}

    def passes(self, rows: Sequence[Row], table: Sequence[Row]) -> bool:
        counts = Counter(r[self.column] for r in rows)
        falling = sorted(counts.values(), reverse=True)
        n, least = len(rows), int(self.number)
        if self.kind == "distinct":
            return len(counts) >= least
        if self.kind == "entropy":
            return -sum(c / n * log(c / n) for c in falling) >= log(least) - 1e-9
        if self.kind == "recursive":
            return falling[0] < Fraction(repr(self.c)) * sum(falling[least - 1 :])
        places = self.places(table)
        whole = Counter(r[self.column] for r in table)
        p = [Fraction(counts[v], n) for v in places]
        q = [Fraction(whole[v], len(table)) for v in places]
        if self.kind == "delta":
            return all(a > 0 and abs(log(a / b)) < self.number for a, b in zip(p, q, strict=True) if b)
        if self.kind in ("basic", "enhanced"):
            gains = [(a / b - 1, -log(b)) for a, b in zip(p, q, strict=True) if b]
            beta = Fraction(repr(self.number))
            return all(gain <= beta and (self.kind == "basic" or gain <= most) for gain, most in gains)
        if self.kind == "hierarchical":
            shares = dict(zip(places, q, strict=True))
            far = hierarchical_distance(self.column, dict(zip(places, p, strict=True)), shares)
            return far <= Fraction(repr(float(self.number)))
        distance = equal_distance if self.kind == "equal" else ordered_distance
        return distance(p, q) <= Fraction(repr(float(self.number)))

    def places(self, table: Sequence[Row]) -> list[object]:
        there = {r[self.column] for r in table}
        known: list[object] = sorted(v for v in there if v is not None)  # type: ignore[type-var]
        stated = self.column == "s" and self.kind == "ordered"
        return [*(ORDER if stated else known), *([None] if None in there else [])]


def generalised(row: Row, node: Node) -> tuple[object, ...]:
    """Bands of 2 and 4; the first letter; all or nothing. NULL stays apart until the top."""
    a, b, c = row["a"], row["b"], row["c"]
    shown_a = [a, None if a is None else a // 2, None if a is None else a // 4, "*"][node[0]]  # type: ignore[operator]
    shown_b = [b, None if b is None else str(b)[0], "*"][node[1]]
    return shown_a, shown_b, [c, "*"][node[2]]


HEIGHTS = (4, 3, 2)


NODES: list[Node] = list(product(*(range(h) for h in HEIGHTS)))


@dataclass(frozen=True)
class Oracle:
    """A table with k and criteria, looked at node by node."""

    rows: tuple[Row, ...]
    k: int
    asked: tuple[Asked, ...]

    def classes(self, node: Node) -> dict[tuple[object, ...], list[Row]]:
        found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            found[generalised(row, node)].append(row)
        return found

    def passes(self, rows: Sequence[Row]) -> bool:
        return len(rows) >= self.k and all(c.passes(rows, self.rows) for c in self.asked)

    def failing(self, node: Node) -> int:
        return sum(len(rows) for rows in self.classes(node).values() if not self.passes(rows))

    def loss(self, node: Node) -> Fraction:
        """Share of the domain per cell; a suppressed row costs 1 per cell."""
        leaves = [len({r[c] for r in self.rows}) for c in "abc"]
        total = Fraction(0)
        for values, rows in self.classes(node).items():
            for j, c in enumerate("abc"):
                alike = {r[c] for r in self.rows if generalised(r, node)[j] == values[j]}
                share = Fraction(len(alike) - 1, leaves[j] - 1) if leaves[j] > 1 else Fraction(0)
                total += len(rows) * (share if self.passes(rows) else 1)
        return total / (len(self.rows) * 3)

    def optimum(self, allowed: int) -> Node | None:
        found = [(self.loss(x), f, x) for x in NODES if (f := self.failing(x)) <= allowed]
        return min(found)[2] if found else None

    def blanked(self, node: Node) -> int:
        """Released rows when rows that fail are blanked, if these are sound together with those at the top."""
        classes = self.classes(node)
        bad = [r for rows in classes.values() if not self.passes(rows) for r in rows]
        top = [r for values, rows in classes.items() if values == ("*",) * 3 and self.passes(rows) for r in rows]
        return len(self.rows) if not bad or self.passes(bad + top) else len(self.rows) - len(bad)


def find(checker: Checker, method: str) -> Node | None:
    marginals, rows = [c.marginal for c in checker.folded.columns], checker.folded.rows
    lattice = planning.Lattice(HEIGHTS)
    problem = Problem(lattice, marginals, rows, checker.allowed, make_loss("loss", marginals, rows), checker)
    try:
        found = search(method, problem)
    except NoSolutionError:
        return None
    assert found.optimal
    return found.node
