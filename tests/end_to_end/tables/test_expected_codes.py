"""What a job or its place gets wrong ends with code 2 and the key, before anything runs; nothing is called a bug."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support.sources import INSENSITIVE, job, qi, release

ROWS = "FROM RANGE(60) AS r(i)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as c:
        c.execute(f"CREATE TABLE t AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex, 'x' || i % 3 AS d {ROWS}")
        c.execute(f"CREATE TABLE z AS SELECT i AS id, 'f' AS sex, CAST('10:00:00+02' AS TIMETZ) AS at {ROWS}")
    return tmp_path / "d.duckdb"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("d LIKE 'x%' ESCAPE 'xx'", "ESCAPE takes one character"),
        ("id = (SELECT id FROM t)", "gives several rows"),
        ("id IN (SELECT (SELECT id FROM t) FROM t)", "gives several rows"),
    ],
)
def test_sql_that_fails_on_rows_names_its_key(source: Path, tmp_path: Path, where: str, reason: str) -> None:
    made = job({"into": "o.duckdb"}, tmp_path, r=release({"sex": qi()}, source="t", person="id", where=where))
    with pytest.raises(JobError, match=reason) as refused:
        sqldeid.anonymize(made, source)
    assert (refused.value.code, refused.value.key) == (2, "tables.r.where")


def test_a_file_that_is_no_parquet(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.parquet").write_text("hello")
    made = job({"into": "out", "as": "parquet"}, tmp_path, r=release({"sex": qi()}, source="t", person="id"))
    with pytest.raises(JobError, match="sqldeid did not make") as refused:
        sqldeid.anonymize(made, source, options=sqldeid.Options(replace=True, without_ledger=True))
    assert (refused.value.code, refused.value.key) == (2, "release.into")
    assert (tmp_path / "out" / "notes.parquet").read_text() == "hello"


@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_a_link_to_nowhere_is_refused_before_anything_runs(source: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    made = job({"into": "out", "as": kind}, tmp_path, r=release({"sex": qi()}, source="t", person="id"))
    with pytest.raises(JobError, match="link to a place that is not there"):
        sqldeid.anonymize(made, source)


@pytest.mark.parametrize("limit", ["-5", "-1GB", "5", "abc", ""])
def test_a_memory_limit_is_a_size(source: Path, tmp_path: Path, limit: str) -> None:
    made = job({"into": "o.duckdb"}, tmp_path, r=release({"sex": qi()}, source="t", person="id"))
    with pytest.raises(JobError, match=r"memory[-_]limit"):
        sqldeid.anonymize(made, source, options=sqldeid.Options(settings=sqldeid.Settings(memory_limit=limit)))


def test_a_time_with_a_zone_goes_into_no_parquet(source: Path, tmp_path: Path) -> None:
    part = release({"sex": qi(), "at": INSENSITIVE}, source="z", person="id")
    with pytest.raises(JobError, match="Parquet has no type") as refused:
        sqldeid.anonymize(job({"into": "out", "as": "parquet"}, tmp_path, r=part), source)
    assert refused.value.key == "tables.r.columns.at" and not (tmp_path / "out").exists()
    assert sqldeid.anonymize(job({"into": "o.duckdb"}, tmp_path, r=part), source).releases["r"].released == 60


@pytest.mark.parametrize("type_", ["VARIANT", "VARIANT[]", "STRUCT(a VARIANT)"])
def test_a_variant_is_refused_with_its_column(tmp_path: Path, type_: str) -> None:
    path = tmp_path / "v.duckdb"
    try:
        with duckdb.connect(str(path)) as c:
            c.execute(f"CREATE TABLE v AS SELECT i AS id, 'f' AS sex, CAST(NULL AS {type_}) AS va {ROWS}")
    except duckdb.Error:
        pytest.skip("not applicable: this DuckDB has no such type")
    part = release({"sex": qi(), "va": INSENSITIVE}, source="v", person="id")
    with pytest.raises(JobError, match="no type of its own") as refused:
        sqldeid.anonymize(job({"into": "o.duckdb"}, tmp_path, r=part), path)
    assert refused.value.key == "tables.r.columns.va"
