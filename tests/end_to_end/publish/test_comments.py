"""A release with a comment or default that no run wrote fails `verify`: it is handed out, and nobody checked it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from sqldeid import Job, Options, VerificationError, anonymize, verify
from sqldeid.publish import COMMENTS_NOTE, SUM_NOTE
from tests.support.foreign import InPostgres, in_postgres
from tests.support.sources import INSENSITIVE, job, qi, release

EVERY = range(200)
WARDS = pa.table(
    {
        "id": EVERY,
        "age": [20 + i % 30 for i in EVERY],
        "ward": [i % 5 for i in EVERY],
        "sex": ["f" if i % 2 else "m" for i in EVERY],
    }
)


def wanted(target: dict[str, object], k: int = 3, **more: object) -> Job:
    columns = {"age": qi({"bands": [5, 10]}), "sex": qi(), "ward": INSENSITIVE}
    return job(target, r=release(columns, source="people", k=k, limit=0.3, person="id", **more))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.register("wards", WARDS)
        connection.execute("CREATE TABLE people AS SELECT * FROM wards")
    return tmp_path / "source.duckdb"


def said(job: Job, database: object) -> str:
    with pytest.raises(VerificationError) as raised:
        verify(job, database)  # type: ignore[arg-type]
    assert raised.value.key == "tables.r" and "Miller" not in raised.value.message
    return raised.value.message


LISTED = (
    "CREATE TYPE of_sex AS ENUM ('f', 'm', 'Miller'); ALTER TABLE release.r ALTER sex TYPE of_sex USING sex::of_sex"
)
CHANGES = {
    "COMMENT ON COLUMN release.r.ward IS 'ask Miller'": "column ward of release.r has a comment",
    "ALTER TABLE release.r ALTER ward SET DEFAULT 7": "column ward of release.r has a default",
    LISTED: "column sex of the release has a type with a list of values",
}


@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_comment_or_default_is_told(change: str, into: bool, source: Path, tmp_path: Path) -> None:
    target = {"into": str(tmp_path / "out.duckdb")} if into else {}
    asked = wanted(target)
    anonymize(asked, source)
    assert not verify(asked, source).warnings
    with duckdb.connect(str(tmp_path / "out.duckdb" if into else source)) as connection:
        connection.execute(change)
    assert CHANGES[change] in said(asked, source)


def test_a_comment_that_is_gone_tells_nobody_anything(source: Path) -> None:
    asked = wanted({})
    anonymize(asked, source)
    with duckdb.connect(str(source)) as connection:
        connection.execute("COMMENT ON COLUMN release.r.ward IS NULL")
    assert verify(asked, source)["r"].released


@pytest.mark.parametrize("name", ["r", "r__snapshot"])
def test_a_view_and_its_table_are_looked_at(name: str, source: Path) -> None:
    asked = wanted({"as": "view"})
    anonymize(asked, source)
    assert verify(asked, source)["r"].released
    with duckdb.connect(str(source)) as connection:
        connection.execute(f"COMMENT ON COLUMN release.{name}.age IS 'Miller'")
    assert f"column age of release.{name} has a comment" in said(asked, source)


def test_what_a_computed_view_reads_has_no_comments(source: Path) -> None:
    asked = wanted({"as": "view"}, k=20, view="computed", frozen=True)
    anonymize(asked, source)
    assert verify(asked, source)["r"].released
    with duckdb.connect(str(source)) as connection:
        found = "SELECT table_name, column_name FROM duckdb_columns() WHERE table_name LIKE 'r\\_\\_%' ESCAPE '\\'"
        table, column = connection.execute(found).fetchall()[0]
        connection.execute(f'COMMENT ON COLUMN release."{table}"."{column}" IS \'Miller\'')
    assert f"of release.{table} has a comment" in said(asked, source)


@pytest.mark.parametrize("place", ["beside", "within"])
def test_a_note_that_says_more_is_told(place: str, source: Path) -> None:
    asked = wanted({})
    anonymize(asked, source)
    with duckdb.connect(str(source)) as connection:
        (note,) = connection.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'r'").fetchone()
        more = '"by": "Miller", "sqldeid": {' if place == "beside" else '"sqldeid": {"by": "Miller", '
        changed = note.replace('"sqldeid": {', more, 1).replace("'", "''")
        connection.execute(f"COMMENT ON TABLE release.r IS '{changed}'")
    assert "the note on release.r is not what a run wrote" in said(asked, source)


def test_a_note_of_before_there_were_sums_is_told(source: Path) -> None:
    """Releases of earlier versions still pass, and whoever checks them reads that nobody looked at comments."""
    asked = wanted({})
    anonymize(asked, source)
    with duckdb.connect(str(source)) as connection:
        (note,) = connection.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'r'").fetchone()
        content = json.loads(note)
        del content["sqldeid"][COMMENTS_NOTE], content["sqldeid"][SUM_NOTE]
        earlier = json.dumps(content).replace("'", "''")
        connection.execute(f"COMMENT ON TABLE release.r IS '{earlier}'")
        connection.execute("COMMENT ON COLUMN release.r.ward IS 'ask Miller'")
    (warning,) = verify(asked, source).warnings
    assert warning.startswith("r: made by an earlier version") and "Miller" not in warning


def test_a_release_that_stays_beside_a_new_one_keeps_its_comments(source: Path, tmp_path: Path) -> None:
    part = release({"age": qi({"bands": [5, 10]})}, source="people", k=3, limit=0.3, person="id")
    asked = job({"into": str(tmp_path / "out.duckdb")}, r=part, s=part)
    anonymize(asked, source)
    anonymize(asked, source, options=Options(only=("s",), replace=True))
    assert set(verify(asked, source)) == {"r", "s"}


def rewritten(file: Path, change: object) -> None:
    table = pyarrow.parquet.read_table(file)
    pyarrow.parquet.write_table(table.replace_schema_metadata(change(table.schema.metadata)), file)  # type: ignore[operator]


PARQUET = {
    "a comment": lambda had: {b"sqldeid": had[b"sqldeid"].replace(b"insensitive", b"of Miller")},
    "metadata": lambda had: {**had, b"author": b"Miller"},
    "metadata under a key of DuckDB's": lambda had: {**had, b"duckdb.interval_bloom_filter": b"Miller"},
}


@pytest.mark.parametrize("change", PARQUET)
def test_metadata_of_parquet_is_told(change: str, source: Path, tmp_path: Path) -> None:
    asked = wanted({"into": str(tmp_path / "out"), "as": "parquet"})
    anonymize(asked, source)
    assert verify(asked, source)["r"].released
    rewritten(tmp_path / "out" / "r.parquet", PARQUET[change])
    assert "r.parquet" in said(asked, source)


@pytest.mark.parametrize("stay", ["INTERVAL '1 month'", "[INTERVAL '1 month']", "{'in': INTERVAL '1 month'}"])
def test_what_duckdb_itself_says_of_intervals_is_no_change(stay: str, source: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(source)) as connection:
        connection.execute(f"CREATE TABLE stays AS SELECT *, {stay} AS stay FROM people")
    part = release({"age": qi({"bands": [5, 10]}), "stay": INSENSITIVE}, source="stays", k=3, limit=0.3, person="id")
    asked = job({"into": str(tmp_path / "out"), "as": "parquet"}, r=part)
    anonymize(asked, source)
    assert not verify(asked, source).warnings


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as database:
        database.load("people", WARDS)
        yield database


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize("change", CHANGES)
def test_so_it_is_on_postgres(change: str, kind: str, server: InPostgres) -> None:
    if kind == "view" and change == LISTED:
        pytest.skip("not applicable: a view's columns keep their types")
    asked = wanted({"as": kind})
    anonymize(asked, server.database)
    assert verify(asked, server.database)["r"].released
    server.run(change.replace("ALTER TABLE", f"ALTER {kind}"))
    assert CHANGES[change] in said(asked, server.database)


def test_so_it_is_where_a_server_releases_into_a_file(server: InPostgres, tmp_path: Path) -> None:
    asked = wanted({"into": str(tmp_path / "out.duckdb")})
    anonymize(asked, server.database)
    assert verify(asked, server.database)["r"].released
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute("COMMENT ON COLUMN release.r.ward IS 'ask Miller'")
    assert "column ward of release.r has a comment" in said(asked, server.database)
