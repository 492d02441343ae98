"""Columns of a table or query, found by the names that a job gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.sql.names import identifier, literal, refuse_same_names

Find = Callable[[str, str], Column]
"""From a column's name, and the key that names it, to the column."""

_UNNAMED = re.compile(r"column\d+")
"""What DuckDB calls the columns of a file of text without a header."""

SHOWN = 12
"""A message lists so many columns; wide tables have hundreds."""


def columns_of(relation: exp.Expr, engine: Engine, key: str) -> tuple[Column, ...]:
    """The columns of a relation.

    Raises
    ------
    JobError
        If two of them differ by upper and lower case at most.
    """
    there = engine.columns(relation, key=key)
    refuse_same_names((c.name for c in there), what=key, key=key)
    return there


def finder(there: Sequence[Column], label: str) -> Find:
    """Find a column by name, upper and lower case alike; `label` is what messages call the table."""
    by_name = {c.name.casefold(): c for c in there}

    def find(name: str, key: str) -> Column:
        found = by_name.get(name.casefold())
        if found is None:
            raise no_column(there, label, name, key)
        return found

    return find


def refuse_two_spellings(relation: exp.Expr, person: Column, engine: Engine, key: str) -> None:
    """Refuse a person key whose collation holds two spellings equal, where persons are compared by their bytes.

    Whoever has two spellings would count for two. DuckDB compares them by the collation everywhere.

    Raises
    ------
    JobError
        If that column has such a collation.
    """
    if engine.spells_alike(relation, person):
        name = identifier(person.name).sql(dialect="postgres")
        raise JobError.at(
            key,
            f"{person.name} has a collation that takes two spellings for one value, and here each would be a person: "
            f'read a view with UPPER({name}) COLLATE "C" AS {name}, or without UPPER where no person is spelt in two '
            "ways",
        )


def with_one_zero(value: exp.Expr, source: Column) -> exp.Expr:
    """A value of a column, as it is compared: 0.0 and -0.0 of a float are one value."""
    if source.kind != "float":
        return value
    zero = exp.cast(literal(0), exp.DataType.build(source.type, dialect="duckdb"))
    return exp.Paren(this=exp.Add(this=value, expression=zero))


def with_one_nan(value: exp.Expr, source: Column) -> exp.Expr:
    """A value of a column, as it leaves: a float with one zero and one NaN, whose sign no comparison of values sees."""
    if source.kind != "float":
        return value
    nan = exp.cast(literal("NaN"), exp.DataType.build(source.type, dialect="duckdb"))
    is_nan = exp.If(this=exp.EQ(this=value, expression=nan), true=nan.copy())
    return exp.Paren(this=exp.Case(ifs=[is_nan], default=with_one_zero(value.copy(), source)))


def no_column(there: Sequence[Column], label: str, name: str, key: str) -> JobError:
    """The error that says which columns there are instead, unless their names may be values."""
    if not all(c.named for c in there):
        return JobError.at(
            key,
            f'{label} has no column "{name}"; nothing tells whether the first line of the file is a header or a row of '
            "data, so it is not shown here: where it is data, write the names of the columns above it",
        )
    shown = ", ".join(c.name for c in there[:SHOWN]) + (" …" if len(there) > SHOWN else "")
    return JobError.at(key, f'{label} has no column "{name}"; it has {shown}{_of_a_header([c.name for c in there])}')


def _of_a_header(names: Sequence[str]) -> str:
    """What such names tell of the first line of a CSV file; empty where it is nothing."""
    if all(_UNNAMED.fullmatch(name) for name in names):
        return ". Where this is a CSV file, its first line is no header: write the names of the columns there"
    known = {name.casefold() for name in names}
    again = [name for name in names if name.endswith("_1") and name[:-2].casefold() in known]
    if not again:
        return ""
    return f". In a CSV file {again[0]} is the second column that the header calls {again[0][:-2]}: rename one"
