"""Mixed levels as a model takes them: a label is the indicators of itself and of all its ancestors.

A release by local recoding shows `36` of one person and `30-39` of another, and both are in their thirties. If each
label were a category of its own, a model would learn nothing of the first from the second. So a released label says
that it holds and that each of its ancestors does; what is finer than it stays unsaid. A test row as it was says all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.hierarchy import Hierarchy
from sqldeid.hierarchy.model import Labels
from sqldeid.insight.utility_model import Features, Implied
from sqldeid.insight.utility_rows import Columns
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.bind import bind


def with_ancestors(released: Features, plan: TablePlan, columns: Columns, engine: Engine) -> Features:
    """The released rows with what each label implies. Cost: one scan of the training part for each column.

    A text that is a label of several levels is taken for the most general one: no more is sure.
    """
    values, implied = list(released.columns), {}
    for i, q, hierarchy in _bound(plan, columns, engine):
        values[i] = _keyed(released.columns[i])
        implied[q.name] = _of_labels(q, hierarchy)
    return replace(released, columns=tuple(values), implied=implied)


def with_all_ancestors(made: Features, rows: pa.Table, plan: TablePlan, columns: Columns, engine: Engine) -> Features:
    """Rows as they were, `made` from `rows` of `read_originals`, each value with all its ancestors.

    Raises
    ------
    HierarchyError
        If a hierarchy does not cover the values of the part that the rows are of.
    """
    values, implied = list(made.columns), {}
    for i, q, hierarchy in _bound(plan, columns, engine):
        shown = [_texts(q, hierarchy, level)[hierarchy.groups[level]] for level in range(hierarchy.height)]
        places = pc.index_in(rows.column(f"c{i}").combine_chunks(), value_set=hierarchy.values)
        values[i] = pa.array(shown[0][hierarchy.leaf], pa.string()).take(places)
        implied[q.name] = {texts[0]: tuple(dict.fromkeys(texts)) for texts in zip(*shown, strict=True)}
    return replace(made, columns=tuple(values), implied=implied)


def _bound(plan: TablePlan, columns: Columns, engine: Engine) -> list[tuple[int, QuasiIdentifier, Hierarchy]]:
    """Place among the features, column and hierarchy of each quasi-identifying feature."""
    numbers = {q.name: number for number, q in enumerate(plan.qis)}
    return [
        (i, c, bind(plan, numbers[c.name], engine, plan.source).hierarchy)
        for i, c in enumerate(columns)
        if not isinstance(c, OtherColumn)
    ]


def _of_labels(q: QuasiIdentifier, hierarchy: Hierarchy) -> Implied:
    """By label, itself and the labels above it."""
    found: dict[str, tuple[str, ...]] = {}
    shown = [_texts(q, hierarchy, level) for level in range(hierarchy.height)]
    for level, texts in enumerate(shown):
        leaf = _any_leaf(hierarchy.groups[level], len(texts))
        above = [shown[x][hierarchy.groups[x][leaf]] for x in range(level, hierarchy.height)]
        found |= {own[0]: tuple(dict.fromkeys(own)) for own in zip(*above, strict=True)}
    return found


def _any_leaf(groups: Ints, count: int) -> Ints:
    """A leaf of each group."""
    leaf = np.zeros(count, dtype=np.int64)
    leaf[groups] = np.arange(len(groups))
    return leaf


def _texts(q: QuasiIdentifier, hierarchy: Hierarchy, level: int) -> Labels:
    """The labels of a level as they are told apart here."""
    texts = [_key(None if label is None else str(label)) for label in q.labels(hierarchy, level).tolist()]
    return np.array(texts, dtype=object)


def _key(label: str | None) -> str:
    """A label that no other is mistaken for, NULL among them."""
    return "" if label is None else f"={label}"


def _keyed(labels: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_join_element_wise("=", labels, ""), "")
