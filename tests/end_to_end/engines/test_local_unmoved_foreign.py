"""In Postgres and on Spark local recoding of people in another order gives the rows of DuckDB, in its order."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.examples import examples
from tests.support.foreign import Foreign, bag, foreign
from tests.support.local_unmoved import BESIDE, Case, cases, in_file, job_of, released
from tests.support.on_spark import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["foreign"]
NUMBERS = count(1)
FEW = settings(
    deadline=None,
    max_examples=examples(24),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
TABLES = ("r", *(f"r{ending}" for ending in BESIDE))


def _on_duckdb(case: Case) -> tuple[dict[str, Any] | None, dict[str, list[dict[str, Any]]]]:
    """What is told of the case's first order, and the rows of what was written, in their order."""
    with TemporaryDirectory() as folder:
        source = in_file(Path(folder) / "source.duckdb", case.rows)
        told = released(case, job_of(case, {"schema": "out"}), source)
        with duckdb.connect(str(source)) as c:
            there = c.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'out'").fetchall()
            return told, {name: c.sql(f"SELECT * FROM out.{name}").to_arrow_table().to_pylist() for (name,) in there}


def _alike(case: Case, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What must be the same of rows, in their order."""
    shown = case.shown or [n for n in rows[0] if n not in ("ill", "code")] if rows else []
    return [tuple(row[n] for n in shown if n in row) for row in rows]


def _values(rows: list[dict[str, Any]]) -> list[str]:
    return bag([tuple(row.values()) for row in rows])


@pytest.mark.deep
@FEW
@given(cases())
def test_another_order_in_postgres_gives_the_release_of_duckdb(foreign: Foreign, case: Case) -> None:
    name = f"of_{next(NUMBERS)}"
    foreign.load(name, case.moved)
    told = released(case, job_of(case, {"schema": f"s_{name}"}, source=name), foreign.database)
    wanted, tables = _on_duckdb(case)
    assert told == wanted
    for table, rows in tables.items():
        there = _in_postgres(foreign, f"s_{name}.{table}")
        assert _alike(case, there) == _alike(case, rows)
        if case.alike:
            assert _values(there) == _values(rows)


def _in_postgres(foreign: Any, table: str) -> list[dict[str, Any]]:
    with foreign.connect() as c:
        read = c.execute(f"SELECT * FROM {table} ORDER BY ctid".encode())
        return [dict(zip((d.name for d in read.description), row, strict=True)) for row in read.fetchall()]


@pytest.mark.xdist_group("spark")
@settings(FEW, max_examples=3)
@given(cases())
def test_another_order_on_spark_gives_the_release_of_duckdb(spark: SparkSession, case: Case) -> None:
    name = f"of_{next(NUMBERS)}"
    load(spark, name, case.moved)
    try:
        told = released(case, job_of(case, {"schema": f"s_{name}"}, source=name), spark)
        wanted, tables = _on_duckdb(case)
        assert told == wanted
        for table, rows in tables.items():
            there = spark.sql(f"SELECT * FROM s_{name}.{table}").toArrow().to_pylist()
            assert _alike(case, there) == _alike(case, rows)
            if case.alike:
                assert _values(there) == _values(rows)
    finally:
        for table in TABLES:
            spark.sql(f"DROP TABLE IF EXISTS s_{name}.{table}")
        spark.sql(f"DROP SCHEMA IF EXISTS s_{name}")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
