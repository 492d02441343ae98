"""Source → coded classes: distinct values, prefix codes, and one GROUP BY over the table.

Source: search.md §1. Cost: one scan of a column for each quasi-identifier, one scan of the table for the fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import HierarchyError, JobError
from sqldeid.hierarchy import Hierarchy, UncoveredValues
from sqldeid.sql import identifier, render
from sqldeid.tables.coding import Coding, Field, pack
from sqldeid.tables.evaluation import Marginal
from sqldeid.tables.plan import QuasiIdentifier, TablePlan

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coded:
    """One quasi-identifier, bound to the data.

    Parameters
    ----------
    hierarchy
        With all its leaves.
    codes
        Prefix code of every leaf, shifted to its place in the word; shape (leaves,).
    table
        original → code, for the values that are there.
    null_code
        Code of NULL, where the column has NULLs.
    """

    qi: QuasiIdentifier
    hierarchy: Hierarchy
    codes: Whole
    field: Field
    table: exp.Table
    null_code: int | None
    marginal: Marginal

    def prefixes(self, level: int) -> Whole:
        """The code prefix of every group of `level`, in the order of `hierarchy.labels[level]`; shape (groups,)."""
        groups = self.hierarchy.groups[level]
        first = np.zeros(len(self.hierarchy.labels[level]), dtype=np.int64)
        first[groups] = np.arange(len(groups))
        return self.codes[first] & np.int64(self.field.mask(level))


@dataclass(frozen=True, slots=True)
class Folded:
    """The source as its distinct combinations of quasi-identifying values.

    Parameters
    ----------
    source
        What later statements read: the plan's source, or the kept rows of its query.
    rows
        Rows of the source, after its filter.
    table
        Words and `n`, one row per combination; `size` rows.
    """

    source: exp.Expr
    rows: int
    table: exp.Table
    size: int
    coding: Coding
    columns: tuple[Coded, ...]

    @property
    def words(self) -> tuple[exp.Identifier, ...]:
        """The words' names."""
        return word_names(self.coding)


def word_names(coding: Coding) -> tuple[exp.Identifier, ...]:
    """w0, w1, …"""
    return tuple(identifier(f"w{i}") for i in range(coding.words))


def fold(plan: TablePlan, engine: Engine) -> Folded:
    """Check the source's persons, bind every hierarchy to the values that are there, and fold.

    Raises
    ------
    JobError
        If the source is empty, smaller than k, or its person key is NULL or not unique.
    HierarchyError
        If a hierarchy does not cover the values of its column.
    """
    source = keep(plan, engine)
    rows = count_persons(plan, engine, source)
    if plan.part.privacy.k > rows:
        raise JobError(
            f"{plan.key}.privacy.k: k is {plan.part.privacy.k}, but {plan.source_label} has only {rows} rows",
            key=f"{plan.key}.privacy.k",
        )
    counted = [_count(plan, i, engine, source) for i in range(len(plan.qis))]
    leaf_codes = [h.codes() for h, _, _ in counted]
    coding = pack([bits for _, bits in leaf_codes])
    columns = tuple(
        _code(plan, i, engine, h, values, n, leaf_codes[i][0], coding.fields[i])
        for i, (h, values, n) in enumerate(counted)
    )
    classes = engine.workbench(f"{plan.name}_classes")
    engine.execute(render("tables/fold_classes", classes=classes, source=source, words=_words(coding, columns)))
    size = _total(plan, engine, classes, coding, rows)
    return Folded(source, rows, classes, size, coding, columns)


def keep(plan: TablePlan, engine: Engine) -> exp.Expr:
    """The relation that statements read; a query's rows are kept first, so that its joins run once."""
    if not plan.joined:
        return plan.source
    kept = engine.workbench(f"{plan.name}_source")
    names = dict.fromkeys(c.source.name for c in plan.released)
    if plan.person is not None:
        names.setdefault(plan.person)
    columns = [identifier(n) for n in names]
    engine.execute(render("tables/keep_source", kept=kept, columns=columns, source=plan.source))
    return kept


def count_persons(plan: TablePlan, engine: Engine, source: exp.Expr) -> int:
    """Rows of the source; the person key must be there on each, and on no two."""
    row = engine.query(render("tables/check_person", source=source, person=plan.person_column)).to_pylist()[0]
    rows, keyed, persons = int(row["rows"]), int(row["keyed"]), int(row["persons"])
    key = f"{plan.key}.person"
    if rows == 0:
        raise JobError(f"{plan.key}: {plan.source_label} has no rows (after `where`); there is nothing to release")
    if keyed < rows:
        raise JobError(f"{key}: {plan.person} is NULL in {rows - keyed} rows of {plan.source_label}", key=key)
    if plan.person is not None and persons < rows:
        raise JobError(
            f"{key}: {plan.source_label} has {rows} rows but {persons} values of {plan.person}; "
            "k counts persons, so give one row per person (a query that picks one)",
            key=key,
        )
    return rows


def _count(plan: TablePlan, index: int, engine: Engine, source: exp.Expr) -> tuple[Hierarchy, exp.Table, Whole]:
    qi = plan.qis[index]
    values = engine.workbench(f"{plan.name}_values_{index}")
    engine.execute(
        render("tables/count_values", values=values, column=qi.column, type=qi.travel_type, source=source)
    )
    read = engine.query(render("tables/read_values", values=values))
    n: Whole = read.column("n").to_numpy().astype(np.int64)
    distinct = read.column("value").combine_chunks()
    if isinstance(distinct, pa.ChunkedArray):
        distinct = pa.concat_arrays(distinct.chunks) if distinct.num_chunks else pa.array([], distinct.type)
    numeric = qi.source.kind == "number"
    try:
        hierarchy = qi.hierarchy.bind(distinct, numeric=numeric, uncovered=qi.uncovered)
    except UncoveredValues as error:
        _refuse_uncovered(plan, qi, error, n)
    except HierarchyError as error:
        key = f"{plan.key}.columns.{qi.name}"
        raise HierarchyError(f"{key}: {error.message}", key=key) from None
    return hierarchy, values, n


def _refuse_uncovered(plan: TablePlan, qi: QuasiIdentifier, error: UncoveredValues, n: Whole) -> NoReturn:
    key = f"{plan.key}.columns.{qi.name}"
    rows = int(n[np.asarray(error.indices, dtype=np.int64)].sum())
    count = len(error.indices)
    raise HierarchyError(
        f"{key}: hierarchy {qi.hierarchy.name} does not cover {count} {'value' if count == 1 else 'values'} of "
        f"{plan.source_label}.{qi.source.name} ({rows} {'row' if rows == 1 else 'rows'}). "
        'Add them to the hierarchy, or set uncovered = "prefix" or "top".',
        key=key,
    ) from None


def _code(
    plan: TablePlan,
    index: int,
    engine: Engine,
    hierarchy: Hierarchy,
    values: exp.Table,
    n: Whole,
    leaf_codes: Whole,
    field: Field,
) -> Coded:
    qi = plan.qis[index]
    codes = leaf_codes << np.int64(field.shift)
    value_codes = codes[hierarchy.leaf]
    ids = np.arange(1, len(value_codes) + 1, dtype=np.int64)
    staged = engine.put(f"{plan.name}_codes_{index}", pa.table({"id": ids, "code": value_codes}))
    coded = engine.workbench(f"{plan.name}_coded_{index}")
    engine.execute(render("tables/code_values", coded=coded, values=values, codes=staged))
    missing = hierarchy.values.is_null().to_numpy(zero_copy_only=False)
    null_code = int(value_codes[missing][0]) if missing.any() else None
    return Coded(qi, hierarchy, codes, field, coded, null_code, _marginal(qi, hierarchy, n))


def _marginal(qi: QuasiIdentifier, hierarchy: Hierarchy, n: Whole) -> Marginal:
    rows, leaves = [], []
    for level in range(hierarchy.height):
        groups = hierarchy.groups[level]
        size = len(hierarchy.labels[level])
        counted = np.zeros(size, dtype=np.int64)
        np.add.at(counted, groups[hierarchy.leaf], n)
        rows.append(counted)
        leaves.append(np.bincount(groups, minlength=size).astype(np.int64))
    return Marginal(qi.name, qi.weight, tuple(rows), tuple(leaves))


def _words(coding: Coding, columns: tuple[Coded, ...]) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "columns": [
                {
                    "alias": identifier(f"h{i}"),
                    "column": c.qi.column,
                    "coded": c.table,
                    "null_code": c.null_code,
                }
                for i, c in enumerate(columns)
                if c.field.word == word
            ],
        }
        for word, name in enumerate(word_names(coding))
    ]


def _total(plan: TablePlan, engine: Engine, classes: exp.Table, coding: Coding, rows: int) -> int:
    total = engine.query(render("tables/total_classes", classes=classes, words=list(word_names(coding)))).to_pylist()[0]
    if total["uncoded"] or total["rows"] != rows:
        raise JobError(
            f"{plan.key}: {plan.source_label} gave other values when it was read again; a source must not change "
            "while it is read (a view over random or current values?)",
            key=plan.key,
        )
    return int(total["classes"])
