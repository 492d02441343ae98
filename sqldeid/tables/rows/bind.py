"""Hierarchies bound to the values that the source holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import HierarchyError, UncoveredError
from sqldeid.hierarchy import Hierarchy, UncoveredValues
from sqldeid.hierarchy.header import refuse_header
from sqldeid.hierarchy.versions import refuse_versions
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan


@dataclass(frozen=True, slots=True)
class Bound:
    """A hierarchy with its leaves, and the rows of each of the column's distinct values.

    Parameters
    ----------
    rows
        Rows per distinct value; shape (distinct values,).
    """

    hierarchy: Hierarchy
    rows: Ints


def bind(plan: TablePlan, index: int, engine: Engine, source: exp.Expr) -> Bound:
    """Read the distinct values of a quasi-identifier and find each in its hierarchy. Cost: one scan of the column.

    Raises
    ------
    HierarchyError
        If the hierarchy does not cover them, or does not fit the column's type.
    """
    qi = plan.qis[index]
    values = engine.make(
        "tables/rows/count_values", f"{plan.name}_values_{index}", column=qi.column, type=qi.travel_type, source=source
    )
    read = engine.ask("tables/rows/read_values", values=values)
    n: Ints = read.column("n").to_numpy().astype(np.int64)
    distinct = read.column("value").combine_chunks()
    if plan.population is not None:
        from sqldeid.tables.rows.population import join_values

        values = engine.make(
            "tables/rows/count_values",
            f"{plan.name}_population_values_{index}",
            column=qi.column,
            type=qi.travel_type,
            source=plan.population,
        )
        there = engine.ask("tables/rows/read_values", values=values).column("value").combine_chunks()
        joined = join_values(distinct, n, there)
        distinct, n = joined.values, joined.n
    return Bound(cover(plan, index, distinct, n), n)


def cover(plan: TablePlan, index: int, distinct: pa.Array, n: Ints) -> Hierarchy:
    """The hierarchy of a quasi-identifier with its distinct values, of which there are n rows each.

    Raises
    ------
    HierarchyError
        If the hierarchy does not cover them, does not fit the column's type, or is a file with a header line.
    """
    qi, numeric = plan.qis[index], plan.qis[index].source.kind == "number"
    try:
        refuse_header(qi.hierarchy, None if plan.sampled else distinct, numeric=numeric, called=qi.source.name)
        if not plan.sampled:
            refuse_versions(qi.hierarchy, distinct, n)
        return qi.hierarchy.bind(distinct, numeric=numeric, uncovered=qi.uncovered)
    except UncoveredValues as error:
        _refuse_uncovered(plan, qi, error, n)
    except HierarchyError as error:
        key = f"{plan.key}.columns.{qi.name}"
        raise HierarchyError.at(key, error.message) from None


def _refuse_uncovered(plan: TablePlan, qi: QuasiIdentifier, error: UncoveredValues, n: Ints) -> NoReturn:
    from sqldeid.hierarchy.mending import mending

    key = f"{plan.key}.columns.{qi.name}"
    rows = int(n[np.asarray(error.indices, dtype=np.int64)].sum())
    count = len(error.indices)
    refused = UncoveredError.at(
        key,
        f"hierarchy {qi.hierarchy.name} does not cover {count} {'value' if count == 1 else 'values'} of "
        f"{plan.source_label}.{qi.source.name} ({rows} {'row' if rows == 1 else 'rows'}). "
        f"{mending(qi.hierarchy, count, qi.uncovered, qi.source.name, text=qi.source.kind == 'text')}.",
    )
    refused.release, refused.column = plan.name, qi.name
    raise refused from None
