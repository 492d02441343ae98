"""Groups of objects (sex, age group) for `laplace`: values that the job lists, and a rest for whoever has none of them.

An object's group is that of its first event that is looked at, so its own rows alone say it, and it has exactly one.
Groups are numbered over all combinations of the values, the last column's running fastest; the rest comes after.

Source: Shaked & Rokach 2016, §6 (attributes of patients, as future work); events.md, *laplace*.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pyarrow as pa
from sqlglot import exp

from sqldeid.events.domain import Domain
from sqldeid.sql import literal

GROUP = "group_number"
"""The column of placed events, and of what is made, that holds a group's number."""


def number_of(domain: Domain, columns: Sequence[exp.Expr]) -> exp.Expr:
    """The group of a row from its columns as text; the rest where one of them has no value of the list, or NULL."""
    number: exp.Expr = literal(0)
    for (_, values), found in zip(domain.groups, columns, strict=True):
        place = exp.Case()
        for at, value in enumerate(values):
            place = place.when(exp.EQ(this=found.copy(), expression=literal(value)), literal(at))
        number = exp.Add(this=exp.Mul(this=exp.Paren(this=number), expression=literal(len(values))), expression=place)
    rest = exp.Coalesce(this=number, expressions=[literal(domain.group_count)])
    return exp.cast(rest, exp.DataType.build("bigint", dialect="duckdb"))


def combinations(domain: Domain) -> list[tuple[str | None, ...]]:
    """The values of every group by its number; the rest, last, has none."""
    found: list[tuple[str | None, ...]] = list(product(*(values for _, values in domain.groups)))
    return [*found, (None,) * len(domain.groups)]


def value_of(domain: Domain, at: int, number: exp.Expr) -> exp.Expr:
    """The value that a group's number stands for, in the column at this place of the groups; NULL of the rest."""
    groups = combinations(domain)[:-1]
    shown = exp.Case()
    for value in domain.groups[at][1]:
        mine = [literal(n) for n, values in enumerate(groups) if values[at] == value]
        shown = shown.when(exp.In(this=number.copy(), expressions=mine), literal(value))
    return exp.cast(shown, exp.DataType.build("varchar", dialect="duckdb"))


def listed(domain: Domain) -> pa.Table:
    """All groups with the rest, in columns g0, g1 and so on."""
    columns = list(zip(*combinations(domain), strict=True))
    return pa.table({f"g{i}": pa.array(values, pa.string()) for i, values in enumerate(columns)})
