"""What lies at the target: refused, replaced where it is ours, carried over with `only`, never lost."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from sqldeid.errors import JobError, SqldeidError
from sqldeid.run import Options, anonymize, verify
from tests.support.files import read, write
from tests.support.sources import PLACES, contents, database, everything, job, listed, people

REPLACE = Options(replace=True, without_ledger=True)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> dict[str, object]:
    return PLACES[request.param]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return database(tmp_path / "source.duckdb")


def target_of(tmp_path: Path, place: dict[str, object]) -> Path:
    return tmp_path / str(place.get("into", "source.duckdb"))


def noted_k(tmp_path: Path, place: dict[str, object], name: str = "r") -> int:
    """k as the release itself says, read by a plain connection."""
    target = target_of(tmp_path, place)
    if place.get("as") == "parquet":
        with duckdb.connect() as c:
            text = c.execute(
                "SELECT DECODE(value) FROM parquet_kv_metadata(?) WHERE DECODE(key) = 'sqldeid'",
                [f"{target}/{name}.parquet"],
            ).fetchall()[0][0]
    else:
        with duckdb.connect(str(target)) as c:
            text = c.execute(
                """SELECT comment FROM duckdb_tables() WHERE schema_name = 'release' AND table_name = $1
                   UNION ALL SELECT comment FROM duckdb_views() WHERE schema_name = 'release' AND view_name = $1""",
                [name],
            ).fetchall()[0][0]
    found = json.loads(text)["sqldeid"]["criteria"]["k"]
    assert isinstance(found, int)
    return found


@pytest.mark.sampled(2)
def test_an_existing_release_is_refused_and_replaced_when_allowed(
    source: Path, tmp_path: Path, place: dict[str, object]
) -> None:
    anonymize(job(place, tmp_path, r=people(k=5)), source)
    target = target_of(tmp_path, place)
    before, beside = everything(target), listed(tmp_path)
    with pytest.raises(JobError, match="exists already; allow it to be replaced with --replace"):
        anonymize(job(place, tmp_path, r=people(k=7)), source)
    assert everything(target) == before
    assert listed(tmp_path) == beside
    anonymize(job(place, tmp_path, r=people(k=7)), source, options=REPLACE)
    assert noted_k(tmp_path, place) == 7
    assert listed(tmp_path) == beside
    assert verify(job(place, tmp_path, r=people(k=7)), source)["r"].k >= 7


@pytest.mark.sampled(2)
def test_a_failed_replacement_keeps_the_old_release(source: Path, tmp_path: Path, place: dict[str, object]) -> None:
    anonymize(job(place, tmp_path, r=people(k=5)), source)
    before, beside = everything(target_of(tmp_path, place)), listed(tmp_path)
    with pytest.raises(JobError):
        anonymize(job(place, tmp_path, r=people(k=401)), source, options=REPLACE)
    assert listed(tmp_path) == beside
    assert noted_k(tmp_path, place) == 5
    if "into" in place:
        assert everything(target_of(tmp_path, place)) == before


@pytest.mark.sampled(2)
def test_only_keeps_the_others_with_their_comments(source: Path, tmp_path: Path, place: dict[str, object]) -> None:
    both = {"first": people(k=5), "second": people(k=6)}
    anonymize(job(place, tmp_path, **both), source)
    target = target_of(tmp_path, place)
    before = kept(target, "second")
    both["first"] = people(k=9)
    anonymize(job(place, tmp_path, **both), source, options=Options(only=("first",), replace=True, without_ledger=True))
    assert (noted_k(tmp_path, place, "first"), noted_k(tmp_path, place, "second")) == (9, 6)
    assert kept(target, "second") == before
    assert before
    found = verify(job(place, tmp_path, **both), source)
    assert found["first"].k >= 9
    assert found["second"].k >= 6


def kept(target: Path, name: str) -> object:
    """Everything about one release: its rows in their order, types and comments."""
    if target.is_dir():
        return (target / f"{name}.parquet").read_bytes()
    with duckdb.connect(str(target)) as c:
        objects = c.execute(
            """SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'release' AND table_name LIKE $1
               UNION ALL
               SELECT view_name, comment FROM duckdb_views() WHERE schema_name = 'release' AND view_name LIKE $1
               ORDER BY ALL""",
            [f"{name}%"],
        ).fetchall()
        columns = c.execute(
            """SELECT table_name, column_name, data_type, comment FROM duckdb_columns()
               WHERE schema_name = 'release' AND table_name LIKE $1 ORDER BY ALL""",
            [f"{name}%"],
        ).fetchall()
        return objects, columns, c.execute(f"FROM release.{name}").fetchall()


def test_without_only_a_fresh_file_holds_this_job_alone(source: Path, tmp_path: Path) -> None:
    place = PLACES["fresh file"]
    anonymize(job(place, tmp_path, first=people(), second=people(k=6)), source)
    anonymize(job(place, tmp_path, first=people()), source, options=REPLACE)
    assert read(tmp_path / "out.duckdb", "SELECT table_name FROM duckdb_tables()") == [("first",)]


def test_only_adds_a_release_in_place_without_replacing(source: Path, tmp_path: Path) -> None:
    anonymize(job({}, tmp_path, first=people()), source)
    before = kept(source, "first")
    anonymize(job({}, tmp_path, first=people(), second=people(k=6)), source, options=Options(only=("second",)))
    assert kept(source, "first") == before
    assert noted_k(tmp_path, {}, "second") == 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
@pytest.mark.parametrize("name", ["r", "R"])
@pytest.mark.parametrize("comment", [None, "'{}'", "'not ours'", '\'{"sqldeid": {"release": "other"}}\''])
def test_a_foreign_object_in_place_is_never_replaced(source: Path, kind: str, name: str, comment: str | None) -> None:
    with duckdb.connect(str(source)) as c:
        c.execute(f'CREATE SCHEMA release; CREATE {kind} release."{name}" AS SELECT 1 AS x')
        if comment is not None:
            c.execute(f'COMMENT ON {kind} release."{name}" IS {comment}')
    before = contents(source)
    for options in (Options(), REPLACE):
        with pytest.raises(JobError, match="was not made by sqldeid") as raised:
            anonymize(job(r=people()), source, options=options)
        assert raised.value.code == 2
    assert contents(source) == before


def test_a_foreign_snapshot_in_place_is_never_replaced(source: Path) -> None:
    write(source, "CREATE SCHEMA release; CREATE TABLE release.r__snapshot AS SELECT 1 AS x")
    with pytest.raises(JobError, match="was not made by sqldeid"):
        anonymize(job({"as": "view"}, r=people()), source, options=REPLACE)


def test_a_view_is_replaced_by_a_table_and_back(source: Path) -> None:
    for kind in ("view", "table", "view"):
        anonymize(job({"as": kind}, r=people()), source, options=REPLACE)
        there = read(
            source,
            """SELECT table_name FROM duckdb_tables() WHERE schema_name = 'release'
                   UNION ALL SELECT view_name FROM duckdb_views() WHERE schema_name = 'release' ORDER BY ALL""",
        )
        assert there == ([("r",), ("r__snapshot",)] if kind == "view" else [("r",)])


@pytest.mark.parametrize("foreign", ["CREATE TABLE x AS SELECT 1 AS a", "CREATE VIEW x AS SELECT 1 AS a"])
def test_a_file_with_foreign_objects_is_never_replaced(source: Path, tmp_path: Path, foreign: str) -> None:
    place = PLACES["fresh file"]
    anonymize(job(place, tmp_path, r=people()), source)
    write(tmp_path / "out.duckdb", foreign)
    before = everything(tmp_path / "out.duckdb")
    for options in (REPLACE, Options(only=("r",), replace=True, without_ledger=True)):
        with pytest.raises(JobError, match="that sqldeid did not make"):
            anonymize(job(place, tmp_path, r=people()), source, options=options)
    assert everything(tmp_path / "out.duckdb") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("foreign", ["notes.txt", "other.parquet", ".hidden", "sub"])
def test_a_folder_with_foreign_files_is_never_replaced(source: Path, tmp_path: Path, foreign: str) -> None:
    place = PLACES["parquet"]
    anonymize(job(place, tmp_path, r=people()), source)
    if foreign == "sub":
        (tmp_path / "out" / foreign).mkdir()
    elif foreign.endswith(".parquet"):
        duckdb.connect().execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/out/{foreign}' (FORMAT PARQUET)").fetchall()
    else:
        (tmp_path / "out" / foreign).write_text("mine")
    before = everything(tmp_path / "out")
    with pytest.raises(JobError, match="that sqldeid did not make"):
        anonymize(job(place, tmp_path, r=people()), source, options=REPLACE)
    assert everything(tmp_path / "out") == before
    assert (tmp_path / "out" / foreign).exists()


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ({"into": "out.duckdb"}, b"text, not a database"),
        ({"into": "out.duckdb"}, b""),
        ({"into": "out", "as": "parquet"}, b"x"),
    ],
)
def test_what_is_no_database_is_never_replaced(
    source: Path, tmp_path: Path, place: dict[str, object], content: bytes
) -> None:
    file = tmp_path / str(place["into"])
    file.write_bytes(content)
    with pytest.raises(JobError):
        anonymize(job(place, tmp_path, r=people()), source, options=REPLACE)
    assert file.read_bytes() == content


def test_the_source_is_never_its_own_target(source: Path, tmp_path: Path) -> None:
    before = contents(source)
    (tmp_path / "link.duckdb").symlink_to(source)
    for into in ("source.duckdb", "link.duckdb"):
        with pytest.raises(JobError, match="names the source database itself"):
            anonymize(job({"into": into}, tmp_path, r=people()), source, options=REPLACE)
    with duckdb.connect(str(source)) as c, pytest.raises(SqldeidError):
        anonymize(job({"into": "source.duckdb"}, tmp_path, r=people()), c, options=REPLACE)
    assert contents(source) == before


def test_a_run_that_lives_is_not_swept(source: Path, tmp_path: Path) -> None:
    """Two runs with the same target do not remove each other's folders."""
    from sqldeid.engine.folder import PrivateFolder

    with PrivateFolder(tmp_path / "out.duckdb") as living:
        assert living.path.stat().st_mode & 0o777 == 0o700
        anonymize(job({"into": "out.duckdb"}, tmp_path, r=people()), source)
        assert living.path.is_dir()
    assert listed(tmp_path) == ["out.duckdb", "source.duckdb"]
