"""k-map by the table of a population: against its definition, exhaustive search, and cheats that must be caught."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, SqldeidError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.run import reading
from sqldeid.sql import render
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.fold.population import log_chance
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node, below
from sqldeid.tables.plan import plan as planning
from tests.support.criteria import NODES, Oracle, Row, find, generalised
from tests.support.sources import insert
from tests.tables.criteria.test_criteria import fill, job_of, random_oracle

CERTIFIED = sqldeid.Options(certificate=True, replace=True, without_ledger=True)


@dataclass(frozen=True)
class Mapped(Oracle):
    """A table with criteria of classes, and k-map: rows of a population that holds its own."""

    everybody: tuple[Row, ...] = ()
    k_map: int = 1

    def passing(self, node: Node) -> dict[tuple[object, ...], list[Row]]:
        there = Counter(generalised(row, node) for row in self.everybody)
        return {v: r for v, r in self.classes(node).items() if self.passes(r) and there[v] >= self.k_map}

    def failing(self, node: Node) -> int:
        return len(self.rows) - sum(map(len, self.passing(node).values()))

    def loss(self, node: Node) -> Fraction:
        """Leaves are the values of both: the hierarchies are bound to both."""
        kept = self.passing(node)
        leaves = [len({r[c] for r in self.everybody}) for c in "abc"]
        total = Fraction(0)
        for values, rows in self.classes(node).items():
            for j, c in enumerate("abc"):
                alike = {r[c] for r in self.everybody if generalised(r, node)[j] == values[j]}
                share = Fraction(len(alike) - 1, leaves[j] - 1) if leaves[j] > 1 else Fraction(0)
                total += len(rows) * (share if values in kept else 1)
        return total / (len(self.rows) * 3)


def mapped_of(seed: int) -> Mapped:
    oracle, more = random_oracle(seed), random_oracle(seed + 5000)
    rng = np.random.default_rng(seed)
    others = more.rows + random_oracle(seed + 9000).rows[: int(rng.integers(0, 40))]
    asked = oracle.asked[:1] if rng.random() < 0.4 else ()
    everybody = tuple(oracle.rows[i] for i in rng.permutation(len(oracle.rows))) + others
    return Mapped(oracle.rows, int(rng.integers(1, 3)), asked, everybody, int(rng.choice([2, 4, 8, 15])))


def fill_both(connection: duckdb.DuckDBPyConnection, mapped: Mapped) -> None:
    fill(connection, mapped.everybody)
    connection.execute("CREATE OR REPLACE TABLE everybody AS SELECT a, b, c FROM people")
    fill(connection, mapped.rows)


def job(mapped: Mapped, limit: float, method: str = "frontier") -> sqldeid.Job:
    content = json.loads(job_of(mapped, limit, method).model_dump_json(exclude_unset=True, by_alias=True))
    content["tables"]["people"]["privacy"] |= {"k_map": mapped.k_map, "population": {"table": "everybody"}}
    return sqldeid.Job.parse(content)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(10))
def test_each_node_and_the_optimum_are_those_of_exhaustive_search(seed: int) -> None:
    mapped, limit = mapped_of(seed), (0.0, 0.1, 0.3, 0.6)[seed % 4]
    with duckdb.connect() as connection:
        fill_both(connection, mapped)
        asked = job(mapped, limit)
        with reading(connection, None, sqldeid.Settings()) as engine:
            plan = planning.plan("people", asked.tables["people"], engine, asked.folder)
            folded = fold(plan, engine)
            allowed = allowed_rows(limit, len(mapped.rows))
            judge = Judge(engine, folded, mapped.k, plan.criteria, "people", None, plan.k_map)
            checker = Checker(engine, folded, mapped.k, allowed, "people", judge)
            exact = {node: mapped.failing(node) for node in NODES}
            for e in checker(NODES):
                few = Oracle(mapped.rows, mapped.k, ()).failing(e.node)
                assert e.failing == (exact[e.node] if few <= allowed else few)
                assert e.core_failing <= min(exact[x] for x in NODES if below(x, e.node))
            for method in ("frontier", "best-first", "flash"):
                assert find(checker, method) == mapped.optimum(allowed)


@pytest.mark.parametrize("seed", range(4))
def test_a_release_is_that_of_the_definition_and_verifies_with_its_certificate(tmp_path: Path, seed: int) -> None:
    mapped, limit, path = mapped_of(seed + 100), (0.1, 0.4, 0.8)[seed % 3], tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as c:
        fill_both(c, mapped)
    asked, best = job(mapped, limit), mapped.optimum(allowed_rows(limit, len(mapped.rows)))
    if best is None:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(asked, path)
        return
    release = sqldeid.anonymize(asked, path, options=CERTIFIED).releases["people"]
    there, kept = Counter(generalised(row, best) for row in mapped.everybody), mapped.passing(best)
    assert tuple(release.node[c] for c in "abc") == best
    assert (release.classes, release.suppressed) == (len(kept), mapped.failing(best))
    achieved = {c.name: c.achieved for c in release.criteria}["k-map"]
    assert achieved == min((there[v] for v in kept), default=0)
    proof = json.loads(json.dumps(release.certificate))
    assert sqldeid.verify_certificates(asked, path, {"people": proof})["people"].optimal  # type: ignore[union-attr]
    assert sqldeid.verify(asked, path)["people"].released == len(mapped.rows) - mapped.failing(best)
    risk = sqldeid.assess(asked, path, release=True)["people"]
    assert not risk.journalist_is_prosecutor
    if kept:
        assert risk.journalist == pytest.approx(1 / achieved)
        found = sum(Fraction(len(rows), there[v]) for v, rows in kept.items())
        assert risk.marketer == pytest.approx(float(found / sum(map(len, kept.values()))))


# ---- the page's example, cheats, and places where it does not carry over --------------------------------------------


PAGE = Path(__file__).parents[3] / "docs/population.md"


def example() -> dict[str, Any]:
    """The job of the page."""
    found: dict[str, Any] = tomllib.loads(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])
    return found


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a tenth of a register."""
    path, rng = tmp_path / "register.duckdb", np.random.default_rng(8)
    ages, sexes = 20 + (60 * rng.random(3000) ** 2).astype(int), rng.choice(["f", "m"], 3000)
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE residents (id INTEGER, age INTEGER, sex TEXT, illness TEXT)")
        rows = [(i, int(age), str(sex), str(i % 3)) for i, (age, sex) in enumerate(zip(ages, sexes, strict=True))]
        insert(c, "residents", rows)
        c.execute("CREATE TABLE study AS SELECT * FROM residents WHERE id % 10 = 3")
    return path


def test_the_example_of_the_page_runs_and_is_told_everywhere(study: Path) -> None:
    asked = sqldeid.Job.parse(example())
    result = sqldeid.anonymize(asked, study, options=CERTIFIED)
    found = {c.name: c for c in result.releases["study"].criteria}
    assert found["k-map"].achieved >= 20 > found["k-anonymity"].achieved, "k alone would not do"
    for page in (report_page(result.to_dict()), public_page(result.to_public())):
        assert "k-map" in page.lower()
    left_out = result.releases["study"].attacks.left_out  # type: ignore[union-attr]
    assert any("population" in left.reason for left in left_out)
    before = sqldeid.assess(asked, study)["study"]
    assert not {m.name: m for m in before.criteria}["k-map"].met
    policy = json.loads(json.dumps(result.to_dict(), default=str))
    again = sqldeid.Options(policy=policy, replace=True, without_ledger=True)
    with duckdb.connect(str(study)) as c:
        c.execute("DELETE FROM residents WHERE id % 10 <> 3 AND id % 10 > 1")
    with pytest.raises(VerificationError, match="in classes of too few persons of the population"):
        sqldeid.anonymize(asked, study, options=again)
    with pytest.raises(VerificationError):  # the release no longer meets it, by the population as it is now
        sqldeid.verify(asked, study)


def test_a_release_of_k_alone_is_not_taken_for_one_of_k_map(study: Path) -> None:
    asked, lax = example(), example()
    del lax["tables"]["study"]["privacy"]["k_map"], lax["tables"]["study"]["privacy"]["population"]
    result = sqldeid.anonymize(sqldeid.Job.parse(lax), study, options=CERTIFIED)
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(sqldeid.Job.parse(asked), study)
    proof = json.loads(json.dumps(result.releases["study"].certificate))
    with pytest.raises(VerificationError, match="criteria"):
        sqldeid.verify_certificates(sqldeid.Job.parse(asked), study, {"study": proof})
    proof["criteria"]["k_map"] = 20  # a liar's, whose counts are those of k alone
    with pytest.raises(VerificationError):
        sqldeid.verify_certificates(sqldeid.Job.parse(asked), study, {"study": proof})


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("INSERT INTO residents SELECT * FROM residents WHERE id = 5", "rows, but "),
        ("UPDATE residents SET id = NULL WHERE id = 5", "persons are counted"),
        ("DELETE FROM residents WHERE id = 3", "has fewer persons than study of 1 combinations"),
        ("ALTER TABLE residents DROP sex", "residents.sex is not there"),
        ("ALTER TABLE residents ALTER age TYPE TEXT", "residents.age is of another type"),
        ("DROP TABLE residents", "tables.study.privacy.population.table"),
    ],
)
def test_a_population_that_cannot_be_one_is_refused(study: Path, change: str, named: str) -> None:
    with duckdb.connect(str(study)) as c:
        c.execute("DELETE FROM study WHERE age = (SELECT age FROM study WHERE id = 3) AND id <> 3")
        c.execute("DELETE FROM residents WHERE age = (SELECT age FROM study WHERE id = 3) AND id <> 3")
        c.execute(change)
    with pytest.raises(SqldeidError, match=named.replace(".", r"\.")):
        sqldeid.anonymize(sqldeid.Job.parse(example()), study)


# ---- the rest of a table --------------------------------------------------------------------------------------------


def trial() -> dict[str, Any]:
    """The second job of the page."""
    found: dict[str, Any] = tomllib.loads(PAGE.read_text(encoding="utf-8").split("```toml\n")[2].split("```")[0])
    return found


@pytest.fixture
def residents(study: Path) -> Path:
    with duckdb.connect(str(study)) as c:
        c.execute("ALTER TABLE residents ADD COLUMN enrolled BOOLEAN")
        c.execute("UPDATE residents SET enrolled = CASE id % 10 WHEN 3 THEN TRUE WHEN 4 THEN NULL ELSE FALSE END")
    return study


def test_the_rest_is_the_population_that_a_table_of_all_would_be(residents: Path) -> None:
    asked, named = trial(), trial()
    named["tables"]["trial"] |= {"source": "study", "privacy": {**asked["tables"]["trial"]["privacy"]}}
    del named["tables"]["trial"]["where"]
    named["tables"]["trial"]["privacy"]["population"] = {"table": "residents"}
    found, other = (
        sqldeid.anonymize(sqldeid.Job.parse(j), residents, options=CERTIFIED).releases["trial"] for j in (asked, named)
    )
    same = ("node", "suppressed", "released", "classes", "loss", "criteria")
    assert [getattr(found, n) for n in same] == [getattr(other, n) for n in same]
    sqldeid.anonymize(sqldeid.Job.parse(asked), residents, options=CERTIFIED)
    assert sqldeid.verify(sqldeid.Job.parse(asked), residents)["trial"].released == found.released
    proof = json.loads(json.dumps(found.certificate))
    assert sqldeid.verify_certificates(sqldeid.Job.parse(asked), residents, {"trial": proof})
    for released in (False, True):
        one, two = (sqldeid.assess(sqldeid.Job.parse(j), residents, release=released) for j in (asked, named))
        if not released:
            assert one["trial"] == two["trial"]
        assert one["trial"].journalist < 1 / 20 + 1e-9 or not released
    with duckdb.connect(str(residents)) as c:
        c.execute("DELETE FROM residents WHERE enrolled IS DISTINCT FROM TRUE")
    with pytest.raises(VerificationError):
        sqldeid.verify(sqldeid.Job.parse(asked), residents)


def test_whom_a_known_filter_leaves_out_hides_nobody(residents: Path) -> None:
    """The naive count takes all residents; who knows the filter counts those it keeps, and finds too few."""
    with duckdb.connect(str(residents)) as c:
        row = c.execute(
            "SELECT MIN(p) FROM (SELECT COUNT(*) FILTER (age >= 63) AS kept, COUNT(*) AS p FROM residents "
            "WHERE age BETWEEN 60 AND 64 GROUP BY sex)"
        ).fetchone()
        least = c.execute(
            "SELECT MIN(n) FROM (SELECT COUNT(*) AS n FROM residents WHERE age BETWEEN 63 AND 64 GROUP BY sex)"
        ).fetchone()
    assert row is not None and least is not None and least[0] < row[0]
    asked = trial()
    for where in (
        "age >= 63 AND enrolled",
        "enrolled AND residents.AGE > 3",
        "(SELECT TRUE)",
        "residents IS NULL",
    ):
        asked["tables"]["trial"]["where"] = where
        with pytest.raises(JobError, match=r"tables\.trial\.(where|privacy\.population\.rest)"):
            sqldeid.anonymize(sqldeid.Job.parse(asked), residents)


HIDDEN = {
    "id % 10 = 3": "that looks at id: who knows",
    "name < 'n5'": "that looks at name: who knows",
    "both.old > 63": r"that looks at named columns of the source alone",
    "STRUCT_EXTRACT(both, 'old') >= 63": r"that looks at both, which is of type STRUCT",
    "senior": "keeps all persons or none",
    "born < DATE '1960-01-01'": "keeps all persons or none",
}


@pytest.mark.parametrize("where", HIDDEN)
def test_a_filter_by_what_strangers_know_in_other_words_is_refused(residents: Path, where: str) -> None:
    """A key, a name, a part of a value, and columns that are computed from the age."""
    with duckdb.connect(str(residents)) as c:
        c.execute("ALTER TABLE residents RENAME TO those")
        c.execute(
            "CREATE VIEW residents AS SELECT *, 'n' || id AS name, age >= 63 AS senior, {'old': age} AS both, "
            "DATE '2023-01-01' - CAST(age * 365 AS INTEGER) AS born FROM those"
        )
    asked = trial()
    asked["tables"]["trial"]["columns"]["name"] = {"role": "identifying"}
    asked["tables"]["trial"]["where"] = where
    with pytest.raises(JobError, match=rf"tables\.trial\.privacy\.population\.rest: .*{HIDDEN[where]}"):
        sqldeid.anonymize(sqldeid.Job.parse(asked), residents)
    asked["tables"]["trial"]["where"] = "enrolled"
    assert sqldeid.anonymize(sqldeid.Job.parse(asked), residents).releases["trial"].released


@pytest.mark.parametrize("where", ["senior AND enrolled", "age_group <> 'old' AND enrolled", "odd AND enrolled"])
def test_a_filter_that_also_looks_at_what_strangers_know_is_refused(residents: Path, where: str) -> None:
    """By one column's values, by their groups, by two columns together; what strangers know belongs into the source."""
    with duckdb.connect(str(residents)) as c:
        c.execute("ALTER TABLE residents RENAME TO those")
        c.execute(
            "CREATE VIEW residents AS SELECT *, age >= 63 AS senior, CASE WHEN age < 50 THEN 'young' WHEN age < 70 "
            "THEN 'middle' ELSE 'old' END AS age_group, (age < 50) = (sex = 'F') AS odd FROM those"
        )
    asked = trial()
    asked["tables"]["trial"]["where"] = where
    with pytest.raises(JobError, match=r"population\.rest: .* keeps nobody of .* which chance does not explain"):
        sqldeid.anonymize(sqldeid.Job.parse(asked), residents)
    known, _, unknown = where.partition(" AND ")
    asked["tables"]["trial"] |= {"source": {"query": f"SELECT * FROM residents WHERE {known}"}, "where": unknown}
    job = sqldeid.Job.parse(asked)
    assert sqldeid.anonymize(job, residents).releases["trial"].released
    assert sqldeid.verify(job, residents)["trial"].released


@pytest.mark.parametrize("seed", range(3))
def test_chance_leaves_out_groups_no_more_often_than_is_said(seed: int) -> None:
    """Against every choice of n of p persons: each outcome, and worse ones, have the chance that is told, or less."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 5, 9))
    sizes = np.bincount(group, minlength=5)
    sizes = sizes[sizes > 0]
    group = np.repeat(np.arange(len(sizes)), sizes)
    for n in (2, 3, 5):
        seen = []
        for kept in combinations(range(9), n):
            gone = np.setdiff1d(np.arange(len(sizes)), group[list(kept)])
            seen.append((len(gone), int(sizes[gone].sum())))
        for gone, left_out in set(seen):
            exact = sum(g == gone and c >= left_out for g, c in seen) / len(seen)
            assert exact <= math.exp(log_chance(len(sizes), gone, left_out, n, 9)) * (1 + 1e-12)


def test_few_combinations_are_kept_or_left_out_whole_by_chance() -> None:
    """Whether a filter is one by quasi-identifying values is not to be seen of persons who are nearly all alone."""
    for alike, parted in ((3, 0), (40, 0), (40, 2)):
        with duckdb.connect() as c:
            values = [(i, 1 if i < parted else i % 2 * 2, 2) for i in range(alike)]
            c.execute("CREATE TABLE b (w0 BIGINT, n BIGINT, p BIGINT)")
            insert(c, "b", values)
            text = render("tables/fold/count_outside", both=exp.to_table("b"), words=[exp.to_identifier("w0")])
            [(outside, uncoded, found, likely)] = c.execute(text).fetchall()
        assert (outside, uncoded, found) == (0, 0, parted)
        share = sum(n for _, n, _ in values) / (2 * alike)
        assert likely == pytest.approx((share**2 + (1 - share) ** 2) ** alike)


def test_a_rest_with_several_rows_of_a_person_is_refused(residents: Path) -> None:
    with duckdb.connect(str(residents)) as c:
        c.execute("INSERT INTO residents SELECT * FROM residents WHERE id = 5")
    with pytest.raises(JobError, match="3,001 rows before where, but 3,000 values of id; persons are counted"):
        sqldeid.anonymize(sqldeid.Job.parse(trial()), residents)


@pytest.mark.parametrize(
    ("population", "where", "text"),
    [
        ({"rest": True}, None, "there is no where"),
        ({"rest": True, "table": "residents"}, "enrolled", "must hold exactly one of table, rest, size, weights"),
    ],
)
def test_a_population_is_one_of_two(population: dict[str, Any], where: str | None, text: str) -> None:
    asked = trial()
    asked["tables"]["trial"]["privacy"]["population"] = population
    if where is None:
        del asked["tables"]["trial"]["where"]
    with pytest.raises(JobError, match=text):
        sqldeid.Job.parse(asked)


REFUSED: dict[str, dict[str, Any]] = {
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
    "stack": {"stack": {"visits": {}}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_it_does_not_carry_over_it_is_refused(name: str) -> None:
    content = example()
    table = content["tables"]["study"]
    for part, change in REFUSED[name].items():
        table[part] = {**table.get(part, {}), **change} if isinstance(change, dict) else change
    with pytest.raises(JobError) as refused:
        sqldeid.Job.parse(content)
    assert "tables.study.privacy.k_map: does not go with" in str(refused.value)


@pytest.mark.parametrize("missing", ["k_map", "population"])
def test_both_are_stated_or_neither(missing: str) -> None:
    content = example()
    del content["tables"]["study"]["privacy"][missing]
    with pytest.raises(JobError, match=rf"tables\.study\.privacy\.{missing}: missing"):
        sqldeid.Job.parse(content)


def test_who_judges_without_the_population_raises(study: Path) -> None:
    asked = sqldeid.Job.parse(example())
    with reading(study, study, sqldeid.Settings()) as engine:
        plan = planning.plan("study", asked.tables["study"], engine, asked.folder)
        folded = fold(plan, engine)
        lost = Judge(engine, replace(folded, both=None), 1, (), "study", None, plan.k_map)
        checker = Checker(engine, folded, 1, 300, "study", lost)
        with pytest.raises(SqldeidError, match="not folded with their population"):
            checker([plan.lattice.top])


# ---- Adult ----------------------------------------------------------------------------------------------------------


FIVE = ("age", "sex", "race", "marital-status", "education")


def labels_of(folder: Path, name: str) -> list[dict[str, str]]:
    """Per level: value → label, as the file has them."""
    with (folder / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
        lines = [line for line in csv.reader(file, delimiter=";") if line]
    return [{line[0]: line[level] for line in lines} for level in range(len(lines[0]))]


@pytest.mark.deep
def test_a_sample_of_adult_is_released_as_exhaustive_search_does(shared_data: Path, tmp_path: Path) -> None:
    """Population: all 30,162; sample: a seeded tenth; five columns, each node counted by its labels."""
    folder, limit, k_map = shared_data / "adult", 0.02, 20
    with (folder / "adult.csv").open(encoding="utf-8") as file:
        rows = [tuple(line[c] for c in FIVE) for line in csv.DictReader(file, delimiter=";")]
    sample = [rows[i] for i in np.random.default_rng(42).choice(len(rows), len(rows) // 10, replace=False)]
    path = tmp_path / "adult.duckdb"
    with duckdb.connect(str(path)) as c:
        for name, some in (("everybody", rows), ("sample", sample)):
            c.register("given", pa.table({x: [r[j] for r in some] for j, x in enumerate(FIVE)}))
            c.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    columns = {x: {"role": "quasi-identifying", "hierarchy": str(folder / f"adult_hierarchy_{x}.csv")} for x in FIVE}
    privacy = {"k": 1, "k_map": k_map, "population": {"table": "everybody"}, "suppression_limit": limit}
    table = {"source": "sample", "rows_are_persons": True, "attacks": False, "columns": columns, "privacy": privacy}
    asked = sqldeid.Job.parse({"tables": {"sample": table}})
    release = sqldeid.anonymize(asked, path, options=CERTIFIED).releases["sample"]
    loss, suppressed, node, least, matched = exhausted(folder, rows, sample, k_map, allowed_rows(limit, len(sample)))
    assert tuple(release.node[x] for x in FIVE) == node
    assert (release.suppressed, release.loss["loss"]) == (suppressed, pytest.approx(float(loss), abs=1e-12))
    risk = sqldeid.assess(asked, path, release=True)["sample"]
    assert risk.journalist == pytest.approx(1 / least)
    assert risk.marketer == pytest.approx(matched / (len(sample) - suppressed))
    proof = json.loads(json.dumps(release.certificate))
    assert sqldeid.verify_certificates(asked, path, {"sample": proof})


Best = tuple[Fraction, int, Node, int, float]


def exhausted(
    folder: Path, rows: Sequence[tuple[str, ...]], sample: Sequence[tuple[str, ...]], k_map: int, allowed: int
) -> Best:
    """Least loss, suppressed rows, node, least persons of a released class, and rows found by guessing."""
    levels = [labels_of(folder, x) for x in FIVE]
    everybody, some = Counter(rows), Counter(sample)
    found: list[Best] = []
    for node in product(*(range(len(x)) for x in levels)):
        shown = [x[level] for x, level in zip(levels, node, strict=True)]
        leaves = [Counter(x.values()) for x in shown]
        there, here = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for counted, of in ((there, everybody), (here, some)):
            for row, n in of.items():
                counted[tuple(x[v] for x, v in zip(shown, row, strict=True))] += n
        kept = {v: n for v, n in here.items() if there[v] >= k_map}
        suppressed = len(sample) - sum(kept.values())
        if suppressed > allowed:
            continue
        shares = [
            sum(n * (of[v[j]] - 1) for v, n in kept.items()) * Fraction(1, len(shown[j]) - 1)
            for j, of in enumerate(leaves)
        ]
        loss = (sum(shares, Fraction(0)) / len(FIVE) + suppressed) / len(sample)
        matched = sum(n / there[v] for v, n in kept.items())
        found.append((loss, suppressed, node, min(there[v] for v in kept), matched))
    return min(found)
