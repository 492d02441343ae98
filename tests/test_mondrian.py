"""Mondrian in rounds of SQL equals a plain recursion, for both heuristics and every rule of NULLs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import open_connection
from sqldeid.mondrian import Check, Dimension, Mondrian, partition, partition_boxes

pytestmark = pytest.mark.duckdb14

Rows = list[list[float | None]]


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with duckdb.connect() as connection, open_connection(connection) as found:
        found.begin()
        yield found


@dataclass
class Recursion:
    """Algorithm 1 of Mazzone 2020 as one would write it by hand, in one root."""

    rows: Rows
    groups: list[int]
    settings: Mondrian
    members: list[int]
    holds: Callable[[list[int]], bool] = lambda side: True

    def __post_init__(self) -> None:
        of = [self.there(self.members, d) for d in range(len(self.groups))]
        self.widths = [max(v) - min(v) if v else 0.0 for v in of]

    def there(self, part: list[int], d: int) -> list[float]:
        return sorted(v for i in part if (v := self.rows[i][d]) is not None)

    def counts_hold(self, side: list[int]) -> bool:
        if self.settings.nulls in ("strict", "source"):
            return True
        if self.settings.nulls == "null-pattern":
            found = Counter(tuple(v is None for v in self.rows[i]) for i in side)
            return min(found.values()) >= self.settings.k
        for g in set(self.groups):
            n = max(len(self.there(side, d)) for d in range(len(self.groups)) if self.groups[d] == g)
            lacking = len(side) - n if self.settings.nulls == "null-strict" else 0
            if 0 < n < self.settings.k or 0 < lacking < self.settings.k:
                return False
        return True

    def diversity(self, left: list[int], right: list[int]) -> float:
        total = 0.0
        for side in (left, right):
            for d, width in enumerate(self.widths):
                scaled = [v / width for v in self.there(side, d) if width > 0]
                total += sum((a - b) ** 2 for n, a in enumerate(scaled) for b in scaled[:n])
        return round(total / sum(len(s) * (len(s) - 1) / 2 for s in (left, right)), 9)

    def anonymize(self, part: list[int]) -> list[frozenset[int]]:
        best = None
        for d in range(len(self.groups)):
            if not (there := self.there(part, d)):
                continue
            cut = there[math.ceil(len(there) * 0.5) - 1]
            left = [i for i in part if (v := self.rows[i][d]) is not None and v <= cut]
            right = [i for i in part if i not in left]
            if min(len(left), len(right)) < self.settings.k or not (self.counts_hold(left) and self.counts_hold(right)):
                continue
            if not (self.holds(left) and self.holds(right)):
                continue
            score = (there[-1] - there[0]) / (self.widths[d] or 1.0)
            if self.settings.heuristic == "diversity":
                score = self.diversity(left, right)
            if best is None or score > best[0]:
                best = (score, left, right)
        return [frozenset(part)] if best is None else self.anonymize(best[1]) + self.anonymize(best[2])


def cases() -> Iterator[tuple[int, Mondrian]]:
    for seed, nulls in enumerate(["null-aware", "null-strict", "null-pattern", "strict", "source"] * 4):
        for heuristic in ("range", "diversity"):
            yield seed, Mondrian(2 + seed % 4, heuristic, nulls)  # type: ignore[arg-type]


def random_rows(rng: np.random.Generator, n: int, groups: list[int]) -> Rows:
    """Values with ties, constant dimensions, and groups of dimensions that are NULL together."""
    values = np.where(rng.random((n, len(groups))) < 0.5, rng.integers(0, 4, (n, len(groups))), rng.normal(0, 3))
    values[:, -1] = 7.0
    absent = rng.random((n, max(groups) + 1)) < rng.choice([0.0, 0.2, 0.5], max(groups) + 1)
    return [[None if absent[i, g] else float(values[i, d]) for d, g in enumerate(groups)] for i in range(n)]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("seed", "settings"), [*cases()])
def test_rounds_of_sql_equal_the_recursion(engine: DuckDBEngine, seed: int, settings: Mondrian) -> None:
    rng = np.random.default_rng(seed)
    groups = [[0, 0, 1], [0, 1, 2, 3], [0, 0, 0, 1, 1, 1]][seed % 3]
    rows = random_rows(rng, int(rng.integers(10, 70)) * (4 if settings.nulls == "null-pattern" else 1), groups)
    roots = rng.integers(0, 3, len(rows))
    table = pa.table(
        {
            "row_number": pa.array(range(len(rows)), pa.int64()),
            "root": pa.array(roots),
            **{f"d{d}": pa.array([row[d] for row in rows], pa.float64()) for d in range(len(groups))},
        }
    )
    points = engine.put("points", table)
    found = partition(points, [Dimension(f"d{d}", g) for d, g in enumerate(groups)], settings, engine, "m")
    got: dict[int, set[int]] = {}
    for row, root, part in engine.connection.execute(f"SELECT row_number, root, class FROM {found}").fetchall():
        got.setdefault(part, set()).add(row)
        assert root == roots[row]
    wanted: set[frozenset[int]] = set()
    for root in set(roots.tolist()):
        members = [i for i in range(len(rows)) if roots[i] == root]
        wanted |= set(Recursion(rows, groups, settings, members).anonymize(members))
    assert {frozenset(p) for p in got.values()} == wanted


def distinct(counts: list[int], everybody: list[int]) -> bool:
    return sum(n > 0 for n in counts) >= 3


def entropy(counts: list[int], everybody: list[int]) -> bool:
    shares = [n / sum(counts) for n in counts if n]
    return -sum(p * math.log(p) for p in shares) >= math.log(2.5) - 1e-9


def recursive(counts: list[int], everybody: list[int]) -> bool:
    falling = sorted(counts, reverse=True)
    return falling[0] < 1.5 * sum(falling[1:])


def closeness(counts: list[int], everybody: list[int]) -> bool:
    apart = sum(abs(n / sum(counts) - m / sum(everybody)) for n, m in zip(counts, everybody, strict=True))
    return apart / 2 <= 0.25 + 1e-12


CRITERIA = {
    "distinct": (distinct, 3, 0, 1),
    "entropy": (entropy, 2.5, 0, 1),
    "recursive": (recursive, 2, 3, 2),
    "closeness": (closeness, 1, 1, 4),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", CRITERIA)
def test_no_cut_leaves_a_side_that_fails_a_criterion(engine: DuckDBEngine, kind: str, seed: int) -> None:
    """The same classes as the recursion's, which asks both sides before it cuts; and the criterion cost cuts."""
    rng, (asked, least, number, divisor) = np.random.default_rng(seed), CRITERIA[kind]
    groups, settings = [0, 1], Mondrian(2, "range", "source")
    rows = random_rows(rng, 80, groups)
    codes = [int(c) for c in np.minimum(rng.geometric(0.4, len(rows)), 5)]
    everybody = [codes.count(c) for c in range(1, 6)]

    def holds(side: list[int]) -> bool:
        return asked([[codes[i] for i in side].count(c) for c in range(1, 6)], everybody)

    table = {"row_number": pa.array(range(len(rows)), pa.int64()), "root": pa.array([1] * len(rows), pa.int64())}
    table |= {f"d{d}": pa.array([row[d] for row in rows], pa.float64()) for d in range(len(groups))}
    marks = engine.put("marks", pa.table({"row_number": table["row_number"], "code": pa.array(codes, pa.int64())}))
    there = [c for c in range(1, 6) if everybody[c - 1]]
    total = pa.table(
        {"code": pa.array(there, pa.int64()), "n": pa.array([everybody[c - 1] for c in there], pa.int64())}
    )
    check = Check(kind, marks, least, number, divisor, engine.put("marked", total), len(rows))  # type: ignore[arg-type]
    dimensions = [Dimension(f"d{d}", g) for d, g in enumerate(groups)]
    points = engine.put("points", pa.table(table))
    found = partition_boxes(points, dimensions, settings, engine, "m", [check])[0]
    got: dict[int, set[int]] = {}
    for row, part in engine.connection.execute(f"SELECT row_number, class FROM {found}").fetchall():
        got.setdefault(part, set()).add(row)
    members = list(range(len(rows)))
    wanted = set(Recursion(rows, groups, settings, members, holds).anonymize(members))
    assert {frozenset(p) for p in got.values()} == wanted
    assert 1 < len(wanted) < len(Recursion(rows, groups, settings, members).anonymize(members))
