"""The statements that check nodes and judge their classes."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.sql.steps import as_needed, step
from sqldeid.stages import Step
from sqldeid.tables.criteria import terms_of
from sqldeid.tables.plan.plan import TablePlan


def checking(plan: TablePlan) -> Iterator[Step]:
    """What answers a search: as many statements as it asks for."""
    yield from as_needed("tables/check/roll_up", "tables/check/check_nodes")
    if plan.search.method == "inverse-ola":
        yield step("tables/check/histogram_nodes", None)
    if plan.overall is not None:
        yield step("tables/check/size_verdicts" if plan.beyond_k else "tables/check/histogram_nodes", None)
    yield step("tables/check/list_failing", None)
    yield from judging(plan)


def keeping_failing(plan: TablePlan) -> Iterator[Step]:
    """What judges the classes of the chosen node once more, and keeps those that fail a criterion beyond k."""
    if plan.beyond_k:
        yield from judging(plan)
        yield step("tables/check/keep_failing")


def judging(plan: TablePlan) -> Iterator[Step]:
    """What judges classes by criteria beyond k."""
    if plan.beyond_k:
        yield from as_needed(*(_persons(plan) if plan.many else _rows(plan)))


def _measures(plan: TablePlan) -> list[str]:
    """What measures classes for criteria: common statistics, bounds of shares, distances by groups."""
    own = {terms_of(c).statement for c in plan.criteria}
    return ["tables/check/count_spread" if not name else f"tables/check/{name}" for name in sorted(own)]


def _rows(plan: TablePlan) -> Iterator[str]:
    if plan.criteria:
        yield from ("engine/count_rows", "tables/check/count_cells")
        yield from _measures(plan)
    if plan.concealing is not None:
        yield "tables/check/list_cells"
    if plan.k_map is not None:
        yield "tables/check/judge_mapped"
    if plan.presence is not None:
        yield "tables/check/judge_presence"
    yield from ("tables/check/judge_classes", "tables/check/sum_verdicts")
    if plan.criteria:
        yield "tables/check/list_spread"
    yield "tables/check/list_verdicts"


def _persons(plan: TablePlan) -> Iterator[str]:
    yield from ("engine/count_rows", "tables/check/size_persons")
    if plan.criteria:
        yield from ("tables/check/trim_spread", *_measures(plan), "tables/check/judge_classes")
    yield from ("tables/check/judge_persons", "tables/check/sum_verdicts", "tables/check/list_verdicts")
