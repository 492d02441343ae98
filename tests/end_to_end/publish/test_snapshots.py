"""What a file holds beside what `verify` reads of a release: a changed snapshot is refused, the rest is told."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sqldeid import Job, JobError, Options, VerificationError, anonymize, verify
from sqldeid.engine.duckdb import TRIGGERS
from tests.support.sources import INSENSITIVE, job, qi, release

EVERY = range(60)
ODD = ('do "se', "select", "interval", "date", "Größe", "a b", "1a", "x.y", "as", "values", "timestamp", "it's", "a;b")
"""Names that a view's text quotes, or does not."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = {"id": EVERY, "sex": ["f" if i % 2 else "m" for i in EVERY], "ward": [i % 5 for i in EVERY]}
    rows |= {name: [str(i % 3) for i in EVERY] for name in ODD}
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.register("given", pa.table(rows))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return tmp_path / "source.duckdb"


def wanted(target: dict[str, object], *names: str) -> Job:
    columns = {"sex": qi(), **dict.fromkeys(("ward", *names), INSENSITIVE)}
    return job(target, r=release(columns, source="people", k=3, person="id"))


def in_file(tmp_path: Path, kind: str) -> dict[str, object]:
    return {"into": str(tmp_path / "out.duckdb"), "as": kind}


@pytest.mark.parametrize("into", [True, False])
def test_a_view_of_any_names_is_known_again(source: Path, tmp_path: Path, into: bool) -> None:
    place = in_file(tmp_path, "view") if into else {"as": "view"}
    asked = wanted({**place, "schema": 'my "odd.schema'}, *ODD)
    anonymize(asked, source)
    assert verify(asked, source)["r"].released == len(EVERY)
    anonymize(asked, source, options=Options(replace=True))
    assert not verify(asked, source).warnings


@pytest.mark.parametrize(
    "change",
    [
        ["ALTER TABLE release.r__snapshot ADD COLUMN more VARCHAR", "UPDATE release.r__snapshot SET more = 'a name'"],
        [
            "ALTER TABLE release.r__snapshot RENAME COLUMN ward TO name",
            "VIEW SELECT sex, name AS ward FROM release.r__snapshot",
        ],
        ["VIEW FROM release.r__snapshot WHERE ward >= 0", "INSERT INTO release.r__snapshot VALUES ('a name', -1)"],
        ["VIEW SELECT sex, ward FROM release.r__snapshot WHERE 'a name' <> ''"],
        [
            "CREATE TABLE release.x AS FROM release.r",
            "DROP VIEW release.r",
            "ALTER TABLE release.x RENAME TO r",
            "NOTE TABLE",
        ],
    ],
)
@pytest.mark.parametrize("into", [True, False])
def test_a_view_and_its_snapshot_are_one(source: Path, tmp_path: Path, change: list[str], into: bool) -> None:
    asked = wanted(in_file(tmp_path, "view") if into else {"as": "view"})
    anonymize(asked, source)
    with duckdb.connect(str(tmp_path / "out.duckdb" if into else source)) as c:
        [(note,)] = c.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'r'").fetchall()
        told = note.replace("'", "''")
        for made in change:
            if made.startswith("VIEW"):
                c.execute(made.replace("VIEW", "CREATE OR REPLACE VIEW release.r AS", 1))
                c.execute(f"COMMENT ON VIEW release.r IS '{told}'")
            else:
                c.execute(f"COMMENT ON TABLE release.r IS '{told}'" if made == "NOTE TABLE" else made)
    with pytest.raises(VerificationError, match=r"tables\.r: .*r__snapshot are not a view and all that it shows"):
        verify(asked, source)


def test_a_view_in_a_database_of_its_schemas_name_is_refused(source: Path, tmp_path: Path) -> None:
    """Nobody could read `release.r` there, and `verify` found that somebody had changed it."""
    place = source.rename(tmp_path / "Release.duckdb")
    before = place.read_bytes()
    with pytest.raises(JobError, match=r"release\.schema: nobody can read a view there: the database is named as"):
        anonymize(wanted({"as": "view"}), place)
    assert place.read_bytes() == before
    other = wanted({"as": "view", "schema": "given"})
    anonymize(other, place)
    assert verify(other, place)["r"].released == len(EVERY)


@pytest.mark.parametrize("dropped", [True, False])
def test_a_view_that_was_made_live_is_refused(source: Path, dropped: bool) -> None:
    """It changes with its source: who looks twice sees who came."""
    asked = wanted({"as": "view"})
    anonymize(asked, source)
    with duckdb.connect(str(source)) as c:
        [(note,)] = c.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'r'").fetchall()
        c.execute("CREATE OR REPLACE VIEW release.r AS SELECT sex, ward FROM main.people ORDER BY ALL")
        c.execute(f"COMMENT ON VIEW release.r IS '{note.replace(chr(39), chr(39) * 2)}'")
        if dropped:
            c.execute("DROP TABLE release.r__snapshot")
    with pytest.raises(VerificationError, match=r"tables\.r: .*r__snapshot are not a view and all that it shows"):
        verify(asked, source)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("CREATE MACRO release.told() AS 'a name'", "release.told"),
        ("CREATE MACRO told() AS TABLE SELECT 'a name'", "main.told"),
        ("CREATE TYPE release.told AS ENUM ('a name')", "release.told"),
        ("CREATE SEQUENCE release.told", "release.told"),
        ("CREATE SCHEMA told", "told"),
        ("CREATE INDEX told ON release.r (ward)", "release.told"),
        ("CREATE TABLE release.told AS SELECT 'a name' AS name", "release.told"),
        ("CREATE TABLE release.r__told AS SELECT 'a name' AS name", "release.r__told"),
        ("CREATE SCHEMA told; CREATE TABLE told.r AS SELECT 'a name' AS name", "told.r"),
    ],
)
def test_what_else_the_file_holds_is_told(source: Path, tmp_path: Path, made: str, named: str) -> None:
    """A table, too, that bears a copy of the release's note."""
    asked = wanted(in_file(tmp_path, "table"))
    anonymize(asked, source)
    assert not verify(asked, source).warnings
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute(made)
        [(note,)] = c.execute(
            "SELECT comment FROM duckdb_tables() WHERE schema_name = 'release' AND table_name = 'r'"
        ).fetchall()
        if "TABLE" in made and "MACRO" not in made:
            c.execute(f"COMMENT ON TABLE {named} IS '{note.replace(chr(39), chr(39) * 2)}'")
    [told] = verify(asked, source).warnings
    assert f"also holds {named}: no release of this job" in told


def copy_release(tmp_path: Path, storage: str, *made: str, more: str = "") -> None:
    """Put a file in the release's place with all that that holds, which anybody could have made."""
    file, told = tmp_path / "out.duckdb", tmp_path / "told.duckdb"
    file.rename(told)
    with duckdb.connect() as c:
        c.execute(f"ATTACH '{told}' AS told (READ_ONLY); ATTACH '{file}' AS made (STORAGE_VERSION '{storage}')")
        [(note,)] = c.execute("SELECT comment FROM duckdb_tables() WHERE database_name = 'told'").fetchall()
        c.execute(f"USE made; CREATE SCHEMA release; CREATE TABLE release.r (sex VARCHAR, ward BIGINT{more})")
        c.execute("INSERT INTO release.r FROM told.release.r")
        noted = note.replace("'", "''")
        for text in ("COMMENT ON TABLE release.r IS 'NOTE'", *made):
            c.execute(text.replace("NOTE", noted))


def test_what_a_constraint_says_is_told(source: Path, tmp_path: Path) -> None:
    asked = wanted(in_file(tmp_path, "table"))
    anonymize(asked, source)
    copy_release(tmp_path, "v1.0.0", more=", CHECK (sex <> 'a name')")
    [told] = verify(asked, source).warnings
    assert "also holds release.r_sex_check: no release of this job" in told


@pytest.mark.skipif(not TRIGGERS, reason="not applicable: DuckDB 1 has no schema within another, and no trigger")
@pytest.mark.parametrize(
    ("made", "named"),
    [
        ([], ""),
        (["CREATE SCHEMA release.release"], "release.release"),
        (
            [
                "CREATE SCHEMA release.release",
                "CREATE TABLE release.release.r AS SELECT 'a name' AS name",
                "COMMENT ON TABLE release.release.r IS 'NOTE'",
            ],
            "release.release.r, release.release",
        ),
        (
            [
                "CREATE TABLE other (a VARCHAR)",
                "CREATE TRIGGER told AFTER INSERT ON release.r FOR EACH STATEMENT INSERT INTO other SELECT 'a name'",
            ],
            "main.other, release.told",
        ),
    ],
)
def test_what_a_newer_file_holds_is_told(source: Path, tmp_path: Path, made: list[str], named: str) -> None:
    """A table in a schema of the release's, both called as the release's own, was taken for it."""
    asked = wanted(in_file(tmp_path, "table"))
    anonymize(asked, source)
    copy_release(tmp_path, "v2.0.0", *made)
    told = " ".join(verify(asked, source).warnings)
    assert f"also holds {named}: no release of this job" in told if named else not told


@pytest.mark.skipif(not TRIGGERS, reason="not applicable: DuckDB 1 has no schema within another")
def test_a_table_of_a_schema_within_another_is_no_namesake(source: Path, tmp_path: Path) -> None:
    """`main.people` was offered, and could not be read."""
    with duckdb.connect() as c:
        c.execute(f"ATTACH '{tmp_path / 'new.duckdb'}' AS new (STORAGE_VERSION 'v2.0.0'); USE new")
        c.execute("CREATE SCHEMA ward; CREATE SCHEMA ward.main; CREATE TABLE ward.main.people AS SELECT 1 AS id")
    with pytest.raises(
        JobError, match=r"tables\.r\.source: there is no table or view people .*it has ward\.main\.people"
    ):
        anonymize(wanted(in_file(tmp_path, "table")), tmp_path / "new.duckdb")
