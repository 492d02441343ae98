"""The tables of a ledger file."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.engine.private import CATALOG
from sqldeid.sql import identifier, table_name


def _columns(**types: str) -> list[dict[str, Any]]:
    """What makes a table: each column's name and type, and `stored`, what DuckDB calls that type."""
    return [
        {"name": identifier(n), "type": exp.DataType.build(t, dialect="duckdb"), "stored": t} for n, t in types.items()
    ]


TABLES = {
    "facts": _columns(name="VARCHAR", value="VARCHAR"),
    "releases": _columns(
        release="INTEGER",
        name="VARCHAR",
        kind="VARCHAR",
        job_sha256="VARCHAR",
        k="BIGINT",
        criteria="VARCHAR",
        epsilon="DOUBLE",
        delta="DOUBLE",
        mark="VARCHAR",
    ),
    "people": _columns(number="BIGINT", person="VARCHAR", cell="BIGINT"),
    "cells": _columns(cell="BIGINT", parent="BIGINT", born="INTEGER", k="BIGINT"),
    "stays": _columns(release="INTEGER", cell="BIGINT", **{"class": "BIGINT"}),
    "contents": _columns(number="BIGINT", field="VARCHAR", value="BIGINT", since="INTEGER"),
    "marginals": _columns(release="INTEGER", field="VARCHAR", value="BIGINT", n="BIGINT", place="BIGINT"),
    "budgets": _columns(person="VARCHAR", epsilon="DOUBLE", delta="DOUBLE"),
    "groups": _columns(release="INTEGER", **{"class": "BIGINT"}, family="BIGINT", length="BIGINT", variables="VARCHAR"),
    "levels": _columns(release="INTEGER", **{"class": "BIGINT"}, field="VARCHAR", level="INTEGER"),
}
"""facts: version, key check, name of the person key, types of it and of columns, rows of each table · people: keyed
hash of each person ever released, and the cell · cells: the cell that each was torn from, and when · stays: the class
(its number in the release) in which a cell was released; no row where it was not · contents: keyed hash of each value
released beside the class, and the release that told it first · releases: mark is what the note on a release bears,
too · groups: of series the feature class (family), length and variables of each class in which a cell was released ·
levels: of tables by local recoding the level of each quasi-identifying column (`field`) that each class was released
at."""

LATER = ("groups", "levels")
"""Tables that ledgers of earlier versions lack, and that are made where they are missing."""


def table_of(name: str) -> exp.Table:
    """A table of the ledger."""
    return table_name(CATALOG, "main", name)


def read_facts(engine: Engine) -> dict[str, str]:
    """What the ledger says of itself."""
    rows = engine.rows("ledger/read_ledger", table=table_of("facts"))
    return {row["name"]: row["value"] for row in rows}


def read_through(engine: Engine) -> None:
    """Read every value once, so that damage is found before anything rests on what is undamaged.

    Raises
    ------
    SqldeidError
        If a part of the file cannot be read.
    """
    there = {r.parts[-1] for r in engine.relations() if not r.is_view}
    if held := [table_of(name) for name in TABLES if name in there]:
        engine.ask("ledger/read_through", tables=held)
