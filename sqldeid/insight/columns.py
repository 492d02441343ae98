"""A column's distinct values, for a look at its hierarchy before any job is written."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.catalogue.columns import no_column
from sqldeid.catalogue.relations import parts_of
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, render
from sqldeid.tables.plan.plan import travel_type


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """What a hierarchy is bound to.

    Parameters
    ----------
    values
        The distinct values in their order, texts by their bytes, NULL last; at most one of them is.
    numeric
        Whether they are exact numbers that travel as text.
    """

    values: pa.Array
    numeric: bool


def read_values(table: str, name: str, engine: Engine) -> ColumnValues:
    """Read the distinct values of a column. Cost: one scan of the column.

    Parameters
    ----------
    table
        As a job's ``source`` names it: ``table`` or ``schema.table``.
    name
        The column; case does not matter.

    Raises
    ------
    JobError
        If there is no such table or column, or its type has no hierarchies.
    """
    relation = engine.resolve(parts_of(table, engine, "--table"), key="--table")
    there = {c.name.casefold(): c for c in engine.columns(relation, key="--table")}
    found = there.get(name.casefold())
    if found is None:
        raise JobError(no_column(list(there.values()), table, name, "--column").message, key="column")
    if found.kind == "other":
        raise JobError(f"--column: a column of type {found.shown_type} cannot have a hierarchy", key="column")
    statement = render(
        "insight/list_values", column=column(found.name, "s"), type=travel_type(found.kind), source=relation
    )
    values = engine.query(statement).column("value").combine_chunks()
    if found.type == "VARCHAR":  # which Postgres sorts by a collation
        values = values.take(pc.sort_indices(values))
    return ColumnValues(values, found.kind == "number")
