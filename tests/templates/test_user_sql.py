"""User SQL on a real DuckDB: the guard lets no file be read, and what it writes gives the rows of the original."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from packaging.version import Version
from sqlglot import exp

from sqldeid.errors import JobError
from sqldeid.sql import bind, parse_expression, parse_query, table_name
from tests.support import hostile, queries

CANARY = "canary7f3a"


def resolve(parts: tuple[str, ...]) -> exp.Table:
    known = queries.TABLES.get(tuple(part.casefold() for part in parts)) or queries.TABLES.get(parts)
    if known is None:
        raise JobError("no such table")
    return table_name("memory", *known)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cwd")
    for name in ("secret.csv", "patients.csv"):
        (place / name).write_text(f"id,name\n1,{CANARY}\n")
    return place


@contextmanager
def a_users() -> Iterator[duckdb.DuckDBPyConnection]:
    """A user's own connection: files and DataFrames are within reach."""
    with duckdb.connect() as con:
        for statement in queries.SETUP:
            con.execute(statement)
        yield con


@pytest.fixture(scope="module")
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    with a_users() as con:
        yield con


@pytest.fixture
def connection(
    folder: Path, opened: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> duckdb.DuckDBPyConnection:
    """One for all tests, which only read: DuckDB takes longer to open than to answer them."""
    monkeypatch.chdir(folder)
    return opened


def outcome(con: duckdb.DuckDBPyConnection, text: str) -> str:
    """All rows as text, or the database's complaint."""
    frame = pd.DataFrame({"id": [1], "name": [CANARY]})  # within reach of a replacement scan
    assert len(frame) == 1
    try:
        return repr(con.execute(text).fetchall())
    except duckdb.Error as error:
        return str(error)


def test_the_files_and_the_frame_can_be_read_without_the_guard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests below would pass for nothing."""
    monkeypatch.chdir(folder)
    reading = [*hostile.FILES, *hostile.FUNCTIONS[:7], "SELECT * FROM frame"]
    with a_users() as con:
        reached = [text for text in reading if "://" not in text and CANARY in outcome(con, text)]
    assert {"SELECT * FROM 'secret.csv'", 'SELECT * FROM "secret.csv"', "SELECT * FROM frame"} <= set(reached)
    assert len(reached) > 30


@pytest.mark.parametrize("text", [*hostile.QUERIES, *hostile.HARMLESS])
def test_nothing_the_guard_lets_through_reads_a_file(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        bound = bind(parse_query(text, key="q"), resolve)
    except JobError:
        return
    assert text in hostile.HARMLESS
    assert CANARY not in outcome(connection, bound.sql("duckdb"))


@pytest.mark.parametrize("text", hostile.EXPRESSIONS)
def test_no_expression_reads_a_file(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    with pytest.raises(JobError):
        bind(parse_expression(text, key="q"), resolve)


@pytest.mark.sampled(106)
@pytest.mark.parametrize("text", queries.QUERIES)
def test_a_good_query_gives_the_rows_of_its_text(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    if text.startswith("TABLE ") and Version(version("sqlglot")) < Version("30.30"):  # which takes it for no query
        with pytest.raises(JobError, match="only a query is allowed here"):
            parse_query(text, key="q")
        return
    expected = connection.execute(text)
    names, rows = [column[0] for column in expected.description], expected.fetchall()
    found = connection.execute(bind(parse_query(text, key="q"), resolve).sql("duckdb"))
    aliased = [column[0] for column in found.description]
    assert sorted(map(repr, found.fetchall())) == sorted(map(repr, rows))
    assert len(aliased) == len(names)
    if "ORDER BY" in text.rsplit(")", 1)[-1]:
        assert connection.execute(bind(parse_query(text, key="q"), resolve).sql("duckdb")).fetchall() == rows


@pytest.mark.parametrize("text", queries.EXPRESSIONS)
def test_a_good_expression_chooses_the_rows_of_its_text(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    bare = text.split(" --")[0].rstrip(";")
    expected = connection.execute(f"SELECT id FROM patients WHERE {bare} ORDER BY id").fetchall()
    bound = bind(parse_expression(text, key="where"), resolve).sql("duckdb")
    found = connection.execute(f"SELECT id FROM memory.main.patients AS patients WHERE {bound} ORDER BY id").fetchall()
    assert found == expected and 0 < len(found) < 6


def test_a_name_of_with_is_never_looked_up_elsewhere(connection: duckdb.DuckDBPyConnection) -> None:
    """Even out of its place, where DuckDB would take the user's name for a file."""
    tree = bind(parse_query('WITH "secret.csv" AS (SELECT 1 AS id) SELECT * FROM "secret.csv"', key="q"), resolve)
    tree.set("with_", None)
    assert "does not exist" in outcome(connection, tree.sql("duckdb"))
