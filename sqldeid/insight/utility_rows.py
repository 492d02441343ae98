"""Rows as a model takes them: the originals, the release, and the test part generalised by the released node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.insight.utility_model import Features
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.bind import bind

Columns = Sequence[QuasiIdentifier | OtherColumn]

NUMERIC = ("integer", "float", "number", "date", "timestamp")
"""Kinds that are numbers to a model; all others, and quasi-identifying columns once released, are categories."""

_DOUBLE, _TEXT, _TIME = (exp.DataType.build(t, dialect="duckdb") for t in ("double", "varchar", "timestamp"))


def features(plan: TablePlan, label: OtherColumn) -> Columns:
    """The released columns that a model can use: all but the label, and types that have no values to compare.

    Raises
    ------
    JobError
        If there is none.
    """
    found = [c for c in plan.released if c.source.kind != "other" and c.source.name != label.source.name]
    if not found:
        raise JobError(f"{plan.key}.columns: nothing is released but the label; there is nothing to learn from")
    return found


def read_originals(plan: TablePlan, columns: Columns, label: OtherColumn, engine: Engine) -> pa.Table:
    """The rows that have a label: c0, c1 and so on as values travel, of quasi-identifiers t0, … as text, and label."""
    read = [
        {
            "name": identifier(f"c{i}"),
            "value": c.column,
            "type": c.travel_type if isinstance(c, QuasiIdentifier) else _model_type(c.source.kind),
        }
        for i, c in enumerate(columns)
    ]
    read += [
        {"name": identifier(f"t{i}"), "value": c.column, "type": _TEXT}  # as the engine spells it in the release, too
        for i, c in enumerate(columns)
        if isinstance(c, QuasiIdentifier)
    ]
    return _read(plan.source, label.column, read, engine)


def _read(source: exp.Expr, label: exp.Expr, columns: Sequence[Mapping[str, object]], engine: Engine) -> pa.Table:
    """The rows that have a label, in the order of their content, so that the sums of a fit repeat, on every engine.

    Of equal rows one comes here, with their number.
    """
    found = engine.ask("insight/read_rows", source=source, label=label, columns=columns)
    names = [name for name in found.column_names if name != "n"]
    order = pc.sort_indices(found, sort_keys=[(name, "ascending") for name in names])  # NULL last
    found = found.take(order)
    return found.select(names).take(np.repeat(np.arange(found.num_rows), found.column("n").to_numpy()))


def as_they_were(rows: pa.Table, columns: Columns) -> Features:
    """Rows of `read_originals` with their own values."""
    values = [_prepared(rows.column(f"c{i}"), c.source.kind) for i, c in enumerate(columns)]
    return _features(rows, columns, values)


def generalised(plan: TablePlan, node: Mapping[str, int], rows: pa.Table, columns: Columns, engine: Engine) -> Features:
    """Rows of `read_originals` of the test part at `node`; its values are bound to the hierarchies by themselves.

    Raises
    ------
    HierarchyError
        If a hierarchy does not cover the values of the test part.
    """
    numbers = {q.name: i for i, q in enumerate(plan.qis)}
    values = []
    for i, c in enumerate(columns):
        if not isinstance(c, QuasiIdentifier):
            values.append(_prepared(rows.column(f"c{i}"), c.source.kind))
            continue
        level = node[c.name]
        if level == 0 and c.typed:
            values.append(rows.column(f"t{i}").combine_chunks().cast(pa.string()))
            continue
        hierarchy = bind(plan, numbers[c.name], engine, plan.source).hierarchy
        labels = np.asarray(c.labels(hierarchy, level), dtype=object)[hierarchy.groups[level][hierarchy.leaf]]
        places = pc.index_in(rows.column(f"c{i}").combine_chunks(), value_set=hierarchy.values)
        values.append(pa.array(labels, pa.string()).take(places))
    return _features(rows, columns, values)


def read_released(
    written: exp.Expr,
    columns: Columns,
    label: OtherColumn,
    engine: Engine,
) -> Features:
    """The released rows that have a label, with the values that they were released with."""
    kinds = [_released_kind(c) for c in columns]
    read = [
        {"name": identifier(f"c{i}"), "value": column(c.name, "s"), "type": _model_type(kind)}
        for i, (c, kind) in enumerate(zip(columns, kinds, strict=True))
    ]
    value = column(label.name, "s")
    rows = _read(written, value, read, engine)
    values = [_prepared(rows.column(f"c{i}"), kind) for i, kind in enumerate(kinds)]
    return _features(rows, columns, values)


def _released_kind(c: QuasiIdentifier | OtherColumn) -> str:
    """A quasi-identifying column of a release is a category at every level: suppression leaves gaps in its numbers."""
    return "text" if isinstance(c, QuasiIdentifier) else c.source.kind


def _features(rows: pa.Table, columns: Columns, values: Sequence[pa.Array]) -> Features:
    labels = np.asarray(rows.column("label").to_pylist(), dtype=object)
    return Features(tuple(c.name for c in columns), tuple(values), labels)


def _model_type(kind: str) -> exp.DataType:
    if kind in ("date", "timestamp"):
        return _TIME
    return _DOUBLE if kind in NUMERIC else _TEXT


def _prepared(values: pa.ChunkedArray, kind: str) -> pa.Array:
    """A column as a model takes it: DOUBLE for numbers and times, text for categories."""
    array = values.combine_chunks()
    if kind not in NUMERIC:
        return array.cast(pa.string())
    if kind in ("date", "timestamp"):
        return _instants(array)
    return array.cast(pa.float64(), safe=False)


def _instants(array: pa.Array) -> pa.Array:
    """Dates and times as microseconds; DuckDB's infinite ones, the ends of their integers, as infinite numbers."""
    days = pa.types.is_date32(array.type)
    whole = array.cast(pa.int32()) if days else array.cast(pa.timestamp("us")).cast(pa.int64())
    end = (1 << (31 if days else 63)) - 1
    numbers = whole.to_numpy(zero_copy_only=False).astype(np.float64)
    ends = pc.fill_null(pc.or_(pc.equal(whole, end), pc.equal(whole, -end)), False).to_numpy(zero_copy_only=False)
    made = np.where(ends, np.copysign(np.inf, numbers), numbers * (86_400e6 if days else 1.0))
    return pa.array(made, pa.float64(), mask=whole.is_null().to_numpy(zero_copy_only=False))
