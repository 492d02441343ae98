"""The statements that make the rows of a source, and those that make its stacks once more."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqldeid.sql import render, table_name
from sqldeid.sql.steps import step
from sqldeid.stages import Step, Target
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows import stacking
from sqldeid.tables.rows.shape import kept_columns

UNSTILL = ("spark",)
"""Engines without a snapshot: the source's persons are counted so that they are known again."""


def shaping(plan: TablePlan, target: Target) -> Iterator[Step]:
    """What makes one row per person of the source, and counts the persons."""
    yield from _stacks(plan)
    if plan.joined and plan.stacked is None:
        yield step("tables/rows/keep_source", 1, _keep_source(plan))
    check = "tables/rows/check_keys" if target.dialect in UNSTILL else "tables/rows/check_person"
    named = {"source": source_of(plan), "person": plan.person_column, "numbered": plan.numbered}
    yield step(check, 1, render(check, target.dialect, **named))


def restacking(plan: TablePlan) -> Iterator[Step]:
    """What makes the stacks once more, for verification."""
    if plan.stacked is None:
        return
    for one in plan.stacked.stacks:
        if one.through is not None:
            yield step("tables/rows/repick_rows")
        yield step("tables/rows/restack_rows" if one.ordered else "tables/rows/resummarise_rows")
    yield step("tables/rows/join_stacks")
    yield step("tables/rows/compare_stacks")


def looking_again(target: Target) -> Iterator[Step]:
    """What looks once more whether the source has the persons that were folded."""
    if target.dialect in UNSTILL:
        yield step("tables/rows/sum_keys")


def source_of(plan: TablePlan) -> exp.Expr:
    """The relation that statements read, as a plan names it."""
    return table_name(f"{plan.name}_source") if plan.joined or plan.stacked is not None else plan.source


def _stacks(plan: TablePlan) -> Iterator[Step]:
    """The statements of stacks; under `epsilon-safe` nobody asks whether an order is total."""
    if plan.stacked is None:
        return
    for made in stacking.statements(plan.stacked, plan.source, kept_columns(plan), plan.name):
        if made.template != "tables/rows/count_doubtful" or not plan.sampled:
            yield step(made.template, 1, made.sql)


def _keep_source(plan: TablePlan) -> str:
    kept = table_name(f"{plan.name}_source")
    return render("tables/rows/keep_source", kept=kept, columns=kept_columns(plan), source=plan.source)
