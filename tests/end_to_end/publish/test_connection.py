"""A user's open connection: used, and left as it was found, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from sqldeid.errors import EngineError, JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.run import anonymize, assess, plan, verify
from sqldeid.tables.release import release as releasing
from tests.support.sources import PEOPLE, SUPPRESS, catalogue, database, job, listed, people, qi, release, settings

PLACES = {
    "in place": {},
    "view in place": {"as": "view"},
    "fresh file": {"into": "out.duckdb"},
    "view in a fresh file": {"into": "out.duckdb", "as": "view"},
    "parquet": {"into": "out", "as": "parquet"},
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> dict[str, object]:
    return PLACES[request.param]


@pytest.fixture(params=["memory", "file"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """An open connection with a temporary table of the user's, another attached database and a schema in use."""
    (tmp_path / "db").mkdir()
    c = duckdb.connect(":memory:" if request.param == "memory" else str(tmp_path / "db" / "user.duckdb"))
    c.execute(PEOPLE.format("people", 400))
    c.execute(
        "CREATE TEMP TABLE mine AS SELECT 1 AS x; ATTACH ':memory:' AS beside; CREATE TABLE beside.t AS SELECT 1 AS x"
    )
    c.execute('CREATE SCHEMA "it\'s mine"')
    return c


def picture(c: duckdb.DuckDBPyConnection) -> tuple[object, ...]:
    """What a run may not change."""
    where = c.execute("SELECT CURRENT_DATABASE(), CURRENT_SCHEMAS(true)").fetchall()
    spelled = ("search_path", "schema")  # the same path may be spelled in two ways
    return [row for row in settings(c) if row[0] not in spelled], catalogue(c), where


def assert_usable(c: duckdb.DuckDBPyConnection) -> None:
    """It answers, begins transactions of its own, and reads data frames again."""
    df = pd.DataFrame({"x": [1, 2]})
    assert c.execute("SELECT SUM(x) FROM df").fetchall() == [(3,)]
    assert len(df) == 2
    c.execute("BEGIN; CREATE TABLE people_2 AS FROM people; ROLLBACK")
    assert c.execute("SELECT x FROM mine").fetchall() == [(1,)]


@pytest.mark.sampled(4)
def test_left_as_it_was_after_success(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, place: dict[str, object]
) -> None:
    before = picture(connection)
    wanted = job(place, tmp_path, r=people())
    found = anonymize(wanted, connection).releases["r"]
    if "into" in place:
        assert picture(connection) == before
    else:
        there = picture(connection)
        assert (there[0], there[2]) == (before[0], before[2])
        connection.execute("SELECT COUNT(*) FROM release.r").fetchall()
    after = picture(connection)
    assert verify(wanted, connection)["r"].released == found.released
    assert sum(size * n for size, n in assess(wanted, connection)["r"].class_sizes) == 400
    assert sum(size * n for size, n in assess(wanted, connection, release=True)["r"].class_sizes) == found.released
    assert plan(wanted, connection)[0].name == "r"
    assert picture(connection) == after
    assert_usable(connection)
    assert listed(tmp_path) == sorted(["db", *([str(place["into"])] if "into" in place else [])])


def refuse(*_: object, **__: object) -> None:
    raise VerificationError("not what was promised")


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


FAILURES: dict[str, tuple[dict[str, object], Callable[..., None] | None]] = {
    "verification": (people(), refuse),
    "interrupt": (people(), stop),
    "k": (people(k=401), None),
    "column": (release({"nobody": qi()}, source="people"), None),
    "hierarchy": (release({"age": qi({"edges": [[30]]})}, source="people"), None),
    "where": (people(where="age > 'x'"), None),
    "data": (people(where="CAST(name AS INTEGER) > 0"), None),
    "data frame": (release({"x": qi()}, source={"query": "SELECT x FROM df"}), None),
    "python variable": (release({"x": qi()}, source="df"), None),
    "file as a name": (release({"x": qi()}, source={"query": 'SELECT x FROM "x.csv"'}), None),
    "file": (release({"x": qi()}, source={"query": "SELECT x FROM read_csv('x.csv')"}), None),
    "person": (people() | {"person": "ward"}, None),
}


EVERYWHERE = ("verification", "interrupt", "k")


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("failure", "where"), [(f, w) for f in FAILURES for w in (PLACES if f in EVERYWHERE else ["in place"])]
)
def test_left_as_it_was_after_failure(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, where: str, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PLACES[where]
    df = pd.DataFrame({"x": [1, 1, 2, 2]})
    (tmp_path / "x.csv").write_text("x\n1\n1\n")
    monkeypatch.chdir(tmp_path)
    part, patch = FAILURES[failure]
    if patch is not None:
        monkeypatch.setattr(releasing, "verify", patch)
    before, beside = picture(connection), listed(tmp_path)
    with pytest.raises(SqldeidError) as raised:
        anonymize(job(place, tmp_path, r=part), connection)
    assert raised.value.code in (2, 4, 130)
    assert picture(connection) == before
    assert listed(tmp_path) == beside
    assert len(df) == 4
    assert_usable(connection)


NEUTRALISED = {
    "python_enable_replacements": ["true", "false"],
    "preserve_insertion_order": ["false"],
    "default_collation": ["nocase"],
    "default_order": ["DESC"],
    "default_null_order": ["NULLS_FIRST"],
    "integer_division": ["true"],
    "search_path": ["it's mine,main"],
    "schema": ["it's mine"],
    "TimeZone": ["Asia/Tokyo"],
    "disabled_optimizers": ["join_order,filter_pushdown"],
}


CASED = """CREATE SCHEMA "it's mine";
    CREATE TABLE t AS
    SELECT CASE WHEN i % 7 > 0 THEN CHR(CAST(65 + i % 2 * 32 AS INTEGER)) || i % 3 END AS a, i % 5 AS b,
           CASE WHEN i % 11 > 0 THEN CHR(CAST(65 + i % 2 * 32 AS INTEGER)) END AS c
    FROM RANGE(400) AS r(i)"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in NEUTRALISED.items() for v in values])
def test_a_users_settings_change_nothing_and_stay(tmp_path: Path, name: str, value: str) -> None:
    """The release is the same file's rows in the same order, and the settings are the user's again."""
    rows = []
    for given in (None, value):
        with duckdb.connect() as c:
            c.execute(CASED)
            if given is not None:
                c.execute(f"SET {name} = '{given.replace(chr(39), chr(39) * 2) if name != 'search_path' else 'main'}'")
                if name == "search_path":
                    c.execute('USE memory."it\'s mine"')
            before = picture(c)
            part = release(
                {"a": qi({"keep_first": [1]}), "b": qi(), "c": {"role": "insensitive"}}, source="main.t", k=3
            )
            target = tmp_path / f"{len(rows)}.duckdb"
            anonymize(job({"into": str(target), "as": "view"}, r=part), c)
            assert picture(c) == before
        with duckdb.connect(str(target)) as plain:
            rows.append(plain.execute("FROM release.r").fetchall())
    assert rows[0] == rows[1]


def test_a_locked_configuration_is_named(tmp_path: Path) -> None:
    with duckdb.connect(config={"lock_configuration": True}) as c:
        c.execute(PEOPLE.format("people", 100))
        before = catalogue(c)
        with pytest.raises(JobError, match="python_enable_replacements"):
            anonymize(job(r=people()), c)
        assert catalogue(c) == before
    with duckdb.connect(config={"lock_configuration": True, "python_enable_replacements": False}) as c:
        c.execute(PEOPLE.format("people", 400))
        assert anonymize(job(r=people()), c).releases["r"].released > 0


def test_a_connection_without_files_can_release_in_place_alone(tmp_path: Path) -> None:
    with duckdb.connect(config={"enable_external_access": False}) as c:
        c.execute(PEOPLE.format("people", 400))
        before = picture(c)
        with pytest.raises(JobError, match="closed"):
            anonymize(job({"into": str(tmp_path / "out.duckdb")}, r=people()), c)
        assert picture(c) == before
        assert listed(tmp_path) == []
        assert anonymize(job(r=people()), c).releases["r"].released > 0


@pytest.mark.sampled(5)
@pytest.mark.parametrize("broken", [False, True])
def test_an_open_transaction_is_refused_and_untouched(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, place: dict[str, object], broken: bool
) -> None:
    connection.execute("BEGIN; CREATE TABLE started AS SELECT 1 AS x")
    if broken:
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT CAST('a' AS INTEGER) FROM people").fetchall()
    for run in (anonymize, plan, verify, assess):
        with pytest.raises(SqldeidError, match="transaction"):
            run(job(place, tmp_path, r=people()), connection)
    if not broken:
        assert connection.execute("FROM started").fetchall() == [(1,)]
        connection.execute("COMMIT")
        assert connection.execute("FROM started").fetchall() == [(1,)]
    else:
        connection.execute("ROLLBACK")
    assert listed(tmp_path) == ["db"]
    assert_usable(connection)


def test_names_are_found_where_duckdb_finds_them() -> None:
    """A temporary table hides one of the current schema, which hides one of main."""
    with duckdb.connect() as c:
        for rows, table in ((10, "TABLE main.t"), (20, "TABLE zeta.t"), (30, "TEMP TABLE t")):
            c.execute("CREATE SCHEMA IF NOT EXISTS zeta")
            c.execute(f"CREATE {table} AS SELECT i % 2 AS a FROM RANGE({rows}) AS r(i)")
            c.execute("SET schema = 'zeta'" if rows > 10 else "SET schema = 'main'")
            wanted: Job = job({"schema": f"out{rows}"}, r=release({"a": qi(SUPPRESS)}))
            assert (
                anonymize(wanted, c).releases["r"].rows == rows == c.execute("SELECT COUNT(*) FROM t").fetchall()[0][0]
            )


def test_a_registered_frame_is_a_table_that_the_user_named() -> None:
    with duckdb.connect() as c:
        c.register("frame", pd.DataFrame({"a": [1, 1, 2, 2]}))
        assert anonymize(job(r=release({"a": qi()}, source="frame")), c).releases["r"].released == 4


def test_a_table_of_another_attached_database_is_told() -> None:
    with duckdb.connect() as c:
        c.execute("ATTACH ':memory:' AS \"the hospital\"")
        c.execute(PEOPLE.format('"the hospital".people', 40))
        for source in ("people", '"the hospital".people', '"the hospital".main.people'):
            with pytest.raises(JobError, match=r'database the hospital beside it .*: USE "the hospital"$'):
                anonymize(job(r=people() | {"source": source}), c)
        c.execute('USE "the hospital"')
        assert anonymize(job(r=people()), c).releases["r"].released


def failing(value: str) -> str:
    raise ValueError(f"CANARY {value}")


@pytest.mark.parametrize(
    ("function", "told"),
    [(failing, "a function of Python .* failed"), (lambda value: None, "gives NULL, .*null_handling='special'")],
)
def test_a_function_of_python_that_fails_is_told(function: Callable[[str], str | None], told: str) -> None:
    """It had code 1, as what another try may mend."""
    with duckdb.connect() as c:
        c.execute(PEOPLE.format("persons", 40))
        c.create_function("my_own", function, ["VARCHAR"], "VARCHAR")  # type: ignore[list-item, arg-type]
        c.execute("CREATE VIEW people AS SELECT * REPLACE (my_own(sex) AS sex) FROM persons")
        with pytest.raises(JobError, match=told) as raised:
            anonymize(job(r=people()), c)
        assert "CANARY" not in str(raised.value)
        assert c.execute("SELECT COUNT(*) FROM persons").fetchall() == [(40,)]


def test_a_reader_that_is_read_once_is_no_source() -> None:
    """DuckDB 1.4 finds no rows when it reads it again, which is seen as a source that changes."""
    with duckdb.connect() as c:
        c.execute(PEOPLE.format("persons", 40))
        c.register("people", c.table("persons").to_arrow_table().to_reader())
        with pytest.raises(JobError, match=r"rows can be read once.*read_all|other values when it was read again"):
            anonymize(job(r=people()), c)


def test_a_connection_that_only_reads_is_refused(tmp_path: Path, place: dict[str, object]) -> None:
    path = database(tmp_path / "source.duckdb")
    with duckdb.connect(str(path), read_only=True) as c:
        with pytest.raises(EngineError, match="reading only") as raised:
            anonymize(job(place, tmp_path, r=people()), c)
        assert raised.value.code == 1
        assert sum(size * n for size, n in assess(job(place, tmp_path, r=people()), c)["r"].class_sizes) == 400
    assert listed(tmp_path) == ["source.duckdb"]


def test_a_database_attached_for_reading_can_release_elsewhere(tmp_path: Path) -> None:
    path = database(tmp_path / "source.duckdb")
    with duckdb.connect() as c:
        c.execute(f"ATTACH '{path}' AS source (READ_ONLY); USE source")
        with pytest.raises(EngineError, match="reading only"):
            anonymize(job(r=people()), c)
        assert anonymize(job({"into": str(tmp_path / "out.duckdb")}, r=people()), c).releases["r"].released > 0


def test_a_closed_connection_is_an_engine_error() -> None:
    c = duckdb.connect()
    c.close()
    for run in (anonymize, plan, verify, assess):
        with pytest.raises(EngineError, match="is closed; give one that is open") as raised:
            run(job(r=people()), c)
        assert raised.value.code == 1


def test_two_releases_whose_names_run_together() -> None:
    """Temporary tables of one release never meet those of another."""
    with duckdb.connect() as c:
        c.execute(PEOPLE.format("people", 400))
        names = ["r", "r_verify", "r_verify_labels_0", "r_values_0", "r_kept"]
        done = anonymize(job(**{name: people() for name in names}), c)
        assert list(done.releases) == names
        before = c.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary").fetchall()
        assert before == [(0,)]
