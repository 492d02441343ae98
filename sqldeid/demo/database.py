"""Write generated tables into a new DuckDB file, and the job file that goes with it, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import TypeAlias

import duckdb
import pyarrow as pa

from sqldeid.engine.plain import Workshop
from sqldeid.errors import EngineError, JobError
from sqldeid.sql import identifier, render, table_name

NOTICE = "made by a seeded generator, no real person"

Rows: TypeAlias = pa.Table | pa.RecordBatchReader
"""Generated rows, at once or in batches."""


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table of a demo database.

    Parameters
    ----------
    name
        Schema and table, as a job's ``source`` names them.
    rows
        Number of rows.
    """

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo database and its job files.

    Parameters
    ----------
    database
        The DuckDB file.
    jobs
        Job files, ready to run against `database`.
    tables
        Tables with their numbers of rows, in the order they were made.
    notice
        What must be said wherever the data is shown.
    preset
        Of `sqldeid init`, where it writes the job; None where the demo comes with one.
    """

    database: Path
    jobs: tuple[Path, ...]
    tables: tuple[DemoTable, ...]
    notice: str = NOTICE
    preset: str | None = None


def check_target(path: Path) -> None:
    """Refuse a path where a demo cannot be written; nothing is touched.

    Raises
    ------
    JobError
        If the folder is missing, the name cannot stand in a job file, or a file that would be written exists.
    """
    if not path.parent.is_dir():
        raise JobError(f"{path.parent}: this folder does not exist; make it first, or name another", key="path")
    if not os.access(path.parent, os.W_OK):
        raise JobError(f"{path.parent}: cannot write here; name another folder", key="path")
    if not path.name or not path.name.isprintable() or path.suffix == ".toml":
        raise JobError("the name of the demo database is not usable; name it like demo.duckdb", key="path")
    for file in (path, job_path(path)):
        if os.path.lexists(file):
            raise JobError(f"{file} exists already; remove it, or name another path", key="path")


def job_path(path: Path) -> Path:
    """Where the job file of the database `path` is: ``adult.duckdb`` has ``adult.job.toml``."""
    return path.with_suffix(".job.toml")


def write_demo(path: Path, schema: str, tables: Mapping[str, Rows], job: str) -> Demo:
    """Write the tables and the job file, as `write_placed` does."""
    return write_placed(path, {(schema, name): rows for name, rows in tables.items()}, job=job)


def write_placed(
    path: Path, tables: Mapping[tuple[str, str], Rows], *, job: str | None = None, preset: str | None = None
) -> Demo:
    """Write tables of one or several schemas, and the job file if there is one.

    The database is written aside and renamed, so that a run that fails or is stopped leaves nothing behind.

    Parameters
    ----------
    path
        The new DuckDB file.
    tables
        Rows by schema and table; a schema is made where it is missing.
    job
        Name of the job template in this package; None for no job.
    preset
        Of `sqldeid init`, which writes the job instead.

    Raises
    ------
    JobError
        If something is in the way (see `check_target`), or the folder cannot be written.
    EngineError
        If the database cannot be written, for example because the disk is full.
    """
    check_target(path)
    try:
        with Workshop(path) as shop:
            made = _write_tables(shop.path / "demo.duckdb", tables)
            _put_in_place(shop.bring(shop.path / "demo.duckdb"), path, job)
    except duckdb.Error as error:
        raise EngineError(f"{path}: the demo database could not be written ({type(error).__name__})") from error
    except OSError as error:
        raise JobError(
            f"{path.parent}: cannot write here ({error.strerror}); name another folder", key="path"
        ) from error
    return Demo(path, () if job is None else (job_path(path),), made, preset=preset)


def _write_tables(file: Path, tables: Mapping[tuple[str, str], Rows]) -> tuple[DemoTable, ...]:
    # The oldest storage format: whoever is handed the demo may have an older DuckDB.
    with duckdb.connect(file, config={"storage_compatibility_version": "v1.0.0"}) as connection:
        for schema in dict.fromkeys(schema for schema, _ in tables):
            connection.execute(render("demo/create_schema", schema=identifier(schema)))
        return tuple(_write_table(connection, schema, name, rows) for (schema, name), rows in tables.items())


def _write_table(connection: duckdb.DuckDBPyConnection, schema: str, name: str, rows: Rows) -> DemoTable:
    view = f"generated_{name}"
    connection.register(view, rows)
    columns = [identifier(column) for column in rows.schema.names]
    statement = render("demo/create_table", table=table_name(schema, name), rows=table_name(view), columns=columns)
    written = connection.execute(statement).fetchall()
    connection.unregister(view)
    return DemoTable(f"{schema}.{name}", int(written[0][0]))


def _put_in_place(made: Path, path: Path, job: str | None) -> None:
    """The job file, then the database; neither where one cannot be written."""
    try:
        if job is not None:
            _write_job(path, job)
        made.rename(path)
    except BaseException:
        if job is not None and not path.exists():
            with suppress(OSError):
                job_path(path).unlink(missing_ok=True)
        raise


def _write_job(path: Path, job: str) -> None:
    template = Template(resources.files(__package__).joinpath(job).read_text(encoding="utf-8"))
    release = f"{path.stem}_release.duckdb"
    text = template.substitute(
        database=path.name, job=job_path(path).name, release=release, release_quoted=_quoted(release), notice=NOTICE
    )
    job_path(path).write_text(text, encoding="utf-8")


def _quoted(text: str) -> str:
    """A TOML basic string; control characters cannot occur (`check_target`)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
