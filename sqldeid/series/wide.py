"""A wide table of measurements, one column a variable, read as a long one: in SQL, and without a copy of it."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from sqldeid.catalogue.columns import columns_of, finder
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.series.plan import NUMERIC
from sqldeid.series.variables import Item, VariableMap
from sqldeid.sql import column, identifier, literal, render

_NAMES = ("variable", "value", "number")


def unpivoted(
    relation: exp.Expr, wide: Mapping[str, str], person: Column, time: Column, engine: Engine, key: str
) -> tuple[exp.Expr, Column, Column]:
    """The relation with a row for each row and variable, and its columns of variables and of values.

    Parameters
    ----------
    wide
        The variable, or item of the map, that each column holds.

    Raises
    ------
    JobError
        If a column is not there, is named twice, or holds no numbers.
    """
    find = finder(columns_of(relation, engine, key), "the wide table")
    columns = [find(name, f"{key}.wide") for name in wide]
    for name, found in zip(wide, columns, strict=True):
        if found.kind not in NUMERIC:
            raise JobError.at(
                f"{key}.wide.{name}", f"is of type {found.shown_type}, not a number; cast it in a source query"
            )
        if columns.count(found) > 1:
            raise JobError.at(f"{key}.wide.{name}", "is a column that is named twice, in other letters; remove one")
    variable, value, number = _unlike(person.name, time.name)
    text = render(
        "series/unpivot_wide",
        source=relation,
        person=column(person.name, "s"),
        person_name=identifier(person.name),
        time=column(time.name, "s"),
        time_name=identifier(time.name),
        measured=[
            {"number": literal(place), "item": literal(item), "value": column(c.name, "s")}
            for place, (item, c) in enumerate(zip(wide.values(), columns, strict=True))
        ],
        number=identifier(number),
        variable=identifier(variable),
        value=identifier(value),
    )
    source = exp.Subquery(this=sqlglot.parse_one(text, read="duckdb"))
    there = {c.name.casefold(): c for c in engine.columns(source, key=f"{key}.wide")}
    return source, there[variable], there[value]


def named(wide: Mapping[str, str]) -> VariableMap:
    """The variables where the job has no map: those of the columns, in the order of a long table's values."""
    names = tuple(sorted(wide.values()))
    return VariableMap(names, tuple(Item(name, name, 0) for name in names), {}, {})


def _unlike(person: str, time: str) -> list[str]:
    """Names for what is made, that neither person nor time has."""
    taken, made = {person.casefold(), time.casefold()}, []
    for name in _NAMES:
        while name in taken:
            name = f"{name}_"
        made.append(name)
    return made
