"""The statements that write a node as a release, and those that tell what its rows show."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import noting, putting
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.check.statements import judging
from sqldeid.tables.plan.plan import TablePlan


def writing(plan: TablePlan, target: Target) -> Iterator[Step]:
    """What writes a release where it is staged."""
    yield step("tables/write/label_values", None)
    if plan.computed:
        yield from _computed(plan)
        return
    yield from keeping(plan)
    if plan.aggregated:
        yield step("tables/write/list_cells", len(plan.aggregated))
        yield step("tables/write/measure_cells", len(plan.aggregated))
        yield step("tables/write/join_statistics")
    yield from () if plan.sampled else as_needed("run/sum_columns")
    yield from putting(target.kind, len(plan.released), staging(plan))


def keeping(plan: TablePlan) -> Iterator[Step]:
    """What keeps the released classes."""
    blank = plan.demands.blanks
    yield step("tables/write/keep_classes", None if blank and plan.beyond_k else 1)
    if blank and plan.criteria:
        yield step("tables/check/merge_blanked", None)
    if blank and plan.concealing is not None:
        yield step("tables/check/merge_known", None)
    if blank:
        yield from judging(plan)


def staging(plan: TablePlan) -> Step:
    """What writes the rows of a release."""
    return step("tables/write/stage_rows" if plan.others else "tables/write/stage_classes")


def _computed(plan: TablePlan) -> Iterator[Step]:
    yield step("run/sum_columns", None)
    yield step("publish/create_schema")
    yield from as_needed("tables/write/write_labels", "publish/comment_table")
    yield step("tables/write/stage_computed")
    yield from noting("publish/comment_view", len(plan.released))


def telling(plan: TablePlan) -> Iterator[Step]:
    """What counts the classes of source and release, and reads what the rows show."""
    yield from as_needed("tables/check/list_failing", "tables/check/check_nodes")
    yield step("tables/check/histogram_nodes")
    yield from judging(plan)
    if plan.many:
        yield step("tables/check/count_persons_sizes")
    yield step("tables/write/count_suppressed", None)
    if plan.many:
        yield step("tables/check/read_sized", None)
    yield step("tables/write/list_shown", None)


def telling_drawn() -> Iterator[Step]:
    """The same of a drawn node, whose rows are those of the sample."""
    yield from as_needed("tables/check/list_failing", "tables/check/check_nodes")
    yield from once("tables/check/histogram_nodes")
    yield step("tables/write/list_shown", None)
