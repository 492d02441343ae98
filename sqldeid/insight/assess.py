"""Class sizes and re-identification risk of any table or release (Mazzone 2019, ch. 3; El Emam 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.result import Measured, Risk, risk_of, risk_of_persons
from sqldeid.sql import identifier, render
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.shape import count_persons
from sqldeid.tables.verify.judgement import Judgement
from sqldeid.tables.verify.persons import PersonJudgement, as_they_are
from sqldeid.tables.verify.verify import Verified


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
    rows = engine.query(render("tables/verify/count_sizes", grouped=grouped)).to_pylist()
    engine.drop(grouped)
    return risk_of({int(r["size"]): int(r["classes"]) for r in rows})


def assess_persons(plan: TablePlan, source: exp.Expr, engine: Engine) -> Risk:
    """The risk of a source whose persons may have many rows, by the persons of its classes; with the job's criteria.

    Parameters
    ----------
    source
        The rows of `plan`, from `sqldeid.tables.rows.shape.keep`.

    Cost: one scan of the table, and one per sensitive column.
    """
    count_persons(plan, engine, source)
    judgement = PersonJudgement(plan, engine, source, as_they_are(plan), source)
    sizes = judgement.sizes()
    share = max((s for *_, s in sizes), default=0.0)
    criteria, _ = judgement.measured()
    return replace(risk_of_persons(((p, classes, rows) for p, classes, rows, _ in sizes), share), criteria=criteria)


def assess_released(verified: Verified) -> Risk:
    """The risk of a release whose persons may have many rows: it does not show whose a row is, its re-check does."""
    found = verified.persons
    if found is None:
        raise ValueError("the release has one row a person")
    criteria = tuple(Measured(c.name, c.column, c.asked, c.achieved, met=True) for c in verified.criteria)
    return replace(risk_of_persons(found.sizes, found.greatest_share), criteria=criteria)


def assess_criteria(risk: Risk, plan: TablePlan, source: exp.Expr, relation: exp.Expr, engine: Engine) -> Risk:
    """Add what a table achieves by the criteria of a job beyond k: l, t, and 1/m with the worst knowledge state.

    Parameters
    ----------
    risk
        From `assess`.
    source
        The rows of `plan`, from `sqldeid.tables.rows.shape.keep`; t-closeness is measured against them.
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
