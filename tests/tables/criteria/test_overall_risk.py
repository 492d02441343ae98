"""Average risk and records at risk: against their definitions, exhaustive search, and cheats that must be caught."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, UnknownKindError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.run import reading
from sqldeid.tables.certificate.certificate import Claim, Facts
from sqldeid.tables.certificate.overall import core as core_again
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.criteria import OverallRisk
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.model.evaluation import Evaluation, allowed_rows
from sqldeid.tables.model.lattice import Node, below
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.search import Problem
from sqldeid.tables.search.region import Region
from sqldeid.tables.verify.overall import least_size as least_again
from tests.support.criteria import NODES, Oracle, Row, find, generalised
from tests.support.examples import examples
from tests.support.sources import insert
from tests.tables.criteria.test_criteria import fill, job_of, random_oracle

Checked = tuple[list[Evaluation], Problem]

NOTHING = OverallRisk(Fraction(1))

METHODS = ("frontier", "best-first", "flash")


def meets(overall: OverallRisk, sizes: Sequence[int]) -> bool:
    """The definition, row by row."""
    risks = [Fraction(1, size) for size in sizes for _ in range(size)]
    if not risks:
        return True
    if overall.average is not None and sum(risks) > overall.average * len(risks):
        return False
    above = [r for r in risks if overall.threshold is not None and r > overall.threshold]
    return overall.share is None or len(above) <= overall.share * len(risks)


def random_demand(rng: np.random.Generator) -> OverallRisk:
    average = Fraction(str(rng.choice(["0.09", "0.2", "0.25", "0.3", "0.5", "0.7"])))
    at_risk = (
        Fraction(str(rng.choice(["0.1", "0.2", "0.25", "0.4"]))),
        Fraction(str(rng.choice(["0", "0.05", "0.5"]))),
    )
    kind = int(rng.integers(3))
    return OverallRisk(average if kind < 2 else None, *(at_risk if kind else (None, None)))


SIZES = st.lists(st.integers(1, 12), max_size=14)
DEMANDS = st.integers(0, 10**6).map(lambda seed: random_demand(np.random.default_rng(seed)))


@given(SIZES, st.integers(1, 4), DEMANDS)
@settings(max_examples=examples(300))
def test_the_least_size_is_the_first_that_meets_the_definition(sizes: list[int], k: int, overall: OverallRisk) -> None:
    tried = range(k, max([*sizes, k]) + 2)
    wanted = next(q for q in tried if meets(overall, [s for s in sizes if s >= q]))
    assert overall.least_size(Counter(sizes), k) == least_again(overall, Counter(sizes), k) == wanted


@given(SIZES, st.integers(1, 4), DEMANDS)
@settings(max_examples=examples(300))
def test_both_formulas_of_the_core_agree(sizes: list[int], k: int, overall: OverallRisk) -> None:
    core = overall.core(Counter(sizes), k)
    assert core == core_again(overall, Counter(sizes), k)
    least = overall.least_size(Counter(sizes), k)
    assert core <= sum(s for s in sizes if s < least)


@given(st.lists(st.integers(1, 7), max_size=7), st.integers(1, 3), DEMANDS, st.data())
@settings(max_examples=examples(300))
def test_no_choice_of_classes_below_suppresses_fewer_rows_than_the_core_above(
    sizes: list[int], k: int, overall: OverallRisk, data: st.DataObject
) -> None:
    """Whatever classes are suppressed at a node, not the smallest alone: merged classes force no more."""
    fewest = min(
        sum(s for s, kept in zip(sizes, choice, strict=True) if not kept)
        for choice in product([True, False], repeat=len(sizes))
        if meets(overall, [s for s, kept in zip(sizes, choice, strict=True) if kept])
        and all(s >= k for s, kept in zip(sizes, choice, strict=True) if kept)
    )
    owner = [data.draw(st.integers(0, 3)) for _ in sizes]
    merged = [sum(s for s, o in zip(sizes, owner, strict=True) if o == i) for i in set(owner)]
    assert overall.core(Counter(merged), k) <= overall.core(Counter(sizes), k) <= fewest


def test_what_a_node_suppresses_is_no_core() -> None:
    """The twin that takes it for one would close nodes that pass: of merged classes more may have to go at once."""
    overall, finer, merged = OverallRisk(Fraction("0.12")), [2, 3, 5, 12], [5, 5, 12]
    lost = [sum(s for s in sizes if s < overall.least_size(Counter(sizes), 2)) for sizes in (finer, merged)]
    assert lost == [5, 10]
    assert overall.core(Counter(merged), 2) <= 5


# ---- inside the search --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole(Oracle):
    """A table with criteria of classes, and one of all released classes."""

    overall: OverallRisk = NOTHING

    def released(self, node: Node) -> set[tuple[object, ...]]:
        """Labels of the released classes: those that pass, but for the smallest sizes until the demand is met."""
        passing = {v: rows for v, rows in self.classes(node).items() if self.passes(rows)}
        least = 0
        while not meets(self.overall, [len(rows) for rows in passing.values() if len(rows) >= least]):
            least += 1
        return {v for v, rows in passing.items() if len(rows) >= least}

    def failing(self, node: Node) -> int:
        kept = self.released(node)
        return sum(len(rows) for v, rows in self.classes(node).items() if v not in kept)

    def loss(self, node: Node) -> Fraction:
        kept = self.released(node)
        leaves = [len({r[c] for r in self.rows}) for c in "abc"]
        total = Fraction(0)
        for values, rows in self.classes(node).items():
            for j, c in enumerate("abc"):
                alike = {r[c] for r in self.rows if generalised(r, node)[j] == values[j]}
                share = Fraction(len(alike) - 1, leaves[j] - 1) if leaves[j] > 1 else Fraction(0)
                total += len(rows) * (share if values in kept else 1)
        return total / (len(self.rows) * 3)


def whole_of(seed: int) -> Whole:
    oracle = random_oracle(seed)
    rng = np.random.default_rng(seed + 1)
    asked = oracle.asked[:1] if rng.random() < 0.5 else ()
    return Whole(oracle.rows, oracle.k, asked, random_demand(rng))


def job(whole: Whole, limit: float, method: str = "frontier") -> sqldeid.Job:
    base = job_of(whole, limit, method)
    content = json.loads(base.model_dump_json(exclude_unset=True, by_alias=True))
    content["tables"]["people"]["privacy"] |= whole.overall.said()
    return sqldeid.Job.parse(content)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_each_node_and_the_optimum_are_those_of_exhaustive_search(
    connection: duckdb.DuckDBPyConnection, seed: int
) -> None:
    whole, limit = whole_of(seed), (0.0, 0.1, 0.3, 0.6, 1.0)[seed % 5]
    fill(connection, whole.rows)
    with reading(connection, None, sqldeid.Settings()) as engine:
        asked = job(whole, limit)
        plan = planning.plan("people", asked.tables["people"], engine, asked.folder)
        folded = fold(plan, engine)
        allowed = allowed_rows(limit, len(whole.rows))
        judge = Judge(engine, folded, whole.k, plan.criteria, "people") if plan.criteria else None
        checker = Checker(engine, folded, whole.k, allowed, "people", judge, overall=plan.overall)
        found = {e.node: e for e in checker(NODES)}
        exact = {node: whole.failing(node) for node in NODES}
        for node, e in found.items():
            few = Oracle(whole.rows, whole.k, whole.asked).failing(node)
            assert e.failing == exact[node] if few <= allowed else e.failing > allowed
            below_it = [exact[x] for x in NODES if below(x, node)]
            assert e.core_failing <= min(below_it)
        for method in METHODS:
            assert find(checker, method) == whole.optimum(allowed)


def test_the_core_closes_more_than_k_does(connection: duckdb.DuckDBPyConnection) -> None:
    """Otherwise the tests above could not fail for want of a core."""
    rows = tuple({"a": i % 8, "b": "xx", "c": "f", "s": "low", "n": i, "d": None} for i in range(40))
    overall = OverallRisk(Fraction("0.1"))
    assert overall.core(Counter({5: 8}), 2) == 40
    assert Whole(rows, 2, (), overall).optimum(4) == (1, 0, 0)
    fill(connection, rows)
    found = sqldeid.anonymize(job(Whole(rows, 2, (), overall), 0.1), connection).releases["people"]
    assert (found.k, found.classes, found.search.optimal) == (10, 4, True)


def checked(connection: duckdb.DuckDBPyConnection, whole: Whole, limit: float, nodes: Sequence[Node]) -> Checked:
    """Evaluations of nodes, and the problem that they are of."""
    fill(connection, whole.rows)
    asked = job(whole, limit)
    with reading(connection, None, sqldeid.Settings()) as engine:
        plan = planning.plan("people", asked.tables["people"], engine, asked.folder)
        folded = fold(plan, engine)
        allowed = allowed_rows(limit, folded.rows)
        checker = Checker(engine, folded, whole.k, allowed, "people", None, overall=plan.overall)
        marginals = [c.marginal for c in folded.columns]
        loss = make_loss("loss", marginals, folded.rows)
        return checker(nodes), Problem(plan.lattice, marginals, folded.rows, allowed, loss, checker)


def of_sizes(*groups: tuple[int, int, str]) -> tuple[Row, ...]:
    """Rows: how many, with which a, and with which first letter of b (q has ten values)."""
    return tuple(
        {"a": a, "b": f"{b}{i % 10 if b == 'q' else 0}", "c": "f", "s": "low", "n": 0, "d": None}
        for n, a, b in groups
        for i in range(n)
    )


def test_a_finer_node_may_suppress_fewer_rows_and_stays_open(connection: duckdb.DuckDBPyConnection) -> None:
    """By `a` as it is 2, 3, 5 and 12 rows, of which 5 go; in pairs 5, 5 and 12, of which 10 must."""
    whole = Whole(of_sizes((2, 0, "x"), (3, 1, "x"), (5, 2, "x"), (12, 4, "x")), 2, (), OverallRisk(Fraction("0.12")))
    (finer, coarser), problem = checked(connection, whole, 0.25, [(0, 0, 0), (1, 0, 0)])
    assert (finer.failing, coarser.failing, problem.allowed) == (5, 10, 5)
    assert coarser.core_failing <= finer.failing


def test_a_bound_does_not_take_the_suppressed_rows_for_those_below(connection: duckdb.DuckDBPyConnection) -> None:
    """Of y the class p goes, which loses nothing by its levels; of x two classes q, which have lost much already."""
    rows = of_sizes((5, 0, "p"), (2, 2, "q"), (4, 3, "q"), (40, 4, "q"))
    whole = Whole(rows, 2, (), OverallRisk(Fraction("0.045")))
    x, y = (0, 1, 0), (1, 1, 0)
    (of_x, of_y), problem = checked(connection, whole, 0.5, [x, y])
    assert (of_x.failing, of_y.failing, of_y.core_failing, of_y.core_moves) == (6, 5, 5, True)
    true, bounds = problem.loss.of(of_x), []
    for known in (of_y, replace(of_y, core_moves=False)):
        region = Region(problem)
        region.learn(known)
        bounds.append(region.least[x])
        claim = Claim(problem.lattice.heights, problem.allowed, problem.loss, (true, 6, x), true, optimal=False)
        facts = Facts(claim, (known,))
        units = sum(facts.kept(known, j, level) for j, level in enumerate(x)) + problem.loss.suppressed_row * 5
        assert units == bounds[-1]
    assert bounds[0] <= true < bounds[1], "the twin that looks at the wrong rows claims too much"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_release_is_that_of_the_definition_and_verifies_with_its_certificate(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    whole, limit = whole_of(seed + 100), (0.1, 0.4, 0.8)[seed % 3]
    path = tmp_path_factory.mktemp("whole") / "data.duckdb"
    with duckdb.connect(str(path)) as c:
        fill(c, whole.rows)
    asked = job(whole, limit)
    best = whole.optimum(allowed_rows(limit, len(whole.rows)))
    if best is None:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(asked, path)
        return
    result = sqldeid.anonymize(asked, path, options=sqldeid.Options(certificate=True))
    release = result.releases["people"]
    assert tuple(release.node[c] for c in "abc") == best
    kept = whole.released(best)
    assert (release.classes, release.suppressed) == (len(kept), whole.failing(best))
    names = [c.name for c in release.criteria]
    assert [w.name for w in whole.overall.words] == [n for n in names if n in ("average risk", "records at risk")]
    assert release.criteria[0].asked == whole.k
    assert isinstance(release.certificate, dict)
    proven = sqldeid.verify_certificates(asked, path, {"people": release.certificate})["people"]
    assert proven.optimal
    again = sqldeid.verify(asked, path)["people"]
    assert (again.released, again.classes) == (len(whole.rows) - whole.failing(best), len(kept))
    lax = {**release.certificate, "criteria": {"l_diversity": [], "t_closeness": []}}
    with pytest.raises(VerificationError):
        sqldeid.verify_certificates(asked, path, {"people": lax})
    _tamper(path, whole, asked)


def _tamper(path, whole: Whole, asked: sqldeid.Job) -> None:
    """A release of k alone is not one of the whole's demand."""
    plain = replace(whole, overall=NOTHING)
    if all(plain.failing(node) == whole.failing(node) for node in NODES):
        return
    with duckdb.connect(str(path)) as c:
        schema = c.execute("SELECT table_schema FROM information_schema.tables WHERE table_name = 'people'").fetchall()
        (where,) = {s for (s,) in schema if s != "main"}
        c.execute(f'DELETE FROM "{where}".people WHERE rowid = 0')
    with pytest.raises(VerificationError):
        sqldeid.verify(asked, path)


# ---- around the search --------------------------------------------------------------------------------------------


PAGE = Path(__file__).parents[3] / "docs/risk.md"


def example() -> dict[str, Any]:
    """The job of the page."""
    found: dict[str, Any] = tomllib.loads(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])
    return found


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    path = tmp_path / "hospital.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE patients (id INTEGER, age INTEGER, sex TEXT, illness TEXT)")
        rng = np.random.default_rng(5)
        ages = 20 + (60 * rng.random(200) ** 2).astype(int)
        insert(
            c,
            "patients",
            [(i, int(age), str(rng.choice(["f", "m"])), str(i % 3)) for i, age in enumerate(ages)],
        )
    return path


def test_the_example_of_the_page_runs_and_is_told_everywhere(patients: Path) -> None:
    job = sqldeid.Job.parse(example())
    result = sqldeid.anonymize(job, patients, options=sqldeid.Options(certificate=True))
    release = result.releases["patients"]
    sizes = dict(release.risk["release"].class_sizes)
    rows = sum(size * n for size, n in sizes.items())
    by_name = {c.name: c for c in release.criteria}
    assert by_name["average risk"].achieved == pytest.approx(sum(sizes.values()) / rows)
    assert sum(sizes.values()) <= 0.09 * rows
    small = sum(size * n for size, n in sizes.items() if size < 5)
    assert by_name["records at risk"].achieved == pytest.approx(small / rows)
    assert small <= 0.05 * rows
    for page in (report_page(result.to_dict()), public_page(result.to_public())):
        assert "average risk" in page.lower()
    (plan,) = sqldeid.plan(job, patients)
    assert plan.demands.to_dict()["average_risk"] == 0.09
    measured = {m.name: m for m in sqldeid.assess(job, patients)["patients"].criteria}
    assert not measured["average risk"].met
    assert sqldeid.verify(job, patients)["patients"].released == rows


def test_a_policy_keeps_the_demand_and_says_what_it_lacks(patients: Path) -> None:
    job = sqldeid.Job.parse(example())
    first = json.loads(json.dumps(sqldeid.anonymize(job, patients).to_dict(), default=str))
    again = sqldeid.Options(policy=first, replace=True, without_ledger=True)
    assert sqldeid.anonymize(job, patients, options=again).releases["patients"].k == first["releases"]["patients"]["k"]
    with duckdb.connect(str(patients)) as c:
        node = first["releases"]["patients"]["node"]
        band = [1, 5, 10, 20, 1000][node["age"]]
        sex = "sex" if node["sex"] == 0 else "1"
        c.execute(
            f"CREATE OR REPLACE TABLE patients AS SELECT * FROM patients "
            f"QUALIFY ROW_NUMBER() OVER (PARTITION BY age // {band}, {sex} ORDER BY id) <= 4"
        )
    with pytest.raises(VerificationError, match="smallest other classes, for average risk and records at risk"):
        sqldeid.anonymize(job, patients, options=again)


def test_a_trade_off_is_of_the_whole_demand(patients: Path) -> None:
    job = sqldeid.Job.parse(example())
    points = sqldeid.tradeoff(job, patients, sqldeid.Asked((3,), (0.1,)))["patients"].points
    found = sqldeid.anonymize(job, patients).releases["patients"]
    assert [(p.node, p.suppressed) for p in points] == [(found.node, found.suppressed)]


REFUSED = {
    "inverse-ola": {"search": {"method": "inverse-ola", "max_loss": 0.5}},
    "epsilon-safe": {"search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.1, "epsilon": 1.0, "delta": 0.1}}},
    "mondrian": {"search": {"method": "mondrian"}},
    "local": {"search": {"method": "local"}},
    "by-k": {"search": {"choose": "by-k"}},
    "blunt": {"search": {"blunt": 0.5}},
    "blank": {"privacy": {"suppression": "blank"}},
    "many": {"rows": "many"},
    "view": {"view": "computed"},
    "link": {"link": "others"},
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("key", ["average_risk", "at_risk"])
def test_where_it_does_not_carry_over_it_is_refused(name: str, key: str) -> None:
    content = example()
    table = content["tables"]["patients"]
    del table["privacy"][{"average_risk": "at_risk", "at_risk": "average_risk"}[key]]
    for part, change in REFUSED[name].items():
        table[part] = {**table.get(part, {}), **change} if isinstance(change, dict) else change
    with pytest.raises(JobError) as refused:
        sqldeid.Job.parse(content)
    assert f"tables.patients.privacy.{key}: does not go with" in str(refused.value)


def test_a_release_that_another_one_follows_or_a_ledger_holds_is_refused(patients: Path, tmp_path: Path) -> None:
    content = example()
    content["tables"]["others"] = {**json.loads(json.dumps(content["tables"]["patients"])), "link": "patients"}
    del content["tables"]["others"]["privacy"]["average_risk"], content["tables"]["others"]["privacy"]["at_risk"]
    with pytest.raises(JobError, match=r"tables\.patients\.privacy\.average_risk: does not go with a link from"):
        sqldeid.Job.parse(content)
    key = tmp_path / "key"
    key.write_text("0123456789abcdeff0e1d2c3b4a596871122334455667788a9b8c7d6e5f40312")
    options = sqldeid.Options(ledger=tmp_path / "ledger.duckdb", key_file=key)
    with pytest.raises(JobError, match=r"privacy\.average_risk: .*it may fail.*\n.*privacy\.at_risk: .*it may fail"):
        sqldeid.anonymize(sqldeid.Job.parse(example()), patients, options=options)


def test_what_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownKindError):
        OverallRisk()
    with pytest.raises(UnknownKindError):
        OverallRisk(None, Fraction(1, 5), None)
    made_up: Any = type("MadeUp", (), {"average": Fraction(1), "threshold": None, "share": None})()
    with pytest.raises(UnknownKindError):
        least_again(made_up, {2: 1}, 1)
