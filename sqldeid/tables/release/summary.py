"""What a table release tells of itself: counts, losses, risks, columns and warnings, from its checks and re-check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.hierarchy.header import unused
from sqldeid.result import ColumnResult, Criterion, Risk, SearchResult, TableRelease, risk_of, risk_of_persons
from sqldeid.sql import column, identifier
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.persons import PersonJudge
from sqldeid.tables.criteria.k_anonymity import KAnonymity
from sqldeid.tables.criteria.persons import promise_of_k
from sqldeid.tables.disguise.disguise import pseudonyms, warnings_of
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import LossReport, all_losses
from sqldeid.tables.plan.choosing import by_k, chosen_by
from sqldeid.tables.plan.demands import DRAWN_ANEW
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.search import Outcome
from sqldeid.tables.verify.verify import Verified
from sqldeid.tables.write.stage import Chosen, suppression_by

NEAR_KEY = 0.7
"""Share of distinct values among released rows from which a column is called nearly unique."""

NEAR_KEY_ROWS = 20
"""Rows from which that is asked."""


def summarise(
    chosen: Chosen,
    outcome: Outcome,
    verified: Verified,
    checker: Checker,
    engine: Engine,
    moved_before: tuple[int, int],
) -> TableRelease:
    """The result of a release that was written and verified. Cost: two statements on the folded classes."""
    plan = chosen.plan
    bottom = checker([plan.lattice.bottom], histogram=True)[0]
    marginals = [c.marginal for c in chosen.folded.columns]
    losses = all_losses(outcome.evaluation, marginals, verified.rows, bottom.squares)
    moved = tuple(after - before for after, before in zip(engine.moved, moved_before, strict=True))
    return TableRelease(
        name=plan.name,
        rows=verified.rows,
        released=verified.released,
        suppressed=verified.suppressed,
        node=dict(zip((q.name for q in plan.qis), outcome.node, strict=True)),
        k=verified.k,
        classes=verified.classes,
        criteria=(_k_anonymity(plan, chosen.noted_k, verified.k), *verified.criteria),
        one_over_m=_one_over_m(plan, verified),
        loss=losses.totals,
        columns=_columns(plan, outcome.node, losses),
        risk=_risks(plan, bottom, verified, checker),
        suppression_by=suppression_by(chosen, engine) if verified.suppressed else {},
        search=_search(plan, outcome, verified),
        written=(),
        moved={"rows": moved[0], "bytes": moved[1]},
        warnings=(
            *warnings_of(plan, at_top(plan, outcome.node)),
            *_warnings(plan, outcome, verified, marginals),
            *_unused(plan, chosen.folded.columns),
        ),
        pseudonymised=tuple(c.name for c in pseudonyms(plan)),
        suppression_limit=plan.demands.suppression_limit,
        unit=plan.unit,
        persons=verified.persons,
    )


def at_top(plan: TablePlan, node: Node) -> set[str]:
    """The quasi-identifying columns that a node shows as one value."""
    return {q.name for q, x in zip(plan.qis, node, strict=True) if 0 < x == q.hierarchy.height - 1}


def _risks(plan: TablePlan, bottom: Evaluation, verified: Verified, checker: Checker) -> dict[str, Risk]:
    """The risk of source and release: of persons, or of rows where no key tells persons."""
    near = checker.near(plan.lattice.bottom)
    if verified.persons is None or not isinstance(near.judge, PersonJudge):
        counted = f"{plan.unit}s"
        return {
            "source": risk_of(dict(bottom.histogram or {}), counted),
            "release": risk_of(verified.sizes, counted),
        }
    sizes = near.judge.histogram(near.arm(0, plan.lattice.bottom))
    source = risk_of_persons((p, classes, rows) for p, (classes, rows) in sizes.items())
    return {"source": source, "release": risk_of_persons(verified.persons.sizes, verified.persons.greatest_share)}


def _unused(plan: TablePlan, columns: Sequence[Coded]) -> Iterator[str]:
    """Files of the user's own with leaves that no row has, which count in the losses."""
    found = {c.qi.name: (n, c.hierarchy.leaves) for c in columns if (n := unused(c.qi.hierarchy, c.hierarchy))}
    if found:
        told = ", ".join(f"{name} {n:,} of {leaves:,}" for name, (n, leaves) in found.items())
        yield (
            f"{plan.key}.columns: hierarchy files have leaves that no row has ({told}); losses count each as a value "
            "that is there, and so the choice of the node may: leave lines out that are not of this data"
        )


def near_keys(plan: TablePlan, written: exp.Expr, rows: int, engine: Engine) -> Iterator[str]:
    """Columns that are released as they stand and nearly unique."""
    others = [c for c in plan.others if c.disguise is None]
    if not others or rows < NEAR_KEY_ROWS:
        return
    columns = [{"column": column(c.name, "r"), "name": identifier(f"d{i}")} for i, c in enumerate(others)]
    row = engine.row("tables/release/count_distinct", release=written, columns=columns)
    for c, distinct in zip(others, row.values(), strict=True):
        if distinct > NEAR_KEY * rows:
            yield (
                f"{plan.key}.columns.{c.name}: is {c.role} and released as it is, but nearly every row has a value of "
                f"its own: whoever knows that value finds the {plan.unit}, whatever k is"
            )


def _one_over_m(plan: TablePlan, verified: Verified) -> float:
    """Of the release: by m-concealing where it is asked for, else its smallest class; 0 for an empty release."""
    if plan.concealing is None:
        return float(verified.k)
    greatest = next(c.achieved for c in verified.criteria if c.name == plan.concealing.name)
    return 1 / greatest if greatest else 0.0


def _k_anonymity(plan: TablePlan, asked: int, achieved: int) -> Criterion:
    promise = promise_of_k(asked) if plan.many else KAnonymity(asked).promise_for(plan.unit)
    return Criterion("k-anonymity", None, asked, achieved, promise)


def _search(plan: TablePlan, outcome: Outcome, verified: Verified) -> SearchResult:
    alone = outcome.checked[outcome.node] if by_k(plan) else None
    return SearchResult(
        method=plan.search.method,
        loss=plan.search.loss,
        optimal=outcome.optimal,
        gap=outcome.gap,
        lattice_size=plan.lattice.size,
        checks=outcome.checks,
        statements=outcome.statements,
        seconds=round(outcome.seconds, 4),
        choose=chosen_by(plan),
        chosen_loss=outcome.loss if alone is not None else None,
        suppressed_beyond_k=verified.suppressed - alone.failing if alone is not None else None,
        criteria_limit=plan.demands.criteria_limit if alone is not None else None,
    )


def _columns(plan: TablePlan, node: Node, losses: LossReport) -> dict[str, ColumnResult]:
    levels = dict(zip((q.name for q in plan.qis), node, strict=True))
    found = {}
    for c in plan.columns:
        if isinstance(c, QuasiIdentifier):
            level, h = levels[c.name], c.hierarchy
            found[c.name] = ColumnResult(
                "quasi-identifying",
                level,
                h.level_names[level],
                h.height,
                c.hierarchy_name,
                losses.columns[c.name],
                c.shown,
            )
        else:
            found[c.name] = ColumnResult(c.role, shown=c.shown)
    return found


def _warnings(plan: TablePlan, outcome: Outcome, verified: Verified, marginals: list[Marginal]) -> list[str]:
    found = []
    if plan.search.blunt:
        found.append(f"{plan.key}.search.blunt: {DRAWN_ANEW}; gap {outcome.gap:.6g}")
    elif not outcome.optimal:
        found.append(f"{plan.key}: the node is the best one found, not proven best; gap {outcome.gap:.6g}")
    if not verified.released:
        found.append(f"{plan.key}: the release is empty: every row is suppressed")
    if plan.demands.blanks and verified.released < verified.rows:
        found.append(f"{plan.key}: the blanked rows together do not meet the criteria, so they were dropped")
    if plan.sample is not None:
        found.append(
            f"{plan.key}.sample: rows here are those of the sample, by this key; another key draws another sample of "
            "the same persons, and who holds releases of both compares them: do not release both"
        )
    found += [
        f"{plan.key}.columns.{c.name}: the {c.statistic} of a class can be solved for by all of its members but one "
        "who pool what they know, to within half a step of the grid for each member; mode and interval cannot"
        for c in plan.aggregated
        if c.statistic in ("mean", "median")
    ]
    for m in marginals:
        if len(m.rows[0]) == 1:
            found.append(f"{plan.key}.columns.{m.name}: has one value only; it tells nothing and costs nothing")
    return found
