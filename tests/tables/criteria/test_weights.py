"""k-map by the weights of a survey: against sums by hand, exhaustive search, and weights that are none."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.report.terminal import print_risk
from sqldeid.report.text import console
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node
from tests.support.criteria import Oracle, Row, generalised
from tests.support.sources import insert
from tests.tables.criteria.test_criteria import fill, job_of, random_oracle

PUBLISH = sqldeid.Options(certificate=True, replace=True, without_ledger=True)


@dataclass(frozen=True)
class Weighed(Oracle):
    """A table whose classes are released where the weights of their rows add up to `k_map`."""

    k_map: int = 1

    def passes(self, rows: list[Row]) -> bool:  # type: ignore[override]
        return super().passes(rows) and sum(int(str(r["w"])) for r in rows) >= self.k_map


def weighed_of(seed: int) -> Weighed:
    oracle, rng = random_oracle(seed), np.random.default_rng(seed)
    rows = tuple({**row, "w": int(rng.integers(1, 30))} for row in oracle.rows)
    return Weighed(rows, int(rng.integers(1, 3)), oracle.asked[: seed % 2], int(rng.choice([10, 40, 90, 200])))


def fill_weighed(connection: duckdb.DuckDBPyConnection, weighed: Weighed) -> None:
    fill(connection, weighed.rows)
    connection.execute("ALTER TABLE people ADD COLUMN w INTEGER")
    rows = [[row["w"], i] for i, row in enumerate(weighed.rows)]
    connection.executemany("UPDATE people SET w = ? WHERE rowid = ?", rows)


def job(weighed: Weighed, limit: float) -> sqldeid.Job:
    content = json.loads(job_of(weighed, limit, "frontier").model_dump_json(exclude_unset=True, by_alias=True))
    content["tables"]["people"]["privacy"] |= {"k_map": weighed.k_map, "population": {"weights": "w"}}
    return sqldeid.Job.parse(content)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_a_release_is_the_optimum_of_exhaustive_search(tmp_path: Path, seed: int) -> None:
    weighed, limit, path = weighed_of(seed), (0.0, 0.2, 0.5, 0.9)[seed % 4], tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as c:
        fill_weighed(c, weighed)
    asked, best = job(weighed, limit), weighed.optimum(allowed_rows(limit, len(weighed.rows)))
    if best is None:
        with pytest.raises(NoSolutionError):
            sqldeid.anonymize(asked, path)
        return
    release = sqldeid.anonymize(asked, path, options=PUBLISH).releases["people"]
    assert tuple(release.node[c] for c in "abc") == best
    assert release.suppressed == weighed.failing(best)
    kept = [rows for rows in weighed.classes(best).values() if weighed.passes(rows)]
    least = min((fitting(weighed, best, rows) for rows in kept), default=0)
    assert {c.name: c.achieved for c in release.criteria}["k-map, by weights"] == least
    proof = json.loads(json.dumps(release.certificate))
    assert sqldeid.verify_certificates(asked, path, {"people": proof})["people"].optimal  # type: ignore[union-attr]
    assert sqldeid.verify(asked, path)["people"].released == release.released
    risk = sqldeid.assess(asked, path)["people"]
    assert not risk.journalist_is_prosecutor
    told = StringIO()
    print_risk({"people": risk}, console(told), released=False)
    assert "an estimate" in told.getvalue() and "an estimate" in risk._repr_html_()
    assert "an estimate" not in replace(risk, criteria=())._repr_html_()


def fitting(weighed: Weighed, node: Node, rows: list[Row]) -> int:
    """Persons who fit the class of these rows, by the weights of all rows."""
    there = Counter[tuple[object, ...]]()
    for row in weighed.rows:
        there[generalised(row, node)] += int(str(row["w"]))
    return there[generalised(rows[0], node)]


PAGE = Path(__file__).parents[3] / "docs/population.md"


def example() -> dict[str, Any]:
    """The job of the page whose population is in weights."""
    blocks = [b.split("```")[0] for b in PAGE.read_text(encoding="utf-8").split("```toml\n")[1:]]
    return next(tomllib.loads(b) for b in blocks if "weights" in b)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path, rng = tmp_path / "survey.duckdb", np.random.default_rng(8)
    rows = [
        (i, int(20 + 60 * rng.random() ** 2), str(rng.choice(["f", "m"])), int(rng.integers(1, 40))) for i in range(300)
    ]
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE survey (id INTEGER, age INTEGER, sex TEXT, weight INTEGER)")
        insert(c, "survey", rows)
    return path


def test_the_example_of_the_page_is_told_and_verified_by_the_weights_as_they_are(survey: Path) -> None:
    asked = sqldeid.Job.parse(example())
    result = sqldeid.anonymize(asked, survey, options=PUBLISH)
    for page in (report_page(result.to_dict()), public_page(result.to_public())):
        assert "an estimated 100 persons of the population or more: no bound" in page
    counted = example()
    counted["tables"]["survey"]["privacy"]["population"] = {"table": "survey"}
    with pytest.raises(VerificationError, match="other privacy criteria"):
        sqldeid.verify(sqldeid.Job.parse(counted), survey)
    with duckdb.connect(str(survey)) as c:
        c.execute("UPDATE survey SET weight = 1")
    with pytest.raises(VerificationError):
        sqldeid.verify(asked, survey)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", ["NULL", "0", "-5", "2000000000"])
def test_a_weight_that_counts_nobody_is_refused(survey: Path, value: str) -> None:
    asked = sqldeid.Job.parse(example())
    sqldeid.anonymize(asked, survey, options=PUBLISH)
    with duckdb.connect(str(survey)) as c:
        c.execute(f"UPDATE survey SET weight = {value} WHERE id = 7")
    for act in (lambda: sqldeid.anonymize(asked, survey, options=PUBLISH), lambda: sqldeid.verify(asked, survey)):
        with pytest.raises(JobError, match=r"population\.weights: weight is NULL, less than 1 .* in 1 rows"):
            act()


@pytest.mark.parametrize(
    ("change", "named"), [("DROP weight", "weight"), ("ALTER weight TYPE DOUBLE", "weights are whole numbers")]
)
def test_a_column_that_is_no_weight_is_refused(survey: Path, change: str, named: str) -> None:
    with duckdb.connect(str(survey)) as c:
        c.execute(f"ALTER TABLE survey {change}")
    with pytest.raises(JobError, match=rf"tables\.survey\.privacy\.population\.weights: .*{named}"):
        sqldeid.anonymize(sqldeid.Job.parse(example()), survey)


@pytest.mark.parametrize(
    "privacy", [{"delta_presence": {"most": 0.5}}, {"game": {"payout": 1.0, "cost": 1.0, "attacker": "journalist"}}]
)
def test_what_needs_a_count_is_refused(privacy: dict[str, Any]) -> None:
    content = example()
    content["tables"]["survey"]["privacy"] |= privacy
    with pytest.raises(JobError, match="needs a table of the population"):
        sqldeid.Job.parse(content)
