"""What recipients need to read a release: the type of each column, and the values that its rows show.

Only values of rows that were written are named; what they stand for, only by a hierarchy that comes with the program or
by the bounds that a rule gives a name: a leaf of the user's own may be a value that one person of the source has.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.hierarchy import HierarchySource, named_ranges, shipped_leaves
from sqldeid.result import Code, TableRelease
from sqldeid.sql import column
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.plan import TablePlan

SHOWN = 24
"""Values of a column that are named, the most frequent ones."""

STANDS_FOR = 4
"""Values that a shown one stands for that are named."""


def with_codes(result: TableRelease, plan: TablePlan, node: Node, written: exp.Expr, engine: Engine) -> TableRelease:
    """The result with types and shown values. Cost: one statement on what was written, where something is coarser."""
    # Postgres and Spark write DECIMAL(10, 2) where DuckDB writes DECIMAL(10,2).
    types = {c.name: c.shown_type.replace(", ", ",") for c in engine.columns(written, key=plan.key)}
    columns = {name: replace(c, type=types.get(name)) for name, c in result.columns.items()}
    coarser = [(i, q, level) for i, (q, level) in enumerate(zip(plan.qis, node, strict=True)) if level > 0]
    if coarser and result.released:
        asked = [{"number": i, "column": column(q.name, "r")} for i, q, _ in coarser]
        rows = engine.rows("tables/write/list_shown", release=written, columns=asked, most=SHOWN + 1)
        for i, q, level in coarser:
            shown = [row["shown"] for row in rows if row["number"] == i]
            codes = tuple(code_of(label, q.hierarchy, level) for label in shown[:SHOWN])
            columns[q.name] = replace(columns[q.name], codes=codes, more_codes=len(shown) > SHOWN)
    return replace(result, columns=columns)


def code_of(label: object, source: HierarchySource, level: int) -> Code:
    """A shown value with a few of the leaves that it stands for, or with the bounds that its hierarchy states."""
    if label is None:
        return Code("NULL")
    if (bounds := named_ranges(source, level).get(str(label))) is not None:
        return Code(str(label), (bounds,), 1)
    leaves = shipped_leaves(source.name, level).get(str(label), ())
    if len(leaves) <= STANDS_FOR:
        return Code(str(label), leaves, len(leaves))
    return Code(str(label), (*leaves[: STANDS_FOR - 1], leaves[-1]), len(leaves))
