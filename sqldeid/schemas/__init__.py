"""Schemas that many hospitals share, as data: each table, each column with its type, and what is decided of it.

The files beside this module are written from the schemas' public documentation: names and types are facts, the
decisions and their reasons are ours. Generators (`demo`) take names and types from here, `init --preset` the decisions.

Source
    OMOP CDM 5.4, field-level specification; MIMIC-III 1.4 and MIMIC-IV 3, table pages; eICU-CRD 2.0, table pages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

SCHEMAS = ("omop54", "mimiciv", "mimiciii", "eicu")
"""Names of the schemas, as `--preset` has them."""

PARTS = ("diagnoses", "vitals")
"""Names of the parts that schemas have, as `--part` has them."""

TYPES = {"i": "INTEGER", "b": "BIGINT", "s": "VARCHAR", "d": "DATE", "t": "TIMESTAMP", "f": "DOUBLE"}
"""Types of columns by the letter that the files use."""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column of a shared schema.

    Parameters
    ----------
    type
        As DuckDB names it; the databases of hospitals may have another.
    decision
        ``identifying``, ``free-text``, ``quasi-identifying``, ``sensitive`` or ``dropped``.
    why
        The reason, in words.
    """

    name: str
    type: str
    decision: str
    why: str


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """A table of a shared schema; `why` says what becomes of it in a release."""

    name: str
    schema: str
    why: str
    columns: tuple[SchemaColumn, ...]


@dataclass(frozen=True, slots=True)
class First:
    """A table of which each person (or whatever `on` is the key of) gives one row: the first by `order`."""

    on: str
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """A column of the release of persons.

    Parameters
    ----------
    of
        The table that it is read from.
    column
        The column there.
    there
        Whether it says only that there is such a row: 1 or 0.
    age_at
        Table and column of the moment at which the age is told, in calendar years, if `column` is a birth; None else.
    keys
        What the job says beside the role: hierarchy, top code and the like.
    """

    name: str
    of: str
    column: str
    there: bool = False
    age_at: tuple[str, str] | None = None
    keys: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stays:
    """The table through which rows are a person's; with `order` those of the person's first row there alone."""

    table: str
    on: str
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A part of a schema that is released by a job of its own: a child table, or time series.

    Parameters
    ----------
    table
        The table of many rows per person.
    stays
        How its rows are a person's, if it has no person key or only the first stay's rows are meant.
    item
        Of a child table the column of the items; None of series.
    first_of
        What separates several codes in one text, of which the first is the item; or empty.
    vocabulary
        Table and columns (``table``, ``child``, ``parent``, ``separation``) of which the items' hierarchy is made.
    persons
        Of a child table the parent's columns, those of the schema's release, with what the job says of each.
    time, variable, value, wide
        Columns of series; of a wide table the variable by its column.
    keys
        What the job says besides: of a child table's items, or of the series.
    """

    name: str
    table: str
    stays: Stays | None
    item: str | None
    first_of: str
    vocabulary: Mapping[str, str]
    persons: Mapping[str, Mapping[str, object]]
    time: str | None
    variable: str | None
    value: str | None
    wide: Mapping[str, str]
    keys: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """A schema that many hospitals have.

    Parameters
    ----------
    release
        Name of the release of persons.
    base
        The table that has each person at least once.
    person
        The person key there.
    order
        What makes one of a person's rows of `base` the first.
    first
        Tables that are joined to it, by name.
    parts
        What is released by jobs of their own, by name.
    """

    name: str
    title: str
    tables: Mapping[str, SchemaTable]
    release: str
    base: str
    person: str
    order: tuple[str, ...]
    first: Mapping[str, First]
    columns: tuple[Released, ...]
    parts: Mapping[str, SchemaPart]

    def decision(self, released: Released) -> SchemaColumn:
        """What is decided of the column that a column of the release is made of; deaths and the like are sensitive."""
        found = next(c for c in self.tables[released.of].columns if c.name == released.column)
        if not released.there:
            return found
        return SchemaColumn(released.name, "INTEGER", "sensitive", f"whether table {released.of} has a row")


@cache
def shared_schema(name: str) -> SharedSchema:
    """The shared schema of that name, one of `SCHEMAS`."""
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    tables = {t: _table(t, raw["schemas"], told, raw["decisions"]) for t, told in raw["tables"].items()}
    release = raw["release"]
    first = {t: First(f["on"], tuple(f["order"])) for t, f in release.get("first", {}).items()}
    return SharedSchema(
        name=name,
        title=raw["title"],
        tables=tables,
        release=release["name"],
        base=release["base"],
        person=release["person"],
        order=tuple(release["order"]),
        first=first,
        columns=tuple(_released(n, c) for n, c in release["columns"].items()),
        parts={name: _part(name, told) for name, told in raw.get("parts", {}).items()},
    )


def _table(
    name: str, schemas: Mapping[str, str], told: Mapping[str, str], decisions: Mapping[str, Sequence[str]]
) -> SchemaTable:
    columns = []
    for word in told["columns"].split():
        column, kind, code = word.split(":")
        decision, why = decisions[code]
        columns.append(SchemaColumn(column, TYPES[kind], decision, why))
    return SchemaTable(name, schemas.get(name, schemas[""]), told["why"], tuple(columns))


def _released(name: str, told: Mapping[str, object]) -> Released:
    keys = {k: v for k, v in told.items() if k not in ("of", "column", "there", "age_at")}
    at = told.get("age_at")
    return Released(
        name=name,
        of=str(told["of"]),
        column=str(told.get("there") or told.get("column") or name),
        there="there" in told,
        age_at=(str(at[0]), str(at[1])) if isinstance(at, list) else None,
        keys=keys,
    )


def _part(name: str, told: Mapping[str, Any]) -> SchemaPart:
    stays = told.get("stays")
    return SchemaPart(
        name=name,
        table=told["table"],
        stays=None if stays is None else Stays(stays["table"], stays["on"], tuple(stays.get("order", ()))),
        item=told.get("item"),
        first_of=told.get("first_of", ""),
        vocabulary=told.get("vocabulary", {}),
        persons=told.get("persons", {}),
        time=told.get("time"),
        variable=told.get("variable"),
        value=told.get("value"),
        wide=told.get("wide", {}),
        keys=told["keys"],
    )
