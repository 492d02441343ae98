"""Resolve the population against the catalogue: a table with the quasi-identifying columns, or the source unfiltered.

Guarantee
    Of the source unfiltered: what k-map says of the persons of the source, each of whom has one row in it.
Assumes
    That nobody can tell whom the filter leaves out. Who knows the filter and what strangers know of a person could,
    where it looks at quasi-identifying or identifying columns: such a filter is refused. That another column says what
    these say (a date of birth, an age group) is seen only where the filter keeps all persons or none of each
    combination of quasi-identifying values, or nobody of so many of them, or of a column's values on a level, that
    chance does not explain it (`sqldeid.tables.fold.population`).
Does not protect
    Against who knows what else the filter looks at, such as who has the illness that it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import Find, columns_of
from sqldeid.catalogue.relations import resolve
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, parse_expression
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier


def weight_of(part: jobfile.Table, find: Find, key: str) -> exp.Column | None:
    """The column of a survey's weights; None where the job names none.

    Raises
    ------
    JobError
        If it is not there, or does not hold whole numbers.
    """
    asked = part.privacy.population
    if asked is None or asked.weights is None:
        return None
    where = f"{key}.privacy.population.weights"
    found = find(asked.weights, where)
    if found.kind != "integer":
        raise JobError.at(
            where,
            f"{found.name} is of type {found.shown_type}; weights are whole numbers, whose sums are exact: round them "
            "down in a source query, which errs towards fewer persons",
        )
    return column(found.name, "s")


def population_of(
    part: jobfile.Table,
    rows: exp.Expr,
    columns: Sequence[QuasiIdentifier | OtherColumn],
    engine: Engine,
    key: str,
) -> tuple[exp.Expr | None, bool]:
    """The population's table, and whether it has the person key; None where the job names none.

    By weights it is the source, whose rows stand for it, and whose persons are checked as they are.

    Raises
    ------
    JobError
        If it is not there, or lacks a quasi-identifying column of the source's name and type.
    """
    asked = part.privacy.population
    if asked is None or asked.size is not None:
        return None, False
    if asked.weights is not None:
        return rows, False
    if asked.table is None:
        return _rest(part, columns, engine, key), True
    where = f"{key}.privacy.population.table"
    relation, label = resolve(asked.table, engine, where)
    types = {c.name: c.type for c in columns_of(relation, engine, where)}
    for source in (c.source for c in columns if isinstance(c, QuasiIdentifier)):
        if types.get(source.name) != source.type:
            there = "is not there" if source.name not in types else "is of another type"
            raise JobError.at(
                where,
                f"{label}.{source.name} {there}; the population has the quasi-identifying columns of the source, spelt "
                f"alike and of the same types ({source.name}: {source.shown_type})",
            )
    return relation, part.person in types


def _rest(part: jobfile.Table, columns: Sequence[QuasiIdentifier | OtherColumn], engine: Engine, key: str) -> exp.Expr:
    """The source without its filter, which must not look at quasi-identifying columns."""
    where = f"{key}.privacy.population.rest"
    relation, _ = resolve(part.source, engine, f"{key}.source")
    there = {c.name.casefold(): c for c in columns_of(relation, engine, where)}
    if part.where is None:  # a sample by the key, which looks at nobody
        return relation
    condition = parse_expression(part.where, key=f"{key}.where")
    looked_at = {c.name.casefold() for c in condition.find_all(exp.Column)}
    if condition.find(exp.Query, exp.Star, exp.Columns) or not looked_at <= there.keys():
        raise JobError.at(where, "goes with a where that looks at named columns of the source alone; simplify it")
    known = {c.source.name.casefold() for c in columns if isinstance(c, QuasiIdentifier) or c.role == "identifying"}
    known |= {part.person.casefold()} if part.person is not None else set()
    for name in sorted(looked_at):
        if name in known:
            raise JobError.at(
                where,
                f"does not go with a where that looks at {there[name].name}: who knows the filter leaves out of the "
                "population whom it leaves out, by a value that strangers know; filter by another column, draw a "
                "sample, or name a table of those who may be in the release",
            )
        if there[name].kind == "other":
            raise JobError.at(
                where,
                f"does not go with a where that looks at {there[name].name}, which is of type "
                f"{there[name].shown_type} and may hold what strangers know; filter by a column of one value",
            )
    return relation
