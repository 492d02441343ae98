"""Every portable template runs on Spark and gives the rows it gives on DuckDB.

A fixture's tables are made in DuckDB and become temporary views of Spark, so that their statements need no Spark text.
What makes or notes something that stays is given tables of Spark's catalogue, whose names hold letters and digits only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest
from sqlglot import exp

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.spark import SparkEngine
from sqldeid.sql import identifier, render, table_name
from sqldeid.sql.dialects import transpile
from tests.support.template_cases import CASES, assert_same, found_rows, fresh_duckdb
from tests.templates.cases import Case, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

NO_TRANSACTIONS = "not applicable: Spark has no transactions"
GAPS = {
    "engine/commit_transaction": NO_TRANSACTIONS,
    "engine/rollback_transaction": NO_TRANSACTIONS,
    "publish/comment_column": "not applicable: on Spark a table is made with its comments (publish/create_staged)",
    "publish/comment_view": "not applicable: on Spark a view is made with its comments (publish/flip_view)",
}
LASTING = re.compile(r"\s*(CREATE (TABLE|VIEW|SCHEMA)|ALTER TABLE|COMMENT ON|DROP VIEW IF EXISTS `v w)")
"""Statements on what stays in the catalogue."""
NAMES = ("peo ple", "ke pt", "coded 0", "coded 1", "labels 0", "labels 1", "v w", "ca se", "ca'se", "o'u\"t")
"""Names of the fixtures that Spark's catalogue does not take."""


def _described(rows: Rows) -> Rows:
    """Comments of a table and its columns: of its description they alone are of many words or end with \\n."""
    return [(row[2],) for row in rows if row[2]] or [(row[1],) for row in rows if row[0] == "Comment"]


READS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "engine/drop_table": ("SHOW VIEWS LIKE 'peo ple'", lambda rows: [(len(rows),)]),
    "publish/drop_view": ("SHOW VIEWS LIKE 'v_w'", lambda rows: [(len(rows),)]),
    "publish/comment_table": ("DESCRIBE EXTENDED peo_ple", _described),
}
"""How Spark's catalogue is asked what those of other engines are asked by a query."""


@pytest.mark.always
@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.template} {case.note}".strip())
def test_on_spark(case: Case, spark: SparkSession) -> None:
    if case.template in GAPS:
        pytest.skip(GAPS[case.template])
    read, shaped = READS.get(case.template, ("", lambda rows: rows))
    if not read and case.read:
        read = transpile(case.read, "spark") if isinstance(case.read, str) else case.read["spark"]
    statement = render(case.template, "spark", **case.parameters)
    case = replace(case, after=tuple(transpile(text, "spark") for text in case.after))
    session = spark.newSession()
    with _prepared(case, session, lasting=LASTING.match(statement) is not None) as run:
        if statement.startswith("INSERT INTO"):
            run = _appending(case, statement, session, run)
        found = shaped(found_rows(case, statement, read, run))
    assert_same(case, [_near(row, want) for row, want in zip(found, case.rows, strict=True)] if case.ordered else found)


@contextmanager
def _prepared(case: Case, session: SparkSession, *, lasting: bool) -> Iterator[Callable[[str], Rows]]:
    """What runs a statement where the tables of the case are; they are gone afterwards."""

    def run(text: str) -> Rows:
        table = session.sql(_plain(text) if lasting else text).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    try:
        with fresh_duckdb() as connection:
            for statement in case.setup:
                connection.execute(statement)
            there = connection.execute(
                "SELECT table_name, table_type FROM information_schema.tables "
                "WHERE table_catalog IN (CURRENT_DATABASE(), 'temp')"
            ).fetchall()
            for name, kind in there:
                rows = connection.sql(f"SELECT * FROM {table_name(name).sql('duckdb')}").to_arrow_table()
                quoted = identifier(name).sql("spark")
                session.createDataFrame(rows).createOrReplaceTempView("`given`" if lasting else quoted)
                if lasting and kind == "VIEW":
                    run(f"CREATE VIEW {quoted} AS SELECT 1 AS a")
                elif lasting:
                    run(f"CREATE TABLE {quoted} AS SELECT * FROM given")
        yield run
    finally:
        if lasting:
            _sweep(session)


def _appending(case: Case, statement: str, session: SparkSession, run: Callable[[str], Rows]) -> Callable[[str], Rows]:
    """What runs statements as the engine does, to which the tables of the case are temporary ones of its own."""
    engine = SparkEngine(session, DuckDBEngine(duckdb.connect(), "memory", "main", own=True), "", own=False)
    tables = [part for part in case.parameters.values() if isinstance(part, exp.Table)]
    engine._temporary |= {table.sql("spark"): table for table in tables}

    def run_it(text: str) -> Rows:
        if text != statement:
            for name, longer in engine._longer.items():  # in these texts names stand without quotes, too
                text = re.sub(rf"(?<!\w){re.escape(name[1:-1])}(?!\w)", longer.name, text)
            return run(text)
        engine.execute(text)
        return []

    return run_it


def _sweep(session: SparkSession) -> None:
    for view in session.sql("SHOW VIEWS IN default").toArrow().to_pylist():
        if not view["isTemporary"]:
            session.sql(f"DROP VIEW default.{view['viewName']}")
    for table in session.sql("SHOW TABLES IN default").toArrow().to_pylist():
        if not table["isTemporary"]:
            session.sql(f"DROP TABLE default.{table['tableName']}")


def _plain(text: str) -> str:
    """A statement whose tables and schemas have plain names, as its columns need not have."""
    for name in NAMES:
        text = text.replace(identifier(name).sql("spark"), re.sub(r"\W", "_", name))
    return text


def _near(row: tuple[object, ...], wanted: tuple[object, ...]) -> tuple[object, ...]:
    """A row with what is wanted where a float differs in its last bits alone: Java's logarithm is another."""
    return tuple(
        want
        if isinstance(want, float) and isinstance(value, float) and math.isclose(value, want, rel_tol=1e-14)
        else value
        for value, want in zip(row, wanted, strict=True)
    )
