"""The source without the rows that the ledger holds back; for whoever writes a release, and for whoever verifies it."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.plan import TablePlan


def without_held_back(plan: TablePlan, engine: Engine, source: exp.Expr, held: exp.Table | None) -> exp.Expr:
    """The rows of a source but for those of the persons in `held`; the source itself where nobody is.

    Parameters
    ----------
    held
        person VARCHAR.
    """
    if held is None or plan.person is None:
        return source
    return engine.make(
        "tables/rows/keep_admitted",
        f"{plan.name}_admitted",
        columns=[identifier(c.name) for c in engine.columns(source, key=plan.key)],
        source=source,
        person=column(plan.person, "s"),
        held=held,
    )
