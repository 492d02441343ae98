"""Which tables a source reads through views, as the catalogue of each engine writes these."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from sqldeid.catalogue.beneath import beneath
from sqldeid.engine.settings import Settings
from sqldeid.run.places import reading
from sqldeid.sql import bind, parse_query
from sqldeid.sql.viewed import view_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg
    from pyspark.sql import SparkSession

VIEWS = {
    "renamed": "SELECT seq AS patient FROM p",
    "twice": "WITH q AS (SELECT patient AS id FROM renamed) SELECT q.id FROM q",
    "joined": "SELECT o.seq FROM o JOIN twice ON twice.id = o.seq",
    "hiding": "WITH p AS (SELECT seq FROM o) SELECT * FROM p",
}
READ = {"p": {"p"}, "renamed": {"p"}, "twice": {"p"}, "joined": {"o", "p"}, "hiding": {"o"}, "o": {"o"}}
QUERIES = {
    "SELECT id FROM twice": {"p"},
    "WITH p AS (SELECT seq FROM o) SELECT * FROM p": {"o"},
    "SELECT seq FROM o WHERE seq IN (SELECT patient FROM renamed)": {"o", "p"},
}


@contextmanager
def reader(database: Any) -> Iterator[Callable[[str], set[str]]]:
    """Tells by a source's name or query the last parts of the tables that it reads."""
    with reading(database, None, Settings()) as engine:

        def read(asked: str) -> set[str]:
            query = " " in asked
            source = bind(parse_query(asked, key=""), engine.resolve) if query else engine.resolve((asked,))
            found = beneath(source, engine)
            if None in found:
                return {"anything"}
            return {name.rpartition(".")[2] for of in found for name in of or ()} & {"p", "o"}

        yield read


def told(database: Any) -> dict[str, set[str]]:
    with reader(database) as read:
        return {asked: read(asked) for asked in (*READ, *QUERIES)}


@pytest.mark.duckdb14
def test_duckdb_through_views() -> None:
    with duckdb.connect() as c:
        for table in ("p", "o"):
            c.execute(f"CREATE TABLE {table} AS SELECT 1 AS seq")
        for name, query in VIEWS.items():
            c.execute(f"CREATE VIEW {name} AS {query}")
        assert told(c) == READ | QUERIES
        c.execute("CREATE TEMP VIEW Passing AS SELECT * FROM memory.main.TWICE")
        c.execute("CREATE VIEW turned AS PIVOT p ON seq IN (1) USING COUNT(*)")
        c.execute("CREATE TABLE seq AS SELECT 1 AS p")
        with reader(c) as read:
            assert read("passing") == {"p"}
            assert read("turned") == {"anything"}  # not understood


@pytest.mark.duckdb14
def test_views_of_another_database() -> None:
    with duckdb.connect() as c:
        c.execute("ATTACH ':memory:' AS elsewhere")
        c.execute("CREATE TABLE elsewhere.main.p AS SELECT 1 AS seq")
        c.execute("CREATE VIEW elsewhere.main.inner_one AS SELECT seq FROM elsewhere.main.p")
        c.execute("CREATE VIEW outer_one AS SELECT seq FROM elsewhere.main.inner_one")
        with reader(c) as read:
            assert read("outer_one") == {"p"}


@pytest.mark.duckdb14
def test_a_name_without_a_schema_is_of_the_view_s_own() -> None:
    """What DuckDB reads and what we say are one; where a search path would change it, all of that name are told."""
    with duckdb.connect() as c:
        for schema in ("one", "other"):
            c.execute(f"CREATE SCHEMA {schema}")
            c.execute(f"CREATE TABLE {schema}.p AS SELECT '{schema}.p' AS seq")
            c.execute(f"CREATE VIEW {schema}.shown AS SELECT seq FROM P")
            c.execute(f"CREATE VIEW {schema}.nested AS SELECT (SELECT MIN(seq) FROM shown) AS seq")
        c.execute("CREATE TABLE p AS SELECT 'main.p' AS seq")
        c.execute("CREATE TABLE o AS SELECT 'main.o' AS seq")
        c.execute("CREATE VIEW one.far AS SELECT seq FROM o")
        c.execute("CREATE TEMP VIEW brief AS SELECT seq FROM p")
        c.execute("CREATE TABLE other.o AS SELECT 'other.o' AS seq")
        of = told_beside(c)
        for name in ("one.shown", "one.nested", "other.shown", "other.nested"):
            assert of[name] == {name.replace("shown", "p").replace("nested", "p")}
            assert c.execute(f"SELECT seq FROM {name}").fetchall() == [(next(iter(of[name])),)]
        assert of["one.far"] == {"main.o", "other.o"}, "a search path decides"
        assert of["brief"] == {"main.p", "one.p", "other.p"}, "so does one here"
        c.execute("CREATE TEMP TABLE p AS SELECT 'temp.p' AS seq")
        assert c.execute("SELECT seq FROM one.shown").fetchall() == [("temp.p",)], "DuckDB looks there first"
        assert told_beside(c)["one.shown"] == {"main.p", "one.p"}


def told_beside(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """What lies beneath the views, by schema and name, without the views themselves."""
    with reading(connection, None, Settings()) as engine:
        relations = [r for r in engine.relations() if r.is_view]
        views = {".".join(r.parts[-2:]) for r in relations}
        found = {".".join(r.parts[2 if r.parts[0] == "temp" else 1 :]): engine.beneath(r.parts) for r in relations}
    return {name: set(tables or ()) - views for name, tables in found.items()}


@pytest.mark.duckdb14
def test_a_view_may_name_the_database_alone() -> None:
    with duckdb.connect() as c:
        c.execute("ATTACH ':memory:' AS elsewhere")
        c.execute("CREATE TABLE elsewhere.main.p AS SELECT 1 AS seq")
        c.execute("CREATE VIEW short AS SELECT seq FROM elsewhere.p")
        c.execute("CREATE VIEW whole AS SELECT seq FROM elsewhere.main.p")
        of = told_beside(c)
        assert of["main.short"] == of["main.whole"] == {"main.p"}


@pytest.mark.duckdb14
def test_views_that_call_what_may_read_any_table() -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TABLE p AS SELECT 1 AS seq")
        c.execute("CREATE TABLE o AS SELECT 1 AS seq")
        c.execute("CREATE MACRO rows_of() AS TABLE SELECT * FROM p")
        c.execute("CREATE MACRO greatest_of(x) AS (SELECT MAX(seq) FROM p) + x")
        c.execute('CREATE MACRO "by "" another"(x) AS greatest_of(x) * 2')
        c.execute("CREATE MACRO doubled(x) AS x * 2")
        opaque = {
            "a": "SELECT * FROM rows_of()",
            "b": "SELECT Greatest_Of(seq) AS seq FROM o",
            "c": 'SELECT "by "" another"(seq) AS seq FROM o',
            "d": "SELECT * FROM query('SELECT * FROM p')",
            "e": "SELECT * FROM query_table('p')",
            "f": "SELECT * FROM a",
        }
        for name, query in opaque.items():
            c.execute(f"CREATE VIEW {name} AS {query}")
        c.execute("CREATE VIEW plain AS SELECT doubled(ABS(seq)) AS seq FROM o")
        with reading(c, None, Settings()) as engine:
            of = {name: beneath(engine.resolve((name,)), engine) for name in opaque}
            assert of == dict.fromkeys(opaque, (None,))
            assert beneath(engine.resolve(("plain",)), engine) == (frozenset({"main.plain", "main.o"}),)


@pytest.mark.deep
def test_postgres_through_views(postgres: psycopg.Connection[Any]) -> None:
    for table in ("p", "o"):
        postgres.execute(f"CREATE TABLE {table} (seq INTEGER)".encode())
    for name, query in VIEWS.items():
        kind = "MATERIALIZED VIEW" if name == "twice" else "VIEW"
        postgres.execute(f"CREATE {kind} {name} AS {query}".encode())
    assert told(postgres) == READ | QUERIES


@pytest.mark.xdist_group("spark")
def test_spark_through_views(spark: SparkSession) -> None:
    """In a schema of its own: other tests leave tables of such names."""
    spark.sql("CREATE DATABASE of_views")
    spark.sql("USE of_views")
    try:
        for table in ("p", "o"):
            spark.sql(f"CREATE TABLE {table} (seq INT) USING parquet")
        for name, query in VIEWS.items():
            spark.sql(f"CREATE VIEW {name} AS {query}")
        assert told(spark) == READ | QUERIES
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE of_views CASCADE")


@pytest.mark.parametrize("text", ["", "nothing of (", "SUMMARIZE p", "DROP TABLE p", "SELECT 1; SELECT 2"])
def test_what_is_no_query_is_not_understood(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert view_reads(text, "duckdb") is None
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("FROM read_csv('a.csv', delim = ',', names := ['p'])", ("a.csv",)),
        ("FROM read_csv(list_value('a.csv', 'b.csv'), \"header\" := true)", ("a.csv", "b.csv")),
        ("SELECT * FROM read_parquet('a.pq') AS a, read_json('b.json', format => 'array') AS b", ("a.pq", "b.json")),
        ("FROM read_text('a' || '.txt')", None),
    ],
)
def test_of_files_the_names_count_not_how_they_are_read(text: str, files: tuple[str, ...] | None) -> None:
    """Two views over other files, both with `delim = ','`, have nothing in common."""
    found = view_reads(text, "duckdb")
    assert (None if found is None else found.files) == files
