"""Source engines other than DuckDB, each as a place to load tables into and to look at; one test body is for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pyarrow as pa
import pytest

from sqldeid.sql import templates
from sqldeid.stages import Step
from tests.support.postgres import NUMBERS

if TYPE_CHECKING:
    import psycopg

ENGINES = ("postgres",)
"""A further engine: its name here, its fixture ``foreign_<name>`` below."""


class Foreign(Protocol):
    """A database of one test, empty at first."""

    name: str

    @property
    def database(self) -> Any:
        """What `anonymize` is given."""

    def load(self, table: str, rows: pa.Table) -> None:
        """Make a table."""

    def read(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of ``schema.table``, in any order."""

    def catalogue(self) -> set[tuple[str, ...]]:
        """Everything that is there: schemas, tables, views."""


_TYPES = {
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE PRECISION",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "decimal128(10, 2)": "NUMERIC(10, 2)",
}


@dataclass
class InPostgres:
    """A database of its own in the cluster."""

    cluster: str
    dbname: str
    name: str = "postgres"

    @property
    def address(self) -> str:
        """The connection string of psycopg."""
        return self.cluster.replace("dbname=postgres", f"dbname={self.dbname}")

    @property
    def database(self) -> str:
        """The URL, with a password that nobody must see."""
        host = dict(part.split("=") for part in self.cluster.split())["host"]
        return f"postgresql://sqldeid:hidden-word@/{self.dbname}?host={host}"

    @contextmanager
    def connect(self, **more: Any) -> Iterator[psycopg.Connection[Any]]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True, **more) as connection:
            yield connection

    def run(self, *statements: str) -> None:
        with self.connect() as c:
            for statement in statements:
                c.execute(statement.encode())

    def load(self, table: str, rows: pa.Table) -> None:
        columns = ", ".join(f'"{_quoted(f.name)}" {_TYPES.get(str(f.type), "TEXT")}' for f in rows.schema)
        with self.connect() as c:
            c.execute(f'CREATE TABLE "{table}" ({columns})'.encode())
            with c.cursor() as cursor, cursor.copy(f'COPY "{table}" FROM STDIN'.encode()) as copy:
                for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    copy.write_row(row)

    def read(self, table: str) -> list[tuple[Any, ...]]:
        with self.connect() as c:
            return c.execute(f"SELECT * FROM {table}".encode()).fetchall()

    def catalogue(self) -> set[tuple[str, ...]]:
        with self.connect() as c:
            found = c.execute(
                "SELECT n.nspname, c.relname, c.relkind::text FROM pg_class AS c "
                "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
                "WHERE n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT IN ('pg_catalog', 'information_schema') "
                "UNION ALL SELECT nspname, '', 'schema' FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'"
            ).fetchall()
        return set(found)


def _quoted(name: str) -> str:
    return name.replace('"', '""')


@contextmanager
def in_postgres(cluster: str, made: str = "") -> Iterator[InPostgres]:
    """A fresh database of the cluster, made so, dropped afterwards."""
    import psycopg

    name = f"foreign_{next(NUMBERS)}"
    with psycopg.connect(cluster, autocommit=True) as c:
        c.execute(f"CREATE DATABASE {name} {made}".encode())
        try:
            yield InPostgres(cluster, name)
        finally:
            c.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="module", params=ENGINES)
def foreign(request: pytest.FixtureRequest) -> Iterator[Foreign]:
    """Each engine in turn: a database for the tests of a module."""
    if request.param == "postgres":
        with in_postgres(request.getfixturevalue("postgres_cluster")) as database:
            yield database


@contextmanager
def running() -> Iterator[set[str]]:
    """The templates that are rendered meanwhile, but for the engines' own questions."""
    ran: set[str] = set()
    load = templates.load

    def noting(name: str, dialect: str = "duckdb") -> Any:
        if not name.startswith("engine/") or name == "engine/count_rows":  # which steps take, too
            ran.add(name)
        return load(name, dialect)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(templates, "load", noting)
        yield ran


BETWEEN_TABLES = {
    *("tables/write/place_rows", "tables/mondrian/place_parts"),
    *("run/fold_cohorts", "run/intersect_classes", "run/intersect_values"),
}
"""How the tables of a run are compared with each other: a plan shows the way of one release."""


def hold_listed(listed: Sequence[Step], ran: set[str]) -> None:
    """What ran is listed; what is listed as often as once ran."""
    more, less = ran - {s.template for s in listed} - BETWEEN_TABLES, {s.template for s in listed if s.times} - ran
    assert not more and not less, f"not listed: {sorted(more)}; not run: {sorted(less)}"


def in_duckdb(path: Path, tables: dict[str, pa.Table]) -> Path:
    """The same tables in a DuckDB file."""
    with duckdb.connect(str(path)) as c:
        for name, rows in tables.items():
            c.register("rows_of_test", rows)
            c.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows_of_test')
            c.unregister("rows_of_test")
    return path


@dataclass
class Both:
    """The same tables on an engine and in a DuckDB file."""

    foreign: Foreign
    file: Path

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.file)) as c:
            return c.execute(f"SELECT * FROM {table}").fetchall()


def bag(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Rows as a multiset that can be compared."""
    return sorted(map(repr, rows))
