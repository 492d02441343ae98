"""Criteria on ratios of shares, the whole way: many rows of a person, the ledger, a tampered release, what is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from math import log
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError, VerificationError
from tests.support.files import read, write

DELTA = {"delta_disclosure": {"column": "ill", "delta": 1.2}}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "delta": DELTA,
    "basic": {"beta_likeness": {"column": "ill", "beta": 0.5, "kind": "basic"}},
    "enhanced": {"beta_likeness": {"column": "ill", "beta": 0.6}},
}
NAMES = {
    "delta": "delta-disclosure privacy",
    "basic": "beta-likeness",
    "enhanced": "enhanced beta-likeness",
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write(
        tmp_path / "people.duckdb",
        "CREATE TABLE people AS SELECT i AS id, i // 2 AS owner, (i * 37) % 40 AS age, "
        "CASE WHEN h % 5 = 0 THEN NULL ELSE h % 3 END AS ill "
        "FROM (SELECT i, (i // 2 * 7919) % 101 AS h FROM range(240) t(i))",
    )


def job(folder: Path, privacy: Mapping[str, Any], **more: Any) -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
        "ill": {"role": "sensitive"},
    }
    asked = {"k": 3, "suppression_limit": 0.3, **privacy}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": asked, **more}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


def classes(folder: Path) -> Iterator[Counter[object]]:
    with duckdb.connect(str(folder / "out.duckdb")) as connection:
        rows = connection.execute("SELECT age, ill FROM release.people").fetchall()
    for age in {row[0] for row in rows}:
        yield Counter(ill for a, ill in rows if a == age)


def farthest(name: str, own: Counter[object], whole: Mapping[object, float]) -> float:
    shares = {v: own[v] / own.total() for v in whole}
    if name == "delta":
        return max(abs(log(shares[v] / p)) if shares[v] else float("inf") for v, p in whole.items())
    return max((shares[v] - p) / p for v, p in whole.items())


def whole_of(database: Path) -> dict[object, float]:
    ill = [row[0] for row in read(database, "SELECT ill FROM people")]
    return {v: n / len(ill) for v, n in Counter(ill).items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suppression", ["drop", "blank"])
@pytest.mark.parametrize("name", ASKED)
def test_what_is_told_is_what_was_released(name: str, suppression: str, database: Path) -> None:
    asked = job(database.parent, {**ASKED[name], "suppression": suppression})
    result = sqldeid.anonymize(asked, database)
    release, whole = result.releases["people"], whole_of(database)
    (number,) = (v for v in next(iter(ASKED[name].values())).values() if isinstance(v, float))
    (criterion,) = release.criteria[1:]
    worst = max(farthest(name, own, whole) for own in classes(database.parent))
    assert criterion.name == NAMES[name] and criterion.asked == number
    assert criterion.achieved == pytest.approx(worst) and worst <= number
    assert criterion.against_released is not None
    (found,) = (c for c in sqldeid.assess(asked, database, release=True)["people"].criteria)
    assert (found.name, found.met, found.achieved) == (NAMES[name], True, pytest.approx(worst))
    assert not sqldeid.assess(asked, database)["people"].criteria[0].met
    (again,) = sqldeid.verify(asked, database)["people"].criteria
    assert (again.name, again.achieved) == (criterion.name, pytest.approx(worst))
    assert worst > 0
    assert json.loads(json.dumps(result.to_dict()))["releases"]["people"]["criteria"][1]["name"] == NAMES[name]


@pytest.mark.deep
@pytest.mark.parametrize("name", ASKED)
def test_a_tampered_release_is_refused(name: str, database: Path) -> None:
    asked = job(database.parent, ASKED[name])
    sqldeid.anonymize(asked, database)
    with duckdb.connect(str(database.parent / "out.duckdb")) as connection:
        first = connection.execute("SELECT MIN(age) FROM release.people").fetchone()
        connection.execute("UPDATE release.people SET ill = 1 WHERE age = ?", first)
    with pytest.raises(VerificationError, match=f"fails? {NAMES[name]} of ill"):
        sqldeid.verify(asked, database)


@pytest.mark.parametrize("name", ASKED)
def test_persons_of_many_rows_are_counted(name: str, database: Path) -> None:
    asked = job(database.parent, ASKED[name], person="owner", rows="many")
    result = sqldeid.anonymize(asked, database, options=sqldeid.Options(certificate=True))
    release = result.releases["people"]
    assert "among all persons" in release.criteria[-1].guarantee and release.released
    sqldeid.verify_certificates(asked, database, {"people": json.loads(json.dumps(release.certificate))})


@pytest.mark.parametrize("name", ASKED)
def test_several_values_of_one_person_are_refused(name: str, database: Path) -> None:
    write(database, "UPDATE people SET ill = id % 3")
    with pytest.raises(JobError, match=f"{NAMES[name]} compares the shares of persons"):
        sqldeid.anonymize(job(database.parent, ASKED[name], person="owner", rows="many"), database)


@pytest.mark.deep
@pytest.mark.parametrize("name", ASKED)
def test_the_ledger_holds_later_loads_to_it(name: str, database: Path) -> None:
    asked = job(database.parent, ASKED[name])
    (database.parent / "key").write_text("0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210")
    options = sqldeid.Options(replace=True, ledger=database.parent / "ledger.duckdb", key_file=database.parent / "key")
    sqldeid.anonymize(asked, database, options=options)
    write(database, "INSERT INTO people SELECT id + 1000, owner + 1000, age, ill FROM people WHERE id % 3 = 0")
    second = sqldeid.anonymize(asked, database, options=options).releases["people"]
    assert second.criteria[-1].name == NAMES[name]
    sqldeid.verify(asked, database, options=options)


@pytest.mark.parametrize("name", ASKED)
def test_a_job_says_what_is_wrong(name: str, database: Path) -> None:
    ((key, entry),) = ASKED[name].items()
    (number,) = (k for k, v in entry.items() if isinstance(v, float))
    for wrong, text in (
        ({**entry, number: 0.0}, number),
        ({**entry, number: 1e9}, number),
        ({**entry, number: 0.1234567891}, "more than 9 decimals"),
        ({**entry, "column": "age"}, "must name a column"),
        ([entry, entry], f"names a column twice; give each its strictest {number}"),
    ):
        with pytest.raises(JobError, match=text):
            job(database.parent, {key: wrong})
    with pytest.raises(JobError, match="inverse-ola"):
        job(database.parent, {key: entry}, search={"method": "inverse-ola", "max_loss": 0.5})
    with pytest.raises(JobError, match=r"criteria_limit: missing.*another criterion than k"):
        job(database.parent, {key: entry}, search={"choose": "by-k"})


def test_certificates_name_newer_criteria_only_where_they_are_asked(database: Path) -> None:
    options = sqldeid.Options(certificate=True, replace=True, without_ledger=True)

    def criteria(privacy: Mapping[str, Any]) -> Any:
        release = sqldeid.anonymize(job(database.parent, privacy), database, options=options).releases["people"]
        return json.loads(json.dumps(release.certificate))["criteria"]

    assert criteria({}) == {"l_diversity": [], "t_closeness": []}
    assert set(criteria(DELTA)) == {"l_diversity", "t_closeness", "delta_disclosure"}
