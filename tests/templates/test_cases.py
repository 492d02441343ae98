"""Every portable template runs on every engine and gives the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from sqldeid.sql import render, template_names
from tests.templates.cases import CASES as FIRST
from tests.templates.cases import Case, Rows

if TYPE_CHECKING:
    import psycopg

FURTHER = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
CASES: list[Case] = [*FIRST, *(case for name in FURTHER for case in import_module(f"tests.templates.{name}").CASES)]
_NUMBERS = count()
PORTABLE = [name for name in template_names() if "." not in name]


@pytest.mark.parametrize("name", PORTABLE)
def test_every_portable_template_has_a_case(name: str) -> None:
    assert name in {case.template for case in CASES}, (
        "give it one in tests/templates/cases.py or a file cases_….py beside it"
    )


def test_every_case_has_a_template() -> None:
    assert {case.template for case in CASES} <= set(PORTABLE)


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@contextmanager
def fresh_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a new database of one DuckDB, which takes far longer to open than a case to run."""
    name = f"fresh_{next(_NUMBERS)}"
    with _opened().cursor() as connection:
        connection.execute(f"ATTACH ':memory:' AS {name}")
        connection.execute(f"USE {name}")
        yield connection
    _opened().execute(f"DETACH {name}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.template} {case.note}".strip())
def test_on_duckdb(case: Case) -> None:
    with fresh_duckdb() as connection:
        assert_rows(case, "duckdb", lambda text: run_duckdb(connection, text))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.template} {case.note}".strip())
def test_on_postgres(case: Case, postgres: psycopg.Connection) -> None:
    assert_rows(case, "postgres", lambda text: run_postgres(postgres, text))


def assert_rows(case: Case, engine: str, run: Callable[[str], Rows]) -> None:
    for statement in case.setup:
        run(statement)
    read = case.read if isinstance(case.read, str) else case.read[engine]
    assert_same(case, found_rows(case, render(case.template, engine, **case.parameters), read, run))


def found_rows(case: Case, statement: str, read: str, run: Callable[[str], Rows]) -> Rows:
    """The rows of a template's statement, or of the query that reads what it made."""
    found = run(statement)
    for after in case.after:
        run(after)
    return run(read) if read else found


def assert_same(case: Case, found: Rows) -> None:
    rows = case.rows if case.ordered else sorted(case.rows, key=repr)
    found = found if case.ordered else sorted(found, key=repr)
    assert found == rows
    types = [list(map(type, row)) for row in found]
    assert types == [list(map(type, row)) for row in rows], "equal values of other types: a sum must be cast"


def run_duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> Rows:
    return connection.execute(text).fetchall()


def run_postgres(connection: psycopg.Connection, text: str) -> Rows:
    cursor = connection.execute(text.encode())
    return cursor.fetchall() if cursor.description else []
