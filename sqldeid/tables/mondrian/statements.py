"""The statements of a release by Mondrian."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import putting
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.mondrian.plan import PartitionPlan

_DEPTH = (
    *("mondrian/measure_spans", "mondrian/measure_cuts", "mondrian/measure_diversity", "mondrian/choose_cuts"),
    *("mondrian/read_cuts", "mondrian/find_torn", "mondrian/split_parts", "mondrian/count_parts"),
)
"""What is run once or a few times for each depth of the cuts."""


def cutting(planned: PartitionPlan) -> Iterator[Step]:
    """What folds the source to points, cuts them, and labels the parts."""
    if planned.joined:
        yield step("tables/rows/keep_source")
    yield step("tables/rows/check_person")
    if planned.criteria:
        yield step("tables/disguise/number_values", None)
    yield from once("tables/mondrian/fold_points", "tables/mondrian/list_points")
    if planned.criteria:
        yield from as_needed(*_MARKS)
    yield from once("mondrian/list_values", "mondrian/start_parts")
    yield from as_needed(*_DEPTH)
    if planned.criteria:
        yield step("mondrian/find_unfit", None)
    yield from once("mondrian/number_classes", "mondrian/read_parts", "tables/mondrian/average_parts")
    yield from once("tables/mondrian/list_parts", "tables/mondrian/label_parts")


_MARKS = (
    *("tables/mondrian/mark_points", "tables/mondrian/count_marks", "tables/mondrian/total_marks"),
    *("tables/mondrian/read_marked", "tables/mondrian/spread_labels", "engine/count_rows"),
)
"""What measures the sensitive columns of criteria."""


def writing(planned: PartitionPlan, target: Target) -> Iterator[Step]:
    """What writes each row with the label of its class."""
    yield step("run/sum_columns", None)
    columns = len(planned.cuts) + len(planned.others)
    yield from putting(target.kind, columns, step("tables/mondrian/stage_parts"))


def verifying(planned: PartitionPlan) -> Iterator[Step]:
    """What makes the release again from source and classes, and compares the two."""
    yield from once("tables/mondrian/list_labels", "tables/verify/group_source", "tables/mondrian/expect_parts")
    yield from once("tables/verify/group_release", "tables/mondrian/compare_parts")
    if planned.criteria:
        yield from as_needed(*_MARKS)
