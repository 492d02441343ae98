"""Copy a generated hospital into Postgres, where there is no MIMIC to try on: `python load.py URL [PATIENTS]`."""

import sys
import tempfile
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql

from sqldeid import demo

TABLES = ("patients", "admissions", "procedures_icd")


def load(url: str, patients: int = 1000) -> None:
    """Make a schema `mimiciii` with the tables that the job reads."""
    with tempfile.TemporaryDirectory() as folder:
        copy(demo.mimic(Path(folder) / "mimic.duckdb", patients=patients, seed=1).database, url)


def copy(database: Path, url: str) -> None:
    """Copy these tables from a DuckDB file; what DuckDB calls a type, Postgres does, too, but for DOUBLE."""
    with duckdb.connect(str(database), read_only=True) as source, psycopg.connect(url) as server:
        server.execute("CREATE SCHEMA mimiciii")
        for table in TABLES:
            rows = source.execute(f"SELECT * FROM mimiciii.{table}")  # noqa: S608
            columns = [sql.SQL("{} {}").format(sql.Identifier(c[0]), sql.SQL(str(c[1]))) for c in rows.description]
            name = sql.Identifier("mimiciii", table)
            server.execute(sql.SQL("CREATE TABLE {} ({})").format(name, sql.SQL(", ").join(columns)))
            with server.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(name)) as wire:
                while row := rows.fetchone():
                    wire.write_row(row)


if __name__ == "__main__":
    load(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
