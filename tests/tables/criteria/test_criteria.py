"""l-diversity and t-closeness inside searches and re-checks, against their definitions, row by row in Python.

The oracle shares nothing with the SQL: classes are lists of rows, distances and losses are fractions.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.run import reading
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import below
from sqldeid.tables.plan import plan as planning
from tests.support.criteria import (
    COUNTED,
    NODES,
    ORDER,
    PARENTS,
    RATIOS,
    Asked,
    Oracle,
    Row,
    ancestors,
    equal_distance,
    find,
    hierarchical_distance,
    ordered_distance,
)
from tests.support.examples import examples

both = pytest.mark.parametrize("kinds", [COUNTED, tuple(RATIOS)], ids=["counted", "ratios"])


# ---- the definitions --------------------------------------------------------------------------------------------


# ---- the same, in the database -----------------------------------------------------------------------------------


SCHEMA = pa.schema(
    {"a": pa.int32(), "b": pa.string(), "c": pa.string(), "s": pa.string(), "n": pa.int32(), "d": pa.date32()}
)


def fill(connection: duckdb.DuckDBPyConnection, rows: Sequence[Row]) -> None:
    connection.execute("CREATE OR REPLACE TABLE people (a INTEGER, b TEXT, c TEXT, s TEXT, n INTEGER, d DATE)")
    frame = pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in SCHEMA}, schema=SCHEMA)
    connection.register("frame", frame)
    connection.execute("INSERT INTO people SELECT * FROM frame")
    connection.unregister("frame")


def job_of(oracle: Oracle, limit: float, method: str = "frontier", suppression: str = "drop") -> sqldeid.Job:
    privacy: dict[str, object] = {"k": oracle.k, "suppression_limit": limit, "suppression": suppression}
    for name in ("l_diversity", "t_closeness", *RATIOS.values()):
        if entries := [c.entry() for c in oracle.asked if c.name == name]:
            privacy[name] = entries
    rules: dict[str, object] = {"a": {"bands": [2, 4]}, "b": {"mask": [1]}, "c": {"suppress": True}}
    columns = {name: {"role": "quasi-identifying", "hierarchy": rule} for name, rule in rules.items()}
    others = {name: {"role": "sensitive"} for name in ("s", "n", "d")}
    table = {
        "rows_are_persons": True,
        "source": "people",
        "columns": columns | others,
        "privacy": privacy,
        "search": {"method": method},
    }
    return sqldeid.Job.parse({"tables": {"people": table}})


@contextmanager
def checker_of(connection: duckdb.DuckDBPyConnection, oracle: Oracle, limit: float) -> Iterator[Checker]:
    fill(connection, oracle.rows)
    job = job_of(oracle, limit)
    with reading(connection, None, sqldeid.Settings()) as engine:
        plan = planning.plan("people", job.tables["people"], engine, job.folder)
        folded = fold(plan, engine)
        allowed = allowed_rows(limit, len(oracle.rows))
        judge = Judge(engine, folded, oracle.k, plan.criteria, "people") if plan.criteria else None
        yield Checker(engine, folded, oracle.k, allowed, "people", judge)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def random_oracle(seed: int, kinds: Sequence[str] = COUNTED) -> Oracle:
    """Up to 40 rows; sensitive values that lean on the quasi-identifying ones, so that classes differ."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 41))
    nulls = float(rng.choice([0.0, 0.1]))
    lean = float(rng.choice([0.0, 0.5, 0.9]))

    def maybe(value: object) -> object:
        return None if rng.random() < nulls else value

    rows = []
    for _ in range(n):
        a = int(rng.integers(0, 8))
        there = a % 3 if rng.random() < lean else int(rng.integers(0, 3))
        rows.append(
            {
                "a": maybe(a),
                "b": maybe(str(rng.choice(["xx", "xy", "yx", "yy"]))),
                "c": maybe(str(rng.choice(["f", "m"]))),
                "s": maybe(ORDER[there]),
                "n": maybe(int(rng.integers(-1, 2)) * 10 + there),
                "d": maybe(datetime.date(2000, 1, 1) + datetime.timedelta(int(rng.integers(0, 2)) + 40 * there)),
            }
        )
    asked = tuple(_random_criterion(rng, kinds) for _ in range(int(rng.integers(1, 4))))
    once = {(c.name, c.column) if c.name != "l_diversity" else (c.kind, c.column): c for c in asked}
    return Oracle(tuple(rows), int(rng.choice([1, 2, 3])), tuple(once.values()))


def _random_criterion(rng: np.random.Generator, kinds: Sequence[str]) -> Asked:
    column = str(rng.choice(["s", "n", "d"]))
    kind = str(rng.choice(kinds))
    if kind in RATIOS:
        return Asked(RATIOS[kind], column, float(rng.choice([0.05, 0.5, 1.0, 2.0, 5.0])), kind)
    if kind in ("equal", "ordered", "hierarchical"):
        return Asked("t_closeness", column, float(rng.choice([0.0, 0.1, 0.25, 0.3, 0.5])), kind)
    c = float(rng.choice([0.5, 1.0, 1.1, 3.0])) if kind == "recursive" else None
    return Asked("l_diversity", column, int(rng.integers(1, 4)), kind, c)


seeds = st.integers(0, 2**32 - 1)
REPLACE = sqldeid.Options(replace=True, without_ledger=True)
limits = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.6])


def possible(oracle: Oracle) -> bool:
    """Whether no l is greater than the number of values (that is refused before the search)."""
    return all(
        c.name != "l_diversity" or c.number <= len({r[c.column] for r in oracle.rows}) for c in oracle.asked
    ) and oracle.k <= len(oracle.rows)


@pytest.mark.deep
@both
@settings(max_examples=examples(15), deadline=None)
@given(seed=seeds)
def test_failing_rows_are_those_of_the_definitions(connection, seed, kinds):
    oracle = random_oracle(seed, kinds)
    if not possible(oracle):
        return
    with checker_of(connection, oracle, 0.99) as checker:
        found = checker(NODES)
    for e in found:
        if e.failing <= checker.allowed:
            assert e.failing == oracle.failing(e.node), e.node
        else:
            assert oracle.failing(e.node) > checker.allowed, e.node


@settings(max_examples=examples(15), deadline=None)
@given(
    values=st.lists(st.sampled_from(["low", "high", None]), min_size=2, max_size=12),
    t=st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.3]),
)
@example(values=["high", "low", "high", None, "high"], t=0.1)
def test_places_that_no_row_holds_count_in_an_order(connection, values, t):
    """Both "medium" and "extreme" are steps on the way, though nobody has them."""
    rows = [{"a": i % 8, "b": "xy"[i % 2] * 2, "c": "f", "s": s, "n": 0, "d": None} for i, s in enumerate(values)]
    oracle = Oracle(tuple(rows), 1, (Asked("t_closeness", "s", t, "ordered"),))
    with checker_of(connection, oracle, 0.99) as checker:
        for e in checker(NODES):
            if e.failing <= checker.allowed:
                assert e.failing == oracle.failing(e.node), e.node
            else:
                assert oracle.failing(e.node) > checker.allowed, e.node


@pytest.mark.sampled(1)
@both
@settings(max_examples=examples(15), deadline=None)
@given(seed=seeds, limit=limits)
def test_the_core_is_a_lower_bound_of_every_specialisation(connection, seed, limit, kinds):
    oracle = random_oracle(seed, kinds)
    if not possible(oracle):
        return
    with checker_of(connection, oracle, limit) as checker:
        found = checker(NODES)
    failing = {x: oracle.failing(x) for x in NODES}
    for y in found:
        for x in NODES:
            if below(x, y.node):
                assert failing[x] >= y.core_failing, (x, y)


@both
@settings(max_examples=examples(10), deadline=None)
@given(seed=seeds, limit=limits)
def test_asking_all_criteria_at_once_tells_what_asking_k_first_tells(connection, seed, limit, kinds):
    oracle = random_oracle(seed, kinds)
    if not possible(oracle):
        return
    found, cost = [], []
    with checker_of(connection, oracle, limit) as checker, pytest.MonkeyPatch.context() as patch:
        for share in (1.1, 1.1, 0.0):  # the first also counts rows that are looked up later
            patch.setattr("sqldeid.tables.check.check.STRAIGHT", share)
            before = checker.engine.statements
            found.append(checker(NODES))
            cost.append(checker.engine.statements - before)
    assert found[1] == found[2]
    k_closes_all = cost[1] == 1
    assert k_closes_all or cost[2] == cost[1] - 1


@pytest.mark.deep
@both
@settings(max_examples=examples(15), deadline=None)
@given(seed=seeds, limit=limits)
def test_searches_find_the_optimum_of_exhaustive_search(connection, seed, limit, kinds):
    oracle = random_oracle(seed, kinds)
    if not possible(oracle):
        return
    with checker_of(connection, oracle, limit) as checker:
        best = oracle.optimum(checker.allowed)
        assert find(checker, "frontier") == best
        assert find(checker, "best-first") == best
        assert find(checker, "flash") == best


@pytest.mark.deep
@both
@settings(max_examples=examples(12), deadline=None)
@given(seed=seeds, limit=limits, suppression=st.sampled_from(["drop", "blank"]))
def test_releases_hold_what_the_definitions_leave(connection, seed, limit, suppression, kinds):
    """The whole way, with the re-check by other formulas; blanked rows are one class that must meet the criteria."""
    oracle = random_oracle(seed, kinds)
    if not possible(oracle):
        return
    fill(connection, oracle.rows)
    job = job_of(oracle, limit, suppression=suppression)
    best = oracle.optimum(allowed_rows(limit, len(oracle.rows)))
    options = sqldeid.Options(replace=True, without_ledger=True)
    if best is None:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(job, connection, options=options)
        return
    release = sqldeid.anonymize(job, connection, options=options).releases["people"]
    assert tuple(release.node.values()) == best
    assert release.suppressed == oracle.failing(best)
    kept = len(oracle.rows) - oracle.failing(best)
    assert release.released == (oracle.blanked(best) if suppression == "blank" else kept)
    assert abs(release.loss["loss"] - float(oracle.loss(best))) < 1e-12
    verified = sqldeid.verify(job, connection)["people"]
    assert verified.released == release.released
    expected = [(c.name, pytest.approx(c.achieved, rel=1e-12)) for c in release.criteria[1:]]
    assert [(c.name, c.achieved) for c in verified.criteria] == expected
    for criterion, asked in zip(_in_result_order(release.criteria[1:], oracle), release.criteria[1:], strict=True):
        if release.released and criterion.kind in ("distinct", "entropy"):
            assert asked.achieved >= criterion.number - 1e-6


def _in_result_order(criteria: Sequence[sqldeid.result.Criterion], oracle: Oracle) -> list[Asked]:
    kinds = {"distinct l-diversity": "distinct", "entropy l-diversity": "entropy"}
    kinds["recursive (c,l)-diversity"] = "recursive"
    keys = {"t-closeness": "t_closeness", "delta-disclosure privacy": "delta_disclosure"}
    keys |= {"beta-likeness": "beta_likeness", "enhanced beta-likeness": "beta_likeness"}
    return [
        next(
            a
            for a in oracle.asked
            if a.column == c.column and (a.kind == kinds.get(c.name) or a.name == keys.get(c.name))
        )
        for c in criteria
    ]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(40))
def test_distances_are_optimal_transport(seed):
    """The closed forms that the oracle goes by, against the linear programme that defines the distance."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    p, q = (_shares(rng, m) for _ in range(2))
    ordered = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / (m - 1)
    equal = 1.0 - np.eye(m)
    values = list(PARENTS["n"])[2 : 2 + m]
    tree = np.array([[first_common("n", v, w) for w in values] for v in values])
    along = hierarchical_distance("n", dict(zip(values, p, strict=True)), dict(zip(values, q, strict=True)))
    for cost, closed in ((ordered, ordered_distance(p, q)), (equal, equal_distance(p, q)), (tree, along)):
        out, into = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
        given = [float(x) for x in (*p, *q)]
        solved = linprog(cost.ravel(), A_eq=np.vstack([out, into]), b_eq=given, bounds=(0, None))
        assert solved.fun == pytest.approx(float(closed), abs=1e-9)


def first_common(column: str, value: object, other: object) -> float:
    """The level at which two values first have one label, over the height."""
    one, two = ancestors(column, value), ancestors(column, other)
    return next(i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a == b) / (len(one) - 1)


def _shares(rng: np.random.Generator, m: int) -> list[Fraction]:
    drawn = [int(x) for x in rng.integers(0, 6, size=m)]
    drawn[0] += 1
    return [Fraction(x, sum(drawn)) for x in drawn]


# ---- what is special about criteria that are not monotone -------------------------------------------------------


def trap(kind: str) -> Oracle:
    """Level 0 suppresses one class, level 1 of `a` merges it with a good one and suppresses both, the top nothing."""

    def people(a: int, values: dict[str, int]) -> list[Row]:
        return [
            {"a": a, "b": "xx", "c": "f", "s": s, "n": 0, "d": None}
            for s, count in values.items()
            for _ in range(count)
        ]

    good, bad = people(0, {"low": 3, "medium": 3, "high": 3}), people(1, {"low": 30})
    rest = people(4, {"low": 50, "medium": 60, "high": 60})
    asked = {
        "entropy": Asked("l_diversity", "s", 2, "entropy"),
        "recursive": Asked("l_diversity", "s", 2, "recursive", 2.0),
        "equal": Asked("t_closeness", "s", 0.3, "equal"),
        "ordered": Asked("t_closeness", "s", 0.2, "ordered"),
        "hierarchical": Asked("t_closeness", "s", 0.3, "hierarchical"),
    }[kind]
    return Oracle((*good, *bad, *rest), 5, (asked,))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["entropy", "recursive", "equal", "ordered", "hierarchical"])
def test_suppression_that_grows_upwards_hides_no_optimum(kind, connection):
    oracle, limit = trap(kind), 0.15
    allowed = allowed_rows(limit, len(oracle.rows))
    levels = [oracle.failing((x, 0, 0)) for x in range(4)]
    assert levels[0] <= allowed < levels[1], "a search that took failing for inherited downwards would stop here"
    assert levels[3] == 0
    assert oracle.optimum(allowed) == (0, 0, 0)
    with checker_of(connection, oracle, limit) as checker:
        assert find(checker, "frontier") == (0, 0, 0)
        assert find(checker, "best-first") == (0, 0, 0)
        assert find(checker, "flash") == (0, 0, 0)


def test_blanked_rows_that_fail_together_are_dropped(connection):
    """Thirty rows of one value are enough for k, but not diverse: as blanked rows they would say what they hide."""
    oracle = trap("entropy")
    fill(connection, oracle.rows)
    job = job_of(oracle, 0.15, suppression="blank")
    release = sqldeid.anonymize(job, connection, options=sqldeid.Options(replace=True, without_ledger=True)).releases[
        "people"
    ]
    assert oracle.blanked((0, 0, 0)) == len(oracle.rows) - 30
    assert (release.suppressed, release.released) == (30, len(oracle.rows) - 30)
    assert any("the blanked rows together do not meet the criteria" in w for w in release.warnings)
    assert sqldeid.verify(job, connection)["people"].released == release.released


def test_blanked_rows_that_pass_together_stay(connection):
    rows = trap("entropy").rows
    other = tuple({**r, "a": 5, "s": "high"} for r in rows if r["a"] == 1)
    oracle = Oracle((*rows, *other, *rows[-100:]), 5, trap("entropy").asked)
    fill(connection, oracle.rows)
    job = job_of(oracle, 0.3, suppression="blank")
    release = sqldeid.anonymize(job, connection, options=sqldeid.Options(replace=True, without_ledger=True)).releases[
        "people"
    ]
    node = tuple(release.node.values())
    assert oracle.failing(node) == release.suppressed == 60
    assert release.released == len(oracle.rows) == oracle.blanked(node)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["distinct", "entropy", "recursive", "equal", "ordered", "hierarchical"])
def test_verify_rejects_swapped_values(kind, connection):
    """Values change places between classes: every class keeps its size, and the table its values."""
    rows = tuple({"a": a, "b": "xx", "c": "f", "s": ORDER[i % 3], "n": i, "d": None} for a in (0, 4) for i in range(9))
    asked = {
        "distinct": Asked("l_diversity", "s", 3, "distinct"),
        "entropy": Asked("l_diversity", "s", 3, "entropy"),
        "recursive": Asked("l_diversity", "s", 2, "recursive", 1.0),
        "equal": Asked("t_closeness", "s", 0.1, "equal"),
        "ordered": Asked("t_closeness", "s", 0.1, "ordered"),
        "hierarchical": Asked("t_closeness", "s", 0.1, "hierarchical"),
    }[kind]
    oracle = Oracle(rows, 3, (asked,))
    fill(connection, oracle.rows)
    job = job_of(oracle, 0.0)
    sqldeid.anonymize(job, connection, options=sqldeid.Options(replace=True, without_ledger=True))
    assert sqldeid.verify(job, connection)["people"].k == 9
    connection.execute("UPDATE release.people SET s = 'swap' WHERE a = 0 AND s = 'high'")
    connection.execute("UPDATE release.people SET s = 'high' WHERE a = 4 AND s = 'low'")
    connection.execute("UPDATE release.people SET s = 'low' WHERE s = 'swap'")
    counts = connection.execute("SELECT s, COUNT(*) FROM release.people GROUP BY s ORDER BY s").fetchall()
    assert counts == [("high", 6), ("low", 6), ("medium", 6)]
    with pytest.raises(VerificationError, match=r"classes fail .* of s"):
        sqldeid.verify(job, connection)


def test_verify_reads_the_criteria_that_are_noted(connection):
    oracle = trap("entropy")
    fill(connection, oracle.rows)
    sqldeid.anonymize(job_of(oracle, 0.15), connection, options=sqldeid.Options(replace=True, without_ledger=True))
    comment = connection.execute("SELECT comment FROM duckdb_tables() WHERE schema_name = 'release'").fetchone()
    assert '"l_diversity"' in comment[0] and "extreme" not in comment[0]
    weaker = Oracle(oracle.rows, oracle.k, (Asked("l_diversity", "s", 1, "entropy"),))
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(job_of(weaker, 0.15), connection)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["ordered", "hierarchical"])
def test_an_order_is_not_noted_for_it_lists_values(kind, connection):
    oracle = trap(kind)
    fill(connection, oracle.rows)
    sqldeid.anonymize(job_of(oracle, 0.15), connection, options=sqldeid.Options(replace=True, without_ledger=True))
    comment = connection.execute("SELECT comment FROM duckdb_tables() WHERE schema_name = 'release'").fetchone()
    assert '"t_closeness"' in comment[0] and "extreme" not in comment[0]
    assert sqldeid.verify(job_of(oracle, 0.15), connection)["people"].released == len(oracle.rows) - 30


@pytest.mark.parametrize(
    ("hierarchy", "told"),
    [
        ("few.csv", "its hierarchy leaves out 1 value of s"),
        ("none.csv", "no such file"),
        ("icd9/diagnoses", "is a rule, which names no values"),
    ],
)
def test_a_hierarchy_that_does_not_name_all_values_is_refused(hierarchy, told, connection, tmp_path):
    fill(connection, trap("hierarchical").rows)
    (tmp_path / "few.csv").write_text("low;*\nmedium;*\n")
    table = job_of(trap("hierarchical"), 0.15).tables["people"].model_dump(by_alias=True, exclude_unset=True)
    at = str(tmp_path / hierarchy) if hierarchy.endswith("csv") else hierarchy
    table["privacy"]["t_closeness"] = {"column": "s", "t": 0.3, "distance": "hierarchical", "hierarchy": at}
    with pytest.raises(JobError, match=told) as caught:
        sqldeid.anonymize(sqldeid.Job.parse({"tables": {"people": table}}), connection, options=REPLACE)
    assert caught.value.key.startswith("tables.people.privacy.t_closeness")
    assert "high" not in caught.value.message
    if hierarchy == "few.csv":
        (looked,) = sqldeid.assess(sqldeid.Job.parse({"tables": {"people": table}}), connection)["people"].criteria
        assert (looked.achieved, looked.met) == (None, False)


# ---- what cannot be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["distinct", "entropy", "recursive"])
def test_more_values_than_there_are_is_refused_before_the_search(kind, connection):
    c = 2.0 if kind == "recursive" else None
    oracle = Oracle(trap("entropy").rows, 5, (Asked("l_diversity", "s", 4, kind, c),))
    fill(connection, oracle.rows)
    with pytest.raises(JobError) as caught:
        sqldeid.anonymize(job_of(oracle, 0.15), connection, options=sqldeid.Options(replace=True, without_ledger=True))
    assert caught.value.key == "tables.people.privacy.l_diversity"
    assert "l is 4, but s has only 3 different values (NULL is one); l can be at most 3" in caught.value.message
    assert "medium" not in caught.value.message


def test_no_solution_names_the_nearest_node_and_its_failing_rows(connection):
    """Nodes that k alone closes are counted by all criteria before one is called nearest."""
    oracle = Oracle(trap("entropy").rows, 5, (Asked("l_diversity", "s", 3, "entropy"),))
    fill(connection, oracle.rows)
    with pytest.raises(NoSolutionError) as caught:
        sqldeid.anonymize(job_of(oracle, 0.01), connection, options=sqldeid.Options(replace=True, without_ledger=True))
    failing = {x: oracle.failing(x) for x in NODES}
    named = {x for x in NODES if f"the nearest (a {x[0]}, b {x[1]}, c {x[2]}) would suppress" in caught.value.message}
    assert len(named) == 1
    assert f"would suppress {failing[named.pop()]:,} rows, 2 are allowed" in caught.value.message


def test_text_has_no_order_of_its_own(connection):
    oracle = Oracle(trap("equal").rows, 5, ())
    fill(connection, oracle.rows)
    data = job_of(oracle, 0.1).model_dump(by_alias=True, exclude_unset=True)
    data["tables"]["people"]["privacy"]["t_closeness"] = {"column": "s", "t": 0.1, "distance": "ordered"}
    with pytest.raises(JobError, match=r"t_closeness: s is of type VARCHAR, which has no order; give order"):
        sqldeid.plan(sqldeid.Job.parse(data), connection)
    data["tables"]["people"]["privacy"]["t_closeness"]["order"] = ["low", "high"]
    with pytest.raises(JobError, match="order leaves out 1 value of s"):
        sqldeid.anonymize(
            sqldeid.Job.parse(data), connection, options=sqldeid.Options(replace=True, without_ledger=True)
        )
