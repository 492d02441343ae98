"""inverse-ola under m-concealing: the greatest 1/m within max_loss, against exhaustive search row by row."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, prod

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import NoSolutionError, VerificationError
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node
from tests.support.criteria import HEIGHTS, NODES, Row, generalised
from tests.support.examples import examples
from tests.support.sources import insert

KNOWN = ("s", "u", "v")
OPTIONS = sqldeid.Options(replace=True, without_ledger=True)


@dataclass(frozen=True)
class Case:
    """A table and what is asked; the oracle of `inverse-ola`."""

    rows: tuple[Row, ...]
    k: int
    known: dict[str, float]
    inclusion: float
    limit: float
    loss: str
    max_loss: float

    def risks(self, node: Node) -> list[tuple[float, int]]:
        """Greatest risk and size of every class of at least k rows; infinite for smaller ones."""
        classes: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            classes[generalised(row, node)].append(row)
        return [(self._risk(rows) if len(rows) >= self.k else inf, len(rows)) for rows in classes.values()]

    def _risk(self, rows: Sequence[Row]) -> float:
        names = list(self.known)
        risk: Counter[tuple[object, ...]] = Counter()
        there = {tuple(r[n] for n in names) for r in rows}
        for state in product([False, True], repeat=len(names)):
            chance = prod(p if k else 1 - p for p, k in zip(self.known.values(), state, strict=True))
            fitting = Counter(tuple(r[n] for n, k in zip(names, state, strict=True) if k) for r in rows)
            for values in there:
                risk[values] += chance / fitting[tuple(v for v, k in zip(values, state, strict=True) if k)]  # type: ignore[assignment]
        return self.inclusion * max(risk.values())

    def least_m(self, node: Node) -> float:
        allowed = allowed_rows(self.limit, len(self.rows))
        found = self.risks(node)
        return min(m for m, _ in found if self.suppressed(node, m) <= allowed)

    def suppressed(self, node: Node, m: float) -> int:
        return sum(n for risk, n in self.risks(node) if risk > m * (1 + 1e-12))

    def lost(self, node: Node) -> Fraction:
        """Before suppression."""
        if self.loss == "prec":
            return sum((Fraction(x, h - 1) for x, h in zip(node, HEIGHTS, strict=True)), Fraction(0)) / 3
        if self.loss == "dm_star":
            return Fraction(sum(n * n for _, n in self.risks(node)))
        total = Fraction(0)
        for j, c in enumerate("abc"):
            leaves = {r[c] for r in self.rows}
            for row in self.rows:
                alike = {r[c] for r in self.rows if generalised(r, node)[j] == generalised(row, node)[j]}
                total += Fraction(len(alike) - 1, max(len(leaves) - 1, 1))
        return total / (3 * len(self.rows))

    def optimum(self) -> tuple[float, Node | None]:
        """Least m, then least loss, fewest suppressed rows, first node."""
        within = [x for x in NODES if self.lost(x) <= Fraction(repr(self.max_loss))]
        m = min((self.least_m(x) for x in within), default=inf)
        if m == inf:
            return m, None
        allowed = allowed_rows(self.limit, len(self.rows))
        fits = [(self.lost(x), f, x) for x in within if (f := self.suppressed(x, m)) <= allowed]
        return m, min(fits)[2]

    def job(self, m: float = 1.0, **more: object) -> sqldeid.Job:
        rules: dict[str, object] = {"a": {"bands": [2, 4]}, "b": {"mask": [1]}, "c": {"suppress": True}}
        columns: dict[str, object] = {n: {"role": "quasi-identifying", "hierarchy": r} for n, r in rules.items()}
        columns |= {n: {"role": "sensitive"} for n in KNOWN}
        hidden = {"m": m, "known": self.known, "inclusion": self.inclusion}
        table = {
            "rows_are_persons": True,
            "source": "people",
            "columns": columns,
            "privacy": {"k": self.k, "suppression_limit": self.limit, "m_concealing": hidden, **more},
            "search": {"method": "inverse-ola", "loss": self.loss, "max_loss": self.max_loss},
        }
        return sqldeid.Job.parse({"tables": {"people": table}})


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for _ in range(int(rng.integers(8, 40))):
        drawn = {
            "a": int(rng.integers(0, 8)),
            "b": str(rng.choice(["xx", "xy", "yx"])),
            "c": str(rng.choice(["f", "m"])),
        }
        drawn |= {n: int(rng.integers(0, int(rng.integers(1, 4)))) for n in KNOWN}
        rows.append({n: None if rng.random() < 0.03 else v for n, v in drawn.items()})
    known = {n: float(rng.choice([0.0, 0.05, 0.1, 0.5, 1.0])) for n in KNOWN[: int(rng.integers(0, 4))]}
    loss = str(rng.choice(["loss", "prec", "dm_star"]))
    most = float(rng.choice([0.2, 0.5, 0.8, 1.0]))
    return Case(
        tuple(rows),
        int(rng.choice([1, 2, 3])),
        known,
        float(rng.choice([1.0, 1.0, 0.4])),
        float(rng.choice([0.0, 0.1, 0.2, 0.4])),
        loss,
        round(most**4 * len(rows) ** 2, 1) if loss == "dm_star" else most,
    )


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, rows: Sequence[Row]) -> None:
    connection.execute("CREATE OR REPLACE TABLE people (a INTEGER, b TEXT, c TEXT, s INTEGER, u INTEGER, v INTEGER)")
    insert(connection, "people", [[r[c] for c in "abcsuv"] for r in rows])


@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_equals_exhaustive_search(connection, seed):
    case = random_case(seed)
    fill(connection, case.rows)
    m, node = case.optimum()
    if node is None:
        with pytest.raises(NoSolutionError, match="no node within max_loss"):
            sqldeid.anonymize(case.job(), connection, options=OPTIONS)
        return
    release = sqldeid.anonymize(case.job(), connection, options=OPTIONS).releases["people"]
    assert tuple(release.node.values()) == node
    assert release.search.optimal
    assert release.suppressed == case.suppressed(node, m)
    hidden = release.criteria[1]
    assert hidden.asked == pytest.approx(m, rel=1e-12)
    assert hidden.achieved == pytest.approx(m, rel=1e-12)
    assert release.one_over_m == pytest.approx(1 / m)
    verified = sqldeid.verify(case.job(), connection)["people"]
    assert verified.criteria == release.criteria[1:]
    assert sqldeid.assess(case.job(), connection, release=True)["people"].one_over_m == pytest.approx(1 / m)


@pytest.mark.deep
@settings(max_examples=examples(6), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=0)
def test_with_nothing_known_it_is_the_greatest_k(connection, seed):
    case = random_case(seed)
    case = Case(case.rows, 1, dict.fromkeys(case.known, 0.0), 1.0, case.limit, case.loss, case.max_loss)
    fill(connection, case.rows)
    data = case.job().model_dump(by_alias=True, exclude_unset=True)
    del data["tables"]["people"]["privacy"]["m_concealing"]
    try:
        plain = sqldeid.anonymize(sqldeid.Job.parse(data), connection, options=OPTIONS).releases["people"]
    except NoSolutionError:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(case.job(), connection, options=OPTIONS)
        return
    release = sqldeid.anonymize(case.job(), connection, options=OPTIONS).releases["people"]
    assert release.one_over_m == pytest.approx(plain.criteria[0].asked)
    assert release.node == plain.node
    assert (release.suppressed, release.k) == (plain.suppressed, plain.k)


def trap() -> Case:
    """One level up, a risky class of two joins a good one of eight and stays risky: the limit no longer pays for it."""

    def people(a: int, values: Sequence[int]) -> list[Row]:
        return [{"a": a, "b": "xx", "c": "f", "s": s, "u": 0, "v": 0} for s in values]

    rows = [*people(0, [0] * 8), *people(1, [1, 2]), *people(4, [0] * 40)]
    return Case(tuple(rows), 1, {"s": 0.5}, 1.0, 0.05, "prec", 0.15)


def test_the_greatest_1_over_m_need_not_be_on_a_maximal_node(connection):
    case = trap()
    m, node = case.optimum()
    within = [x for x in NODES if case.lost(x) <= Fraction(repr(case.max_loss))]
    maximal = [x for x in within if not any(y != x and all(a <= b for a, b in zip(x, y, strict=True)) for y in within)]
    assert node == (0, 0, 0)
    assert node not in maximal
    assert min(case.least_m(x) for x in maximal) > m, "a search that looked at maximal nodes alone would stop there"
    fill(connection, case.rows)
    release = sqldeid.anonymize(case.job(), connection, options=OPTIONS).releases["people"]
    assert tuple(release.node.values()) == node
    assert release.one_over_m == pytest.approx(8)


def test_the_found_m_is_what_the_release_is_held_to(connection):
    case = trap()
    fill(connection, case.rows)
    result = sqldeid.anonymize(case.job(), connection, options=OPTIONS)
    assert json.loads(json.dumps(result.releases["people"].to_dict()))["criteria"][1]["asked"] == 0.125
    (note,) = connection.execute("SELECT comment FROM duckdb_tables() WHERE schema_name = 'release'").fetchall()
    assert '"m": 0.125' in note[0]
    connection.execute(
        "UPDATE release.people SET s = 3 WHERE s = 0 AND rowid = (SELECT MIN(rowid) FROM release.people)"
    )
    with pytest.raises(VerificationError):
        sqldeid.verify(case.job(), connection)


def test_an_m_that_is_out_of_reach_names_the_nearest(connection):
    case = trap()
    fill(connection, case.rows)
    with pytest.raises(NoSolutionError, match=r"within max_loss 0.15 reaches m = 0.1; the least found is 0.125. Raise"):
        sqldeid.anonymize(case.job(m=0.1), connection, options=OPTIONS)
