"""Resolve the table of the population against the catalogue: it has the quasi-identifying columns of the release."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import columns_of
from sqldeid.catalogue.relations import resolve
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier


def population_of(
    part: jobfile.Table, columns: Sequence[QuasiIdentifier | OtherColumn], engine: Engine, key: str
) -> exp.Expr | None:
    """The population's table; None where the job names none.

    Raises
    ------
    JobError
        If it is not there, or lacks a quasi-identifying column of the source's name and type.
    """
    asked = part.privacy.population
    if asked is None:
        return None
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
    return relation
