"""Every portable template runs on every engine and gives the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb
import pytest

from sqldeid.sql import render, template_names
from tests.support.template_cases import CASES, assert_same, found_rows, fresh_duckdb
from tests.templates.cases import Case, Rows

if TYPE_CHECKING:
    import psycopg

PORTABLE = [name for name in template_names() if "." not in name]
FOR_EACH = {name.removesuffix(".each") for name in template_names() if name.endswith(".each")}
"""Written once with what differs between engines; a case is welcome."""
OWN = [{n.rpartition(".")[0] for n in template_names() if n.endswith("." + e)} for e in ("duckdb", "postgres", "spark")]
WRITTEN_THRICE = OWN[0] & OWN[1] & OWN[2]
"""With a text of its own for every engine; a case is welcome, too."""


@pytest.mark.parametrize("name", PORTABLE)
def test_every_portable_template_has_a_case(name: str) -> None:
    assert name in {case.template for case in CASES}, (
        "give it one in tests/templates/cases.py or a file cases_….py beside it"
    )


def test_every_case_has_a_template() -> None:
    assert {case.template for case in CASES} <= {*PORTABLE, *FOR_EACH, *WRITTEN_THRICE}


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


def run_duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> Rows:
    return connection.execute(text).fetchall()


def run_postgres(connection: psycopg.Connection, text: str) -> Rows:
    cursor = connection.execute(text.encode())
    return cursor.fetchall() if cursor.description else []
