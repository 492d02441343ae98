"""The statements that fold a source to coded classes."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.sql import identifier, render, table_name
from sqldeid.sql.steps import LOCAL, as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.criteria import others_of
from sqldeid.tables.fold.combined import combined_columns, counted_columns
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan
from sqldeid.tables.rows.statements import shaping, source_of


def folding(plan: TablePlan, target: Target) -> Iterator[Step]:
    """What shapes the source, codes its values and folds it."""
    if plan.sample is not None:
        from sqldeid.tables.fold.sample import as_drawn, sampling

        yield from sampling()
        plan = as_drawn(plan)
    yield from shaping(plan, target)
    if plan.versions and not plan.sampled:
        yield step("tables/plan/count_versions", len(plan.versions))
    coded = len(plan.qis) + len(plan.judged)
    if any(q.linked for q in plan.qis):
        yield from as_needed("tables/plan/read_links", "tables/plan/read_known")
    if target.dialect != LOCAL:
        yield step("tables/fold/combine_rows", 1, _combine_rows(plan))
        yield step("tables/fold/count_every", 1, _count_every(plan))
        yield from once("tables/fold/read_every", "tables/fold/code_every")
        yield step("tables/fold/pick_coded", coded)
    else:
        yield from counting_values(plan, (*plan.qis, *plan.judged))
        yield step("tables/fold/code_values", coded + (0 if plan.population is None else len(plan.qis)))
    if plan.population is None:
        yield step("tables/fold/fold_classes")
    else:
        if target.dialect != LOCAL:
            yield from as_needed("tables/rows/count_values", "tables/rows/read_values", "tables/fold/code_values")
        yield step("tables/fold/fold_classes", 2)
        yield from once("tables/fold/join_population", "tables/fold/count_outside")
        yield from once(*(["tables/fold/count_left_out"] if plan.rest and plan.filtered else []))
        yield from once(*(["tables/rows/check_person"] if plan.keyed else []))
        yield from once(*(["tables/rows/count_unweighed"] if plan.weight is not None else []))
    yield from _persons(plan) if plan.many else _rows(plan)


def counting_values(plan: TablePlan, columns: tuple[QuasiIdentifier | OtherColumn, ...]) -> Iterator[Step]:
    """What counts and reads the values of columns, each by itself."""
    texts = [_count_values(plan, c, i) for i, c in enumerate(columns)]
    times = len(columns) + (0 if plan.population is None else len(plan.qis))
    yield step("tables/rows/count_values", times, *texts)
    yield step("tables/rows/read_values", times)


def _rows(plan: TablePlan) -> Iterator[Step]:
    if plan.search.by_nodes:
        yield step("engine/count_rows", None)
    if plan.judged:
        joint = {c.column for c in plan.criteria if others_of(c)}
        yield step("tables/fold/merge_classes")
        yield step("tables/fold/spread_classes", len(plan.judged) + len(joint))
    yield step("tables/fold/total_classes")


def _persons(plan: TablePlan) -> Iterator[Step]:
    """The classes with their persons, where one may have many rows."""
    yield step("tables/fold/merge_classes")
    yield step("tables/fold/settle_pairs", None)
    for name in ("tables/fold/split_pairs", "tables/fold/reference_persons") if plan.judged else ():
        yield step(name, len(plan.judged))
    yield step("tables/fold/total_classes")


def _combine_rows(plan: TablePlan) -> str:
    combined, (columns, n) = table_name(f"{plan.name}_combined"), combined_columns(plan)
    return render(
        "tables/fold/combine_rows", combined=combined, source=source_of(plan), columns=columns, n=identifier(n.name)
    )


def _count_every(plan: TablePlan) -> str:
    values, combined = table_name(f"{plan.name}_values"), table_name(f"{plan.name}_combined")
    columns, n = counted_columns(plan), combined_columns(plan)[1]
    return render("tables/fold/count_every", values=values, columns=columns, source=combined, n=n)


def _count_values(plan: TablePlan, column: QuasiIdentifier | OtherColumn, number: int) -> str:
    return render(
        "tables/rows/count_values",
        values=table_name(f"{plan.name}_values_{number}"),
        column=column.column,
        type=column.travel_type,
        source=source_of(plan),
    )
