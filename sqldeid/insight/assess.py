"""Class sizes and re-identification risk of any table or release (Mazzone 2019, ch. 3; El Emam 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.result import Risk, risk_of
from sqldeid.sql import identifier, render
from sqldeid.tables.judgement import Judgement
from sqldeid.tables.plan import TablePlan


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
    engine.drop(grouped)
    return risk_of({int(r["size"]): int(r["classes"]) for r in rows})


def assess_criteria(risk: Risk, plan: TablePlan, source: exp.Expr, relation: exp.Expr, engine: Engine) -> Risk:
    """Add what a table achieves by the criteria of a job beyond k: l, t, and 1/m with the worst knowledge state.

    Parameters
    ----------
    risk
        From `assess`.
    source
        The rows of `plan`, from `sqldeid.tables.shape.keep`; t-closeness is measured against them.
    relation
        `source` again, or the release.

    Cost: two scans of the table per sensitive column. m-concealing walks all of its knowledge states.
    """
    if not plan.beyond_k:
        return risk
    criteria, hidden = Judgement(plan, engine, source, (), relation).measured()
    if hidden is None:
        return replace(risk, criteria=criteria)
    one_over_m = 1 / hidden.greatest if hidden.greatest else None
    return replace(risk, criteria=criteria, one_over_m=one_over_m, worst_state=hidden.worst_state)
