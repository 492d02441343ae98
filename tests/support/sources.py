"""What the release tests share: jobs in one line, databases, and a picture of all that a database holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from sqldeid.job import Job

SUPPRESS = {"suppress": True}
INSENSITIVE = {"role": "insensitive"}
SENSITIVE = {"role": "sensitive"}
IDENTIFYING = {"role": "identifying"}
FREE_TEXT = {"role": "free-text"}

PEOPLE = """CREATE TABLE {} AS
    SELECT i AS id, 'name ' || i AS name, ['f', 'm'][1 + i % 2] AS sex, CAST(20 + (i * 7) % 30 AS INTEGER) AS age,
           CAST(i % 5 AS SMALLINT) AS ward, 'note ' || i AS note
    FROM RANGE({}) AS r(i)"""

PLACES: dict[str, dict[str, Any]] = {
    "in place": {},
    "view in place": {"as": "view"},
    "fresh file": {"into": "out.duckdb"},
    "view in a fresh file": {"into": "out.duckdb", "as": "view"},
    "parquet": {"into": "out", "as": "parquet"},
}
"""Where a release may go, by what the place is called."""


def qi(hierarchy: object = None, **more: object) -> dict[str, object]:
    """A quasi-identifying column; suppressed or kept where no hierarchy is given."""
    return {"role": "quasi-identifying", "hierarchy": hierarchy or SUPPRESS, **more}


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[object]]) -> None:
    """Rows into a table that is there, hundreds in a statement: `executemany` takes five times as long."""
    given = [tuple(row) for row in rows]
    for start in range(0, len(given), 200):
        part = given[start : start + 200]
        marks = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
        connection.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in part for value in row])


def release(
    columns: Mapping[str, object], *, source: object = "t", k: int = 2, limit: float = 0.0, **more: object
) -> dict[str, object]:
    """One release as a job writes it; `suppression` goes to privacy, `search` replaces the search."""
    privacy = {"k": k, "suppression_limit": limit, "suppression": more.pop("suppression", "drop")}
    search = more.pop("search", {})
    unit = {} if more.get("person") is not None else {"rows_are_persons": True}
    return {"source": source, **unit, "columns": dict(columns), "privacy": privacy, "search": search, **more}


def job(target: Mapping[str, object] | None = None, folder: Path | str = "", **releases: Mapping[str, object]) -> Job:
    """A job of these releases."""
    return Job.parse({"release": dict(target or {}), "tables": releases}, folder=folder)


def people(limit: float = 0.1, k: int = 5, **more: object) -> dict[str, object]:
    """A release of the people, with a quasi-identifier that generalises, one that is kept, and another column."""
    columns = {
        "name": IDENTIFYING,
        "sex": qi(),
        "age": qi({"bands": [5, 10]}),
        "ward": INSENSITIVE,
        "note": FREE_TEXT,
    }
    return release(columns, source="people", k=k, limit=limit, person="id", **more)


def database(path: Path, rows: int = 400) -> Path:
    """A database file with people, a view, comments, and something in another schema."""
    with duckdb.connect(str(path)) as c:
        c.execute(PEOPLE.format("people", rows))
        c.execute("COMMENT ON TABLE people IS 'all of them'")
        c.execute("COMMENT ON COLUMN people.age IS 'in years'")
        c.execute("CREATE SCHEMA ward; CREATE TABLE ward.beds AS SELECT 1 AS bed; CREATE VIEW old AS FROM people")
        c.execute("COMMENT ON VIEW old IS 'a view'")
    return path


def contents(path: Path) -> dict[str, object]:
    """Everything that a database file holds, as a new plain connection finds it."""
    with duckdb.connect(str(path)) as c:
        return catalogue(c, rows=True)


def catalogue(c: duckdb.DuckDBPyConnection, *, rows: bool = False) -> dict[str, object]:
    """Schemas, tables, views, comments, attached databases, and the rows where asked."""
    queries = {
        "databases": "SELECT database_name, path FROM duckdb_databases() ORDER BY ALL",
        "schemas": "SELECT database_name, schema_name FROM duckdb_schemas() ORDER BY ALL",
        "tables": "SELECT database_name, schema_name, table_name, comment, temporary FROM duckdb_tables() ORDER BY ALL",
        "views": """SELECT database_name, schema_name, view_name, comment, temporary, sql FROM duckdb_views()
                    WHERE NOT internal ORDER BY ALL""",
        "columns": """SELECT database_name, schema_name, table_name, column_name, data_type, comment
                      FROM duckdb_columns() WHERE NOT internal ORDER BY ALL""",
    }
    found: dict[str, object] = {name: c.execute(text).fetchall() for name, text in queries.items()}
    if rows:
        for database_, schema, name, *_ in c.execute(queries["tables"]).fetchall():
            quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (database_, schema, name))
            found[quoted] = c.execute(f"SELECT * FROM {quoted} ORDER BY ALL").fetchall()
    return found


def settings(c: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Every setting of a connection with its value."""
    return c.execute("SELECT name, value FROM duckdb_settings() ORDER BY ALL").fetchall()


def listed(folder: Path) -> list[str]:
    """The files and folders there, hidden ones too."""
    return sorted(p.name for p in folder.iterdir())


def everything(folder: Path) -> bytes:
    """The bytes of all files under a folder, or of one file."""
    files = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.is_file())
    return b"".join(p.read_bytes() for p in files)
