"""The statements that verify what was written."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.rechecked import COUNTED
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.criteria import known, others_of, terms_of
from sqldeid.tables.disguise.disguise import pseudonyms
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.statements import looking_again, restacking


def verifying(plan: TablePlan, target: Target, *, held: bool = False) -> Iterator[Step]:
    """What makes the release again from the source by other SQL, and compares the two.

    Parameters
    ----------
    held
        Whether persons may be held back whom the criteria let out.
    """
    blank = plan.demands.blanks
    yield from restacking(plan)
    yield from as_needed("tables/rows/keep_admitted") if held else ()
    yield step("tables/verify/group_source", 1 if plan.population is None else 2)
    if plan.keyed:
        yield step("tables/rows/check_person")
    if plan.weight is not None:
        yield step("tables/rows/count_unweighed")
    if plan.population is not None:
        yield from judging_mapped(plan)
    yield from flagging(plan)
    if plan.overall is None:
        yield step("tables/verify/flag_source")
    else:
        yield from as_needed("tables/verify/flag_source")
        yield step("tables/verify/count_passing")
    yield step("tables/verify/group_release")
    if plan.criteria and blank:
        yield from as_needed("tables/verify/split_blanked", "engine/count_rows")
    if plan.concealing is not None and blank:
        yield step("tables/verify/blank_known", None)
    if plan.sampled:
        yield from once("tables/verify/compare_sample", "tables/verify/count_sizes")
    else:
        yield from once("tables/verify/expect_release", "tables/verify/compare_release", "tables/verify/count_sizes")
        yield from achieving(plan)
        if pseudonyms(plan):
            yield step("tables/disguise/check_pseudonyms", 2)
        for template in ("split_cells", "group_statistics", "number_statistics", "list_cells", "list_statistics"):
            yield from (step(f"tables/verify/{template}", len(plan.aggregated)),) if plan.aggregated else ()
    yield from looking_again(target)


def judging_mapped(plan: TablePlan) -> Iterator[Step]:
    """What judges classes by the population."""
    if plan.k_map is not None:
        yield from as_needed("tables/verify/map_classes", "tables/verify/few_mapped", "tables/verify/measure_mapped")
    if plan.presence is not None:
        yield from as_needed("tables/verify/measure_presence")


def flagging(plan: TablePlan) -> Iterator[Step]:
    """What finds the classes of the source that fail a criterion."""
    return _flag_persons(plan) if plan.many else _flag_rows(plan)


def achieving(plan: TablePlan) -> Iterator[Step]:
    """What measures the criteria on what was written."""
    return _verify_persons(plan) if plan.many else _verify_rows(plan)


def scoring(plan: TablePlan) -> Iterator[Step]:
    """What judges the criteria on what was written alone, beside what measures them."""
    columns, criteria, close = _judged(plan)
    if criteria:
        yield step("tables/verify/rank_values", columns + close)
        for name, number in _scored(plan):
            yield step(name, 3 * number)
        yield step("tables/verify/fail_classes", criteria)


def _judged(plan: TablePlan) -> tuple[int, int, int]:
    """Splits of classes by sensitive columns, criteria, and those that are measured against the released rows, too."""
    close = sum(known(c).against_whole for c in plan.criteria)
    return len({(c.column, others_of(c)) for c in plan.criteria}), len(plan.criteria), close


def _scored(plan: TablePlan) -> list[tuple[str, int]]:
    """What tells the scores of classes for the re-check, with the number of criteria that it does so for."""
    kinds = [kind for c in plan.criteria if (kind := terms_of(c).recheck["kind"]) not in COUNTED]
    levels = kinds.count("hierarchical")
    named = (("tables/verify/score_classes", len(kinds) - levels), ("tables/verify/score_levels", levels))
    return [(name, number) for name, number in named if number]


def _flag_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = _judged(plan)
    blank = plan.demands.blanks or plan.overall is not None  # then classes are judged once more, if need be
    if criteria:
        yield step("tables/verify/split_source", None if blank else columns)
        yield step("tables/verify/rank_values", None if blank else 2 * columns + close)
        for name, number in _scored(plan):
            yield step(name, None if blank else 4 * number)
        yield step("tables/verify/fail_classes", None if blank else 2 * criteria)
    if plan.concealing is not None:
        yield step("tables/verify/label_rows", None if blank else 1)
        yield step("tables/verify/split_known", None if blank else 2)
        yield step("tables/verify/read_known", None if blank else 2)
        yield step("tables/verify/pick_classes", 1 if plan.overall is None else None)


def _flag_persons(plan: TablePlan) -> Iterator[Step]:
    yield from once("tables/verify/own_classes", "tables/verify/count_owned", "tables/verify/few_persons")
    if plan.criteria:
        yield from as_needed("tables/verify/split_persons", "tables/verify/trim_cells", "tables/verify/rank_values")
        yield from as_needed(*(name for name, _ in _scored(plan)), "tables/verify/fail_classes")


def _verify_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = _judged(plan)
    if criteria:
        yield step("tables/verify/split_release", columns)
        yield step("engine/count_rows", None if plan.demands.blanks else criteria)
        yield step("tables/verify/measure_classes", criteria + close)


def _verify_persons(plan: TablePlan) -> Iterator[Step]:
    if plan.criteria:
        yield from as_needed("tables/verify/keep_passing", "engine/count_rows", "tables/verify/measure_classes")
    yield from once("tables/verify/tell_persons", "tables/verify/count_owners")
