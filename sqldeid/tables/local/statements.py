"""The statements that form, write and verify classes with levels of their own."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import putting
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.disguise.disguise import pseudonyms
from sqldeid.tables.fold.statements import folding
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.statements import looking_again, restacking
from sqldeid.tables.verify.statements import achieving, scoring
from sqldeid.tables.write.statements import staging


def reading(plan: TablePlan, target: Target) -> Iterator[Step]:
    """What folds the source, and reads its combinations."""
    yield from folding(plan, target)
    yield from once("tables/local/read_combinations")
    if plan.judged:
        yield step("tables/local/read_cells", len(plan.judged))
    if plan.concealing is not None:
        yield step("tables/local/read_known")


def holding_back() -> Iterator[Step]:
    """What lists the rows for the ledger, and leaves out those that it holds back."""
    yield from once("tables/ledger/list_admissible")
    yield from as_needed("tables/fold/list_ranked", "tables/verify/rank_values", "tables/rows/keep_admitted")


def writing(planned: LocalPlan, target: Target) -> Iterator[Step]:
    """What writes a release where it is staged, with the table of its layers where there is one."""
    plan = planned.table
    columns, layers = len(planned.released), len(plan.qis) + 1
    yield from as_needed("tables/write/label_values")
    yield step("tables/local/keep_combinations")
    yield from as_needed("run/sum_columns")
    if not planned.recoding:
        yield from putting(target.kind, columns, staging(plan))
        return
    yield from putting(target.kind, columns + layers, step("tables/local/write_layers"), staging(plan), tables=2)


def verifying(planned: LocalPlan, target: Target) -> Iterator[Step]:
    """What compares a release with the classes that its source forms."""
    plan = planned.table
    yield from restacking(plan)
    yield step("tables/verify/group_source", 2)
    yield from once("tables/local/place_combinations", "tables/verify/expect_release")
    yield from once("tables/verify/compare_release", "tables/verify/count_sizes")
    yield from scoring(plan)
    yield from achieving(plan)
    if plan.concealing is not None:
        yield from once("tables/verify/split_known", "tables/verify/read_known")
    if pseudonyms(plan):
        yield step("tables/disguise/check_pseudonyms", 2)
    if any(c.to is not None for c in plan.others):
        yield from once("tables/disguise/count_finer")
    yield from looking_again(target)


def rolling_up(planned: LocalPlan, target: Target) -> Iterator[Step]:
    """What writes the rows at common levels, and compares them with the release."""
    yield from putting(target.kind, len(planned.roll_up), step("tables/local/roll_up"))
    yield step("tables/local/compare_roll_up")


def telling(planned: LocalPlan, target: Target) -> Iterator[Step]:
    """What writes what labels say, and compares it with the release and the hierarchies."""
    yield step("tables/local/list_labels", 2 * len(planned.table.qis))
    yield from putting(target.kind, 5, step("tables/local/write_hierarchies"))
    yield step("tables/local/read_hierarchies")
