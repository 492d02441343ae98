"""Class sizes and re-identification risk of any table or release (Mazzone 2019, ch. 3; El Emam 2013)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.result import Risk, risk_of
from sqldeid.sql import identifier, render


def assess(relation: exp.Expr, columns: Sequence[str], engine: Engine) -> Risk:
    """Group a table by its quasi-identifying columns and derive the risk of its class sizes.

    Parameters
    ----------
    relation
        Table, subquery or file function.
    columns
        The quasi-identifying columns, as the table names them.

    Cost: one scan of the table.
    """
    grouped = engine.workbench("assess")
    engine.execute(
        render("insight/group_classes", grouped=grouped, source=relation, columns=[identifier(c) for c in columns])
    )
    rows = engine.query(render("tables/count_sizes", grouped=grouped)).to_pylist()
    engine.execute(render("engine/drop_table", table=grouped))
    return risk_of({int(r["size"]): int(r["classes"]) for r in rows})
