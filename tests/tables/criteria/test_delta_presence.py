"""δ-presence: against its definition, exhaustive search, all worlds that a reader cannot tell apart, and cheats."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, SqldeidError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.run import reading
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.criteria.delta_presence import DeltaPresence
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node, below
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.planned import criteria as told
from tests.support.criteria import NODES, Oracle, Row, find, generalised
from tests.support.sources import insert
from tests.tables.criteria.test_criteria import job_of
from tests.tables.criteria.test_k_map import CERTIFIED, REFUSED, Mapped, fill_both, mapped_of

__all__ = ["study"]


@dataclass(frozen=True)
class Present(Mapped):
    """A table with k, criteria of classes and δ-presence in a population that holds its rows."""

    least: Fraction = Fraction(0)
    most: Fraction = Fraction(1)

    def shares(self, node: Node) -> list[Fraction]:
        """Of each class of the population: how many of its persons are in the source."""
        here = Counter(generalised(row, node) for row in self.rows)
        there = Counter(generalised(row, node) for row in self.everybody)
        return [Fraction(here[v], n) for v, n in there.items()]

    def passing(self, node: Node) -> dict[tuple[object, ...], list[Row]]:
        if not all(self.least <= share <= self.most for share in self.shares(node)):
            return {}
        return super().passing(node)


def present_of(seed: int) -> Present:
    """Bounds that some nodes meet, and often not all."""
    mapped, rng = mapped_of(seed), np.random.default_rng(seed + 77)
    loose = Present(mapped.rows, mapped.k, mapped.asked, mapped.everybody)
    node = NODES[int(rng.integers(len(NODES)))]
    shares = loose.shares(node)
    most = Fraction(-(-max(shares) * 1000 // 1), 1000)
    least = Fraction(min(shares) * 1000 // 1, 1000) if rng.random() < 0.5 else Fraction(0)
    return replace(loose, least=least, most=min(most, Fraction(1)), k_map=int(rng.choice([1, 1, 6])))


def job(asked: Present, limit: float) -> sqldeid.Job:
    content = json.loads(job_of(asked, limit, "frontier").model_dump_json(exclude_unset=True, by_alias=True))
    privacy = content["tables"]["people"]["privacy"]
    privacy |= {"delta_presence": {"least": float(asked.least), "most": float(asked.most)}}
    privacy |= {"population": {"table": "everybody"}, **({"k_map": asked.k_map} if asked.k_map > 1 else {})}
    return sqldeid.Job.parse(content)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(10))
def test_each_node_and_the_optimum_are_those_of_exhaustive_search(seed: int) -> None:
    asked, limit = present_of(seed), (0.0, 0.1, 0.3, 0.6)[seed % 4]
    wanted = job(asked, limit)
    with duckdb.connect() as connection:
        fill_both(connection, asked)
        with reading(connection, None, sqldeid.Settings()) as engine:
            plan = planning.plan("people", wanted.tables["people"], engine, wanted.folder)
            folded = fold(plan, engine)
            allowed = allowed_rows(limit, len(asked.rows))
            judge = Judge(engine, folded, asked.k, plan.criteria, "people", None, plan.k_map, plan.presence)
            checker = Checker(engine, folded, asked.k, allowed, "people", judge)
            exact = {node: asked.failing(node) for node in NODES}
            for e in checker(NODES):
                few = Oracle(asked.rows, asked.k, ()).failing(e.node)
                assert e.failing == (exact[e.node] if few <= allowed else few)
                assert e.core_failing <= min(exact[x] for x in NODES if below(x, e.node))
            for method in ("frontier", "best-first", "flash"):
                assert find(checker, method) == asked.optimum(allowed)


def test_random_bounds_matter() -> None:
    """Of the tables above, bounds close nodes in most, and leave some open in most."""
    every = [present_of(seed) for seed in range(10)]
    open_nodes = [sum(all(a.least <= s <= a.most for s in a.shares(n)) for n in NODES) for a in every]
    assert sum(n < len(NODES) for n in open_nodes) >= 5
    assert sum(n > 0 for n in open_nodes) == 10
    assert any(a.least > 0 for a in every)


@pytest.mark.parametrize("seed", range(4))
def test_a_release_is_that_of_the_definition_and_verifies_with_its_certificate(tmp_path: Path, seed: int) -> None:
    asked, limit, path = present_of(seed + 100), (0.1, 0.4, 0.8)[seed % 3], tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as c:
        fill_both(c, asked)
    wanted, best = job(asked, limit), asked.optimum(allowed_rows(limit, len(asked.rows)))
    if best is None:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(wanted, path)
        return
    release = sqldeid.anonymize(wanted, path, options=CERTIFIED).releases["people"]
    assert tuple(release.node[c] for c in "abc") == best
    assert release.suppressed == asked.failing(best)
    achieved = {c.name: c.achieved for c in release.criteria}
    assert achieved["delta-presence"] == pytest.approx(float(max(asked.shares(best))))
    assert achieved.get("delta-presence, least", 0) == pytest.approx(
        float(min(asked.shares(best))) if asked.least else 0
    )
    proof = json.loads(json.dumps(release.certificate))
    assert sqldeid.verify_certificates(wanted, path, {"people": proof})["people"].optimal  # type: ignore[union-attr]
    assert sqldeid.verify(wanted, path)["people"].released == len(asked.rows) - asked.failing(best)
    for after in (True, False):
        node = best if after else (0, 0, 0)
        found = {m.name: m for m in sqldeid.assess(wanted, path, release=after)["people"].criteria}["delta-presence"]
        assert found.achieved == pytest.approx(float(max(asked.shares(node))))
        assert found.met == (max(asked.shares(node)) <= asked.most)


# ---- what a reader believes who knows all but who is in the study ---------------------------------------------------

POPULATION = (3, 2, 5)
"""Persons of the population by class."""

BOUND = Fraction(3, 5)


def beliefs(release: Any, told: Any) -> list[tuple[Fraction, tuple[object, ...]]]:
    """The greatest belief in a class's persons over all that a reader may see, every set of persons being as likely.

    Parameters
    ----------
    release
        From the rows by class to what of them is shown; None where nothing is released.
    told
        What else the reader knows, from the rows by class.
    """
    worlds: dict[tuple[object, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for rows in product(*(range(p + 1) for p in POPULATION)):
        shown = release(rows)
        if shown is not None:
            ways = int(np.prod([comb(p, n) for p, n in zip(POPULATION, rows, strict=True)]))
            worlds.setdefault((shown, told(rows)), []).append((ways, rows))
    found = []
    for seen, some in worlds.items():
        weight = sum(ways for ways, _ in some)
        for i, p in enumerate(POPULATION):
            found.append((sum((Fraction(ways * rows[i], p) for ways, rows in some), Fraction(0)) / weight, seen))
    return found


def ours(rows: tuple[int, ...]) -> tuple[int, ...] | None:
    """k = 2 by suppression; shares of all rows within the bound, or no release."""
    if any(n > BOUND * p for n, p in zip(rows, POPULATION, strict=True)):
        return None
    return tuple(n if n >= 2 else 0 for n in rows)


def by_suppression(rows: tuple[int, ...]) -> tuple[int, ...]:
    """The wrong twin: classes above the bound are left out."""
    return tuple(n if n >= 2 and n <= BOUND * p else 0 for n, p in zip(rows, POPULATION, strict=True))


def as_one_class(rows: tuple[int, ...]) -> tuple[int, ...] | None:
    """The other one: all that is left out counts as one class, which keeps to the bound."""
    shown = by_suppression(rows)
    left = [(n, p) for n, s, p in zip(rows, shown, POPULATION, strict=True) if not s]
    return shown if sum(n for n, _ in left) <= BOUND * sum(p for _, p in left) else None


NOTHING, SIZE = (lambda rows: None), sum


@pytest.mark.parametrize("told", [NOTHING, SIZE, lambda rows: rows], ids=["nothing", "size", "every count"])
def test_no_reader_believes_more_than_the_bound_whatever_is_told_of_suppressed_rows(told: Any) -> None:
    assert max(belief for belief, _ in beliefs(ours, told)) <= BOUND


@pytest.mark.parametrize("twin", [by_suppression, as_one_class])
def test_leaving_classes_out_does_not_bound_what_a_reader_believes(twin: Any) -> None:
    """Who knows the size of the study is surer than the bound."""
    assert max(belief for belief, _ in beliefs(twin, SIZE)) > BOUND


# ---- everywhere it is told, cheats, and where it does not carry over -------------------------------------------------


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a fifth of a register; one class of age and sex is nearly all in it."""
    path, rng = tmp_path / "register.duckdb", np.random.default_rng(8)
    ages, sexes = rng.integers(20, 80, 3000), rng.choice(["f", "m"], 3000)
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE residents (id INTEGER, age INTEGER, sex TEXT, illness TEXT)")
        rows = [(i, int(age), str(sex), str(i % 3)) for i, (age, sex) in enumerate(zip(ages, sexes, strict=True))]
        insert(c, "residents", rows)
        c.execute("CREATE TABLE study AS SELECT * FROM residents WHERE id % 5 = 3 OR (age = 44 AND sex = 'f')")
    return path


def example(**privacy: Any) -> dict[str, Any]:
    columns = {
        "id": {"role": "identifying"},
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "illness": {"role": "sensitive"},
    }
    asked = {"k": 2, "suppression_limit": 0.1, "delta_presence": {"least": 0.1, "most": 0.35}, **privacy}
    asked.setdefault("population", {"table": "residents"})
    return {"tables": {"study": {"source": "study", "person": "id", "columns": columns, "privacy": asked}}}


def test_it_is_told_everywhere_and_a_policy_knows_it(study: Path) -> None:
    asked = sqldeid.Job.parse(example())
    result = sqldeid.anonymize(asked, study, options=CERTIFIED)
    release = result.releases["study"]
    assert release.suppressed == 0, "no row is in the way of k"
    found = {c.name: c for c in release.criteria}
    assert 0.1 <= found["delta-presence, least"].achieved < found["delta-presence"].achieved <= 0.35
    for page in (report_page(result.to_dict()), public_page(result.to_public())):
        assert "delta-presence" in page.lower()
    left_out = release.attacks.left_out
    assert any("delta_presence" in left.reason for left in left_out)
    [planned] = sqldeid.plan(asked, study)
    assert ("Delta-presence", "from 0.1 to 0.35 of each class of the population") in list(
        told(cast("TablePlan", planned))
    )
    policy = json.loads(json.dumps(result.to_dict(), default=str))
    again = sqldeid.Options(policy=policy, replace=True, without_ledger=True)
    with duckdb.connect(str(study)) as c:
        c.execute("DELETE FROM residents WHERE age < 40 AND id % 5 <> 3")
    with pytest.raises(VerificationError, match="the share of a class of the population is out of bounds"):
        sqldeid.anonymize(asked, study, options=again)
    with pytest.raises(VerificationError, match="fails delta-presence"):
        sqldeid.verify(asked, study)


def test_an_upper_bound_alone_does_not_ask_for_every_class(study: Path) -> None:
    with duckdb.connect(str(study)) as c:
        c.execute("DELETE FROM study WHERE age > 60")
    lax = sqldeid.anonymize(sqldeid.Job.parse(example(delta_presence={"most": 0.9})), study).releases["study"]
    assert [c.name for c in lax.criteria if "presence" in c.name] == ["delta-presence"]
    strict = sqldeid.anonymize(sqldeid.Job.parse(example()), study, options=CERTIFIED).releases["study"]
    assert strict.node["age"] == 4, "a class without any of the study is below the least share"


def test_a_release_and_a_certificate_of_k_alone_are_not_taken_for_it(study: Path) -> None:
    asked, lax = sqldeid.Job.parse(example()), example()
    del lax["tables"]["study"]["privacy"]["delta_presence"], lax["tables"]["study"]["privacy"]["population"]
    result = sqldeid.anonymize(sqldeid.Job.parse(lax), study, options=CERTIFIED)
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(asked, study)
    proof = json.loads(json.dumps(result.releases["study"].certificate))
    proof["criteria"]["delta_presence"] = {"least": 0.1, "most": 0.35}  # a liar's, whose counts are those of k alone
    with pytest.raises(VerificationError):
        sqldeid.verify_certificates(asked, study, {"study": proof})


@pytest.mark.parametrize("name", REFUSED)
def test_where_it_does_not_carry_over_it_is_refused(name: str) -> None:
    content = example()
    table = content["tables"]["study"]
    for part, change in REFUSED[name].items():
        table[part] = {**table.get(part, {}), **change} if isinstance(change, dict) else change
    with pytest.raises(JobError, match=r"tables\.study\.privacy\.delta_presence: does not go with"):
        sqldeid.Job.parse(content)


@pytest.mark.parametrize(
    ("privacy", "key"),
    [
        ({"population": None}, "population: missing"),
        ({"delta_presence": {"least": 0.5, "most": 0.4}}, "delta_presence.least: is above most"),
        ({"delta_presence": {"most": 0.12345678901}}, "delta_presence.most: has more than 9 decimals"),
        ({"suppression_limit": 1}, "suppression_limit: is 1"),
    ],
)
def test_bounds_that_cannot_be_meant_are_refused(privacy: dict[str, Any], key: str) -> None:
    content = example(**privacy)
    asked = content["tables"]["study"]["privacy"]
    content["tables"]["study"]["privacy"] = {k: v for k, v in asked.items() if v is not None}
    with pytest.raises(JobError, match=r"tables\.study\.privacy\." + key.replace(".", r"\.")):
        sqldeid.Job.parse(content)


def test_who_judges_without_the_population_raises(study: Path) -> None:
    asked = sqldeid.Job.parse(example())
    with reading(study, study, sqldeid.Settings()) as engine:
        plan = planning.plan("study", asked.tables["study"], engine, asked.folder)
        folded = fold(plan, engine)
        presence = DeltaPresence(Fraction(0), Fraction(1))
        lost = Judge(engine, replace(folded, both=None), 1, (), "study", None, None, presence)
        checker = Checker(engine, folded, 1, 300, "study", lost)
        with pytest.raises(SqldeidError, match="not folded with their population"):
            checker([plan.lattice.top])
