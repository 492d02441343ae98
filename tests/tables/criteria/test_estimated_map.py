"""k-map by an estimate: against exact fractions, the sampling that it speaks of, exhaustive search, and cheats."""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, UnknownKindError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.tables.criteria.estimated_map import POISSON, TRUNCATED, EstimatedMap
from sqldeid.tables.verify.estimated import stands_out
from tests.support.criteria import Oracle, Row
from tests.support.examples import examples
from tests.support.sources import insert
from tests.tables.criteria.test_criteria import fill, job_of, random_oracle

PUBLISH = sqldeid.Options(certificate=True, replace=True, without_ledger=True)
KINDS = (POISSON, TRUNCATED)


def above(rows: int, mean: Fraction, kind: str) -> Fraction:
    """The probability of so many rows and more, of which one is seen for `TRUNCATED`; by the series of e^mean."""
    terms = [Fraction(1)]
    while len(terms) < 60 + 4 * mean:
        terms.append(terms[-1] * mean / len(terms))
    whole = sum(terms) - (terms[0] if kind == TRUNCATED else 0)
    return sum(terms[max(rows, 1 if kind == TRUNCATED else 0) :], Fraction(0)) / whole


def least_of(k: int, fraction: Fraction, kind: str, alpha: Fraction) -> int:
    """The least rows by the definition."""
    rows = 1
    while rows < k and (rows < k * fraction + 1 or above(rows, k * fraction, kind) > alpha):
        rows += 1
    return rows


ASKED = st.builds(
    EstimatedMap,
    st.integers(1, 60),
    st.just(10_000),
    st.fractions(Fraction(1, 100), 1, max_denominator=100),
    st.sampled_from(KINDS),
    st.sampled_from([Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20), Fraction(3, 10), Fraction(1, 2)]),
)


@settings(max_examples=examples(60), deadline=None)
@given(ASKED)
def test_the_least_class_is_that_of_the_definition_and_of_the_recheck(asked: EstimatedMap) -> None:
    least = least_of(asked.k, asked.fraction, asked.estimate, asked.significance)
    assert asked.least == least
    assert [rows for rows in range(1, asked.k + 2) if stands_out(asked, rows)] == list(range(least, asked.k + 2))
    assert asked.fitting(least) >= asked.k > asked.fitting(least - 1)


@settings(max_examples=examples(40), deadline=None)
@given(ASKED)
def test_a_class_of_too_few_persons_hardly_has_so_many_rows(asked: EstimatedMap) -> None:
    """What the guarantee says, with the binomial and the hypergeometric numbers that sampling gives."""
    size, n, rows = asked.size, int(asked.size * asked.fraction), asked.least
    for few in {n for n in (1, asked.k // 2, asked.k - 1) if 0 < n < asked.k}:
        p = asked.fraction
        binomial = [comb(few, i) * p**i * (1 - p) ** (few - i) for i in range(few + 1)]
        drawn = [Fraction(comb(few, i) * comb(size - few, n - i), comb(size, n)) for i in range(min(few, n) + 1)]
        for chances in (binomial, drawn):
            seen = sum(chances[1:]) if asked.estimate == TRUNCATED else Fraction(1)
            assert sum(chances[rows:], Fraction(0)) <= asked.significance * seen


def test_one_row_less_is_too_few_for_the_test() -> None:
    """A wrong twin: the threshold is not merely on the safe side."""
    for kind in KINDS:
        asked = EstimatedMap(200, 10_000, Fraction(1, 10), kind, Fraction(1, 20))
        assert above(asked.least - 1, Fraction(20), kind) > asked.significance
        assert not stands_out(asked, asked.least - 1)


def arx(k: int, mean: Fraction, kind: str, alpha: Fraction) -> int:
    """What ARX derives, by its two loops."""
    value, counter = Fraction(0), 0 if kind == POISSON else 1
    while value < 1 - alpha:
        value, counter = 1 - above(counter + 1, mean, kind), counter + 1
    return min(k, counter + 1 if kind == POISSON else counter)


@pytest.mark.parametrize(("k", "percent"), [(5, 10), (20, 10), (20, 1), (50, 30), (11, 50)])
def test_it_is_what_arx_derives_but_for_one_row_of_its_poisson(k: int, percent: int) -> None:
    fraction, alpha = Fraction(percent, 100), Fraction(1, 20)
    for kind in KINDS:
        asked = EstimatedMap(k, 10_000, fraction, kind, alpha)
        more = 1 if kind == POISSON else 0
        assert arx(k, k * fraction, kind, alpha) == min(k, asked.least + more)


def test_a_made_up_estimate_is_refused() -> None:
    with pytest.raises(UnknownKindError):
        EstimatedMap(5, 100, Fraction(1, 2), "normal", Fraction(1, 20))


# ---- releases -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimated(Oracle):
    """A table whose classes are released where the estimate's own test says so."""

    asked_of: EstimatedMap | None = None

    def passes(self, rows: list[Row]) -> bool:  # type: ignore[override]
        e = self.asked_of
        assert e is not None
        alike = len(rows) >= e.k or above(len(rows), e.k * e.fraction, e.estimate) <= e.significance
        return len(rows) >= self.k and len(rows) >= min(e.k, e.k * e.fraction + 1) and alike and super().passes(rows)


def estimated_of(seed: int) -> Estimated:
    oracle, rng = random_oracle(seed), np.random.default_rng(seed)
    percent, k = int(rng.integers(5, 60)), int(rng.choice([3, 6, 10, 20]))
    size = len(oracle.rows) * 100 // percent + 1
    asked = EstimatedMap(k, size, Fraction(percent, 100), KINDS[seed % 2], Fraction(int(rng.integers(1, 30)), 100))
    return Estimated(oracle.rows, int(rng.integers(1, 4)), oracle.asked[: seed % 3 // 2], asked_of=asked)


def stated(asked: EstimatedMap) -> dict[str, Any]:
    return {"k_map": asked.k, "population": asked.said()["population"]}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_a_release_is_the_optimum_of_exhaustive_search(tmp_path: Path, seed: int) -> None:
    oracle, limit, path = estimated_of(seed), (0.0, 0.2, 0.5, 0.9)[seed % 4], tmp_path / "data.duckdb"
    assert oracle.asked_of is not None
    content = json.loads(job_of(oracle, limit, "frontier").model_dump_json(exclude_unset=True, by_alias=True))
    content["tables"]["people"]["privacy"] |= stated(oracle.asked_of)
    with duckdb.connect(str(path)) as c:
        fill(c, oracle.rows)
    best, job = oracle.optimum(int(limit * len(oracle.rows) + 1e-9)), sqldeid.Job.parse(content)
    if best is None:
        with pytest.raises(sqldeid.SqldeidError):
            sqldeid.anonymize(job, path)
        return
    release = sqldeid.anonymize(job, path, options=PUBLISH).releases["people"]
    assert tuple(release.node[c] for c in "abc") == best
    assert release.suppressed == oracle.failing(best)
    proof = json.loads(json.dumps(release.certificate))
    assert sqldeid.verify_certificates(job, path, {"people": proof})["people"].optimal  # type: ignore[union-attr]
    assert sqldeid.verify(job, path)["people"].released == release.released


PAGE = Path(__file__).parents[3] / "docs/population.md"


def block() -> str:
    """The job of the page whose population has no table, as text."""
    blocks = [b.split("```")[0] for b in PAGE.read_text(encoding="utf-8").split("```toml\n")[1:]]
    return next(b for b in blocks if "fraction" in b)


def example() -> dict[str, Any]:
    """The same, read."""
    return tomllib.loads(block())


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A random sample of some 300 of 3,000."""
    path, rng = tmp_path / "study.duckdb", np.random.default_rng(8)
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE study (id INTEGER, age INTEGER, sex TEXT, illness TEXT)")
        rows = [(i, int(20 + 60 * rng.random() ** 2), str(rng.choice(["f", "m"])), str(i % 3)) for i in range(300)]
        insert(c, "study", rows)
    return path


def test_the_example_of_the_page_runs_and_is_told_everywhere(study: Path) -> None:
    content = example()
    job = sqldeid.Job.parse(content)
    result = sqldeid.anonymize(job, study, options=PUBLISH)
    found = {c.name: c for c in result.releases["study"].criteria}
    least = int(found["k-anonymity"].asked)
    assert least == least_of(20, Fraction(1, 10), TRUNCATED, Fraction(1, 20)) > 2
    assert found["k-map, estimated"].achieved >= 20 == found["k-map, estimated"].asked
    for page in (report_page(result.to_dict()), public_page(result.to_public())):
        assert "an estimate, no bound" in page
    raised = example()
    del raised["tables"]["study"]["privacy"]["k_map"], raised["tables"]["study"]["privacy"]["population"]
    raised["tables"]["study"]["privacy"]["k"] = least
    alone = sqldeid.anonymize(sqldeid.Job.parse(raised), study, options=PUBLISH).releases["study"]
    release = result.releases["study"]
    assert (release.node, release.suppressed, release.loss) == (alone.node, alone.suppressed, alone.loss)
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(job, study)  # what was written last does not say that it is by an estimate
    sqldeid.anonymize(job, study, options=PUBLISH)
    assert sqldeid.verify(job, study)["study"].released == release.released
    source, left = (sqldeid.assess(job, study, release=r)["study"].criteria for r in (False, True))
    met = [[m.met for m in found if m.name == "k-map, estimated"] for found in (source, left)]
    assert met == [[False], [True]]


def test_a_release_of_smaller_classes_is_caught(study: Path) -> None:
    """A liar notes the criteria of the job on a release of k alone."""
    lax, content = example(), example()
    del lax["tables"]["study"]["privacy"]["k_map"], lax["tables"]["study"]["privacy"]["population"]
    sqldeid.anonymize(sqldeid.Job.parse(lax), study, options=PUBLISH)
    job = sqldeid.Job.parse(content)
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(job, study)


def test_a_source_of_more_rows_than_the_share_is_refused_everywhere(study: Path) -> None:
    job = sqldeid.Job.parse(example())
    sqldeid.anonymize(job, study, options=PUBLISH)
    with duckdb.connect(str(study)) as c:
        c.execute("INSERT INTO study SELECT id + 1000, age, sex, illness FROM study LIMIT 60")
    again = lambda job, study: sqldeid.anonymize(job, study, options=PUBLISH)  # noqa: E731
    for act in (again, sqldeid.assess, sqldeid.verify):
        with pytest.raises(JobError, match=r"tables\.study\.privacy\.population\.fraction: .* has more rows than 0.1"):
            act(job, study)


def test_an_estimate_that_asks_for_more_rows_than_there_are_is_told(study: Path) -> None:
    content = example()
    content["tables"]["study"]["privacy"] |= {"k_map": 5000, "population": {"size": 3000, "fraction": 0.5}}
    with pytest.raises(JobError, match="by the estimate of k_map, but study has only 300 rows"):
        sqldeid.anonymize(sqldeid.Job.parse(content), study)


def test_trade_offs_say_below_which_k_it_fails(study: Path) -> None:
    least = least_of(20, Fraction(1, 10), TRUNCATED, Fraction(1, 20))
    for k, told in ((least - 1, True), (least, False)):
        traded = sqldeid.tradeoff(sqldeid.Job.parse(example()), study, sqldeid.Asked((k, 50), (0.5,), ()))["study"]
        assert any(f"k_map: as estimated, it fails where k is below {least}" in w for w in traded.warnings) == told


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "both": ("must hold exactly one of table, rest, size, weights", {"population": {"table": "study"}}),
    "no fraction": (r"population\.fraction: missing", {"population": {"fraction": None}}),
    "presence": ("needs a table of the population", {"delta_presence": {"most": 0.5}}),
    "game": ("needs a table of the population", {"game": {"payout": 1.0, "cost": 1.0, "attacker": "journalist"}}),
    "great": (r"is above 100,000", {"k_map": 100_001}),
    "no k_map": (r"k_map: missing", {"k_map": None}),
    "decimals": (r"fraction: has more than 9 decimals", {"population": {"fraction": 0.12345678912}}),
    "significance": ("significance", {"population": {"significance": 0.9}}),
    "kind": ("estimate", {"population": {"estimate": "normal"}}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(name: str) -> None:
    text, change = REFUSED[name]
    content = example()
    privacy = content["tables"]["study"]["privacy"]
    for key, value in change.items():
        privacy[key] = {**privacy[key], **value} if key == "population" else value
        if isinstance(privacy[key], dict):
            privacy[key] = {n: x for n, x in privacy[key].items() if x is not None}
    content["tables"]["study"]["privacy"] = {n: x for n, x in privacy.items() if x is not None}
    with pytest.raises(JobError, match=text):
        sqldeid.Job.parse(content)


@pytest.mark.parametrize("key", ["fraction", "estimate", "significance"])
def test_keys_of_an_estimate_do_not_go_with_a_table(key: str) -> None:
    content = example()
    population = content["tables"]["study"]["privacy"]["population"]
    value = {"fraction": 0.1, "estimate": POISSON, "significance": 0.1}[key]
    content["tables"]["study"]["privacy"]["population"] = {"table": "all", key: value}
    assert population["size"]
    with pytest.raises(JobError, match=rf"population\.{key}: goes with size alone"):
        sqldeid.Job.parse(content)


# ---- Adult ----------------------------------------------------------------------------------------------------------


FIVE = ("age", "sex", "race", "marital-status", "education")


def test_of_twenty_samples_of_adult_few_release_too_small_classes(shared_data: Path) -> None:
    """Population: all 30,162; sample: a seeded tenth; the share of too small classes that have so many rows."""
    with (shared_data / "adult" / "adult.csv").open(encoding="utf-8") as file:
        rows = [tuple(line[c] for c in FIVE) for line in csv.DictReader(file, delimiter=";")]
    everybody, n = Counter(rows), len(rows) // 10
    for kind in KINDS:
        asked = EstimatedMap(20, len(rows), Fraction(1, 10), kind, Fraction(1, 20))
        shares, loose = [], []
        for seed in range(20):
            drawn = np.random.default_rng(seed).choice(len(rows), n, replace=False)
            sample = Counter(rows[i] for i in drawn)
            small = [v for v, p in everybody.items() if p < asked.k and (kind == POISSON or sample[v])]
            shares.append(sum(sample[v] >= asked.least for v in small) / len(small))
            near = [v for v in small if everybody[v] > asked.k - 4]
            loose.append(sum(sample[v] >= replace(asked, k=8).least for v in near) / len(near))
        assert sum(share <= asked.significance for share in shares) >= 18
        assert sum(share <= asked.significance for share in loose) < 10, "a threshold for fewer persons fails"
