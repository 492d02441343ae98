"""The statements that a release runs for the series that follow it; those of the series themselves are theirs."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.verify.statements import achieving, flagging
from sqldeid.tables.write.statements import keeping


def handing_over(plan: TablePlan) -> Iterator[Step]:
    """What gives the classes to the series, and takes who is left."""
    yield step("tables/write/label_values", None)
    yield from keeping(plan)
    yield step("tables/followed/class_persons")
    if plan.beyond_k:
        yield from as_needed("tables/verify/group_source", "tables/verify/flag_source")
        yield from flagging(plan)
        yield step("tables/followed/failing_numbers", None)
    yield step("tables/followed/hold_unlinked")
    yield from as_needed("tables/followed/number_source", "engine/count_rows")
    yield from once("tables/rows/keep_admitted", "tables/fold/fold_classes")


def verifying_joined(plan: TablePlan) -> Iterator[Step]:
    """What checks the written release together with the classes of its series."""
    yield from once("tables/followed/check_numbers", "tables/followed/join_written")
    yield from flagging(plan)
    yield from achieving(plan)
    yield from as_needed("tables/followed/place_written")
