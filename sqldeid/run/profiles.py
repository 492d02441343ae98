"""A first look at a table: a job proposed for it, and the identifiers that it may hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sqldeid.arguments import text, texts, unless_none
from sqldeid.engine.base import Engine
from sqldeid.engine.choosing import dialect_of, is_foreign, shown
from sqldeid.engine.opening import Database, is_connection, path_of
from sqldeid.engine.settings import Settings
from sqldeid.errors import JobError
from sqldeid.insight.hospital import FoundSchema, find_schema, with_empty
from sqldeid.insight.hospitalparts import part_of, part_text
from sqldeid.insight.hospitaltext import hospital_text
from sqldeid.insight.identifiers import PATTERNS, Finding
from sqldeid.insight.identifiers import safe_harbor as look
from sqldeid.insight.jobtext import job_text
from sqldeid.insight.presets import Preset, presets_of
from sqldeid.insight.profile import profile
from sqldeid.insight.proposals import propose
from sqldeid.run.calls import settings_of
from sqldeid.run.places import reading

PERSONS = "persons"
"""The part of a schema that `init` takes unasked: one row per person."""


def init(
    database: Database,
    table: str | None = None,
    *,
    settings: Settings | None = None,
    preset: str | Sequence[str] | None = None,
    part: str = PERSONS,
) -> str:
    """Profile a table and propose a job for it: commented TOML that runs as it is.

    No data value stands in it: names, rules and reasons alone. What it says of a column is a guess from its name, type,
    look and number of different values, to be read and changed by somebody who knows the data.

    Parameters
    ----------
    database
        Path of a DuckDB, CSV or Parquet file, the URL of a server, or an open connection to either. Nothing is written.
    table
        ``table`` or ``schema.table``; may be left out where the database has one table only, or has one of the schemas
        that hospitals share. With a preset of those the name of the database's schema, if one must be told.
    preset
        ``hipaa-safe-harbor``, ``cms-11`` or ``risk-0.09``: what the job begins with (`insight.presets`); ``omop54``,
        ``mimiciv``, ``mimiciii`` or ``eicu``: the schema of the whole database (`schemas`); or one of each.
    part
        Of such a schema ``persons``, ``diagnoses`` (a child table, whose job needs a key) or ``vitals`` (time series).

    Returns
    -------
    str
        The job file's text; the release goes to a new file beside the job, that of a server into a schema there.

    Raises
    ------
    JobError
        If there is no such table, preset or part, or nothing in the table that could be generalised.

    Cost: two scans of the table, one of each column, and one more of those for which shipped hierarchies are tried, and
    where no name tells a person key, of up to eight that may be one.
    From a server come counts, and the different values of these last.
    """
    table, part = unless_none(text, "table", table), text("part", part)
    begun, schema = presets_of(preset if preset is None or isinstance(preset, str) else texts("preset", preset))
    with reading(database, _beside(database), settings_of(settings), command="init") as engine:
        found = None if table and not schema else find_schema(engine, schema, table)
        if found is not None:
            return _of_schema(found, part, database, engine, begun)
        if part != PERSONS:
            raise JobError.at("part", "goes with a schema that hospitals share, and this database has none of them")
        proposed = propose(profile(table, engine, PATTERNS), engine, begun)
    name, _ = _named(database, "")
    if is_foreign(database):
        return job_text(proposed, name, None, dialect_of(database))
    stem = proposed.facts.parts[-1]
    safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in stem) or "data"
    return job_text(proposed, name, f"{safe}_release.duckdb")


def _of_schema(found: FoundSchema, part: str, database: Database, engine: Engine, begun: Preset | None) -> str:
    """The job for a whole schema, or for a part of it."""
    made = found.shared.release if part == PERSONS else part
    name, into = _named(database, f"{found.shared.name}_{made}")  # each its own: jobs of several schemas stand together
    if part == PERSONS:
        used = [found.shared.base, *(c.of for c in found.released)]
        return hospital_text(with_empty(found, used, engine), name, into, begun)
    asked = part_of(found, part)  # before the database is asked
    used = [found.shared.base, asked.table, *([asked.stays.table] if asked.stays else [])]
    used += [asked.vocabulary["table"]] if asked.vocabulary else []
    found = with_empty(found, used, engine)
    base = engine.resolve(found.tables[found.shared.base].parts, key="preset")
    persons = int(engine.row("engine/count_rows", table=base)["rows"])
    return part_text(found, part, persons, name, into, begun)


def _named(database: Database, release: str) -> tuple[str, str | None]:
    """The database as a job names it, and where the release goes."""
    if is_foreign(database):
        return (shown(database) if isinstance(database, str) else "DB"), None
    name = "DB" if is_connection(database) else Path(os.fspath(database)).name  # type: ignore[arg-type]
    return name, f"{release}_release.duckdb"


def safe_harbor(
    database: Database, table: str | None = None, *, settings: Settings | None = None
) -> tuple[Finding, ...]:
    """Say which columns of a table may hold one of the 18 kinds of identifiers of HIPAA's Safe Harbor.

    A column that is not found may still identify: the finder goes by names, types, looks and uniqueness.

    Parameters
    ----------
    database, table
        As for `init`.

    Cost: two scans of the table, and one of each column.

    Source
        45 CFR 164.514(b)(2)(i).
    """
    table = unless_none(text, "table", table)
    with reading(database, _beside(database), settings_of(settings), command="init") as engine:
        return look(table, engine)


def _beside(database: Database) -> Path | None:
    return None if is_connection(database) else path_of(database)
