"""Tables on Spark, and the same ones in a DuckDB file: what is on each, looked at from a session of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tests.support.foreign import in_duckdb
from tests.support.spark import PORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Cluster:
    """A session, and its Connect server."""

    spark: SparkSession

    @property
    def url(self) -> str:
        """Of the server."""
        return f"sc://127.0.0.1:{self.spark.conf.get(PORT)}"

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement)

    def there(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table there."""
        self.spark.sql(f"REFRESH TABLE {table}")  # another session may have replaced it
        rows = self.spark.sql(f"SELECT * FROM {table}").toArrow()
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def catalogue(self) -> set[tuple[str, str]]:
        """Schemas, tables, views and temporary views, and what lies in the warehouse's folder."""
        schemas = [row["namespace"] for row in self.spark.sql("SHOW SCHEMAS").toArrow().to_pylist()]
        tables = [row for s in schemas for row in self.spark.sql(f"SHOW TABLES IN {s}").toArrow().to_pylist()]
        folder = Path(self.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
        files = {("folder", str(path.relative_to(folder))) for path in folder.rglob("*") if path.is_dir()}
        return {(s, "") for s in schemas} | {(row["namespace"], row["tableName"]) for row in tables} | files


@dataclass
class Both(Cluster):
    """The same tables on Spark and in a DuckDB file."""

    file: Path

    def here(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table of the file."""
        with duckdb.connect(str(self.file)) as c:
            return c.execute(f"SELECT * FROM {table}").fetchall()


@contextmanager
def on_both(spark: SparkSession, folder: Path, tables: dict[str, pa.Table]) -> Iterator[Both]:
    """The tables on Spark, until they are dropped again, and in a file of the folder."""
    for name, rows in tables.items():
        load(spark, name, rows)
    yield Both(spark, in_duckdb(folder / "both.duckdb", tables))
    for name in tables:
        spark.sql(f"DROP TABLE {name}")


def load(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Make a table."""
    spark.createDataFrame(rows).createOrReplaceTempView("given")
    spark.sql(f"CREATE TABLE {name} AS SELECT * FROM given")
    spark.sql("DROP VIEW given")


def named(text: str) -> str:
    """A schema's name that Spark takes."""
    return re.sub(r"\W+", "_", f"of {text}")
