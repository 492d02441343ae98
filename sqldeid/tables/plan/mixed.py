"""Columns of codes of several versions, each told by another column (`version = "icd_version"`): joined to one value.

The source becomes a query that adds a column with each row's version and code, `9:4280`. All that is done with the
column, and its re-check, goes by that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import sqlglot
from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import Find, columns_of
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.hierarchy import open_source
from sqldeid.hierarchy.versions import reads_versions
from sqldeid.sql import column, identifier, render

_VERSIONS = ("integer", "number", "text")


def with_versions(
    relation: exp.Expr, part: jobfile.Table, find: Find, engine: Engine, folder: Path, key: str
) -> tuple[exp.Expr, Mapping[str, Column]]:
    """The source with a column more for each of codes of several versions; and that column, by the name in the job.

    Parameters
    ----------
    find
        Finds columns of the source, without those of stacks.

    Raises
    ------
    JobError
        If a column is not there, or the codes are no text.
    """
    made: dict[str, tuple[Column, Column]] = {}
    for name, asked in part.columns.items():
        if asked.version is None or not isinstance(asked.hierarchy, str):
            continue
        at = f"{key}.columns.{name}"
        if _reads(asked.hierarchy, folder):
            codes, version = find(name, at), find(asked.version, f"{at}.version")
            for where, c, kinds in ((at, codes, ("text",)), (f"{at}.version", version, _VERSIONS)):
                if c.kind not in kinds:
                    raise JobError.at(
                        where,
                        f"{c.name} is of type {c.shown_type}, not {' or '.join(kinds)}; cast it in a source query",
                    )
            made[name] = codes, version
    if not made:
        return relation, {}
    there = {c.name.casefold() for c in columns_of(relation, engine, f"{key}.source")}
    names = {name: _unlike(f"{version.name}:{codes.name}", there) for name, (codes, version) in made.items()}
    text = render(
        "tables/plan/add_versions",
        source=relation,
        joined=[
            {"version": column(version.name, "s"), "codes": column(codes.name, "s"), "name": identifier(names[name])}
            for name, (codes, version) in made.items()
        ],
    )
    found = exp.Subquery(this=sqlglot.parse_one(text, read="duckdb"))
    added = {c.name: c for c in columns_of(found, engine, f"{key}.source")}

    return found, {name: added[own] for name, own in names.items()}


def _reads(spec: str, folder: Path) -> bool:
    try:
        return reads_versions(open_source(spec, folder))
    except JobError:  # which is told with its key where the column is planned
        return False


def _unlike(name: str, there: set[str]) -> str:
    while name.casefold() in there:
        name += "_"
    there.add(name.casefold())
    return name
