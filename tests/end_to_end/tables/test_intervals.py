"""Intervals that are equal are spelt in two ways: whoever reads a release sees which, so they are compared as text."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqldeid import Job, JobError, Options, VerificationError, anonymize, verify
from tests.support.sources import INSENSITIVE, job, qi, release

STAYS = {
    "INTERVAL": ("INTERVAL '30 days'", "INTERVAL '1 month'"),
    "INTERVAL[]": ("[INTERVAL '24 hours']", "[INTERVAL '1 day']"),
    "STRUCT": ("{'in': INTERVAL '24 hours'}", "{'in': INTERVAL '1 day'}"),
}
BY = {
    "full-domain": {},
    "local": {"search": {"method": "local"}},
    "mondrian": {"search": {"method": "mondrian"}},
}


def wanted(by: str) -> Job:
    columns = {"age": qi({"median": "range"} if by == "mondrian" else {"bands": [10]}), "stay": INSENSITIVE}
    return job(r={**release(columns, source="people", k=3, person="id"), **BY[by]})


def spelt_as(path: Path, table: str, stay: str) -> None:
    """Write the table anew with another spelling: an UPDATE to what is equal changes nothing."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TEMP TABLE kept AS SELECT * REPLACE ({stay} AS stay) FROM {table}")
        connection.execute(f"DELETE FROM {table}; INSERT INTO {table} FROM kept")


@pytest.fixture
def source(tmp_path: Path, stay: str) -> Path:
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT i AS id, CAST(i % 40 AS INTEGER) AS age, {STAYS[stay][0]} AS stay "
            "FROM range(200) t(i)"
        )
    return tmp_path / "source.duckdb"


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("stay", STAYS)
def test_a_release_that_is_spelt_otherwise_is_another(stay: str, by: str, source: Path) -> None:
    asked = wanted(by)
    anonymize(asked, source)
    assert verify(asked, source)["r"].released
    spelt_as(source, "release.r", STAYS[stay][1])
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(asked, source)


@pytest.mark.parametrize("stay", STAYS)
def test_a_source_that_is_spelt_otherwise_has_changed(stay: str, source: Path) -> None:
    asked = wanted("full-domain")
    anonymize(asked, source)
    anonymize(asked, source, options=Options(replace=True))
    spelt_as(source, "people", STAYS[stay][1])
    with pytest.raises(JobError, match="changed"):
        anonymize(asked, source, options=Options(replace=True))


@pytest.mark.parametrize("stay", ["INTERVAL"])
@pytest.mark.parametrize("person", ["id", None])
def test_a_release_of_an_older_version_is_replaced_where_nothing_changed(
    person: str | None, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older note has sums of hashes alone; what it can tell is compared, and from then on spelling, too."""
    columns = {"age": qi({"bands": [10]}), "stay": INSENSITIVE}
    asked = job(r=release(columns, source="people", k=3, person=person))
    with monkeypatch.context() as older:
        older.setattr("sqldeid.tables.release.nature.spelt", lambda columns: [])
        anonymize(asked, source)
    anonymize(asked, source, options=Options(replace=True))
    swapped = "CASE WHEN id = 1 THEN INTERVAL '1 month' ELSE stay END"
    spelt_as(source, "people", swapped)
    with pytest.raises(JobError, match="changed"):
        anonymize(asked, source, options=Options(replace=True))
