"""The statements of a planned release in order, each with its purpose, before any of them is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from sqldeid.errors import UnknownKindError
from sqldeid.sql import Statement, identifier, render, table_name
from sqldeid.sql.templates import head_of, source_of
from sqldeid.stages import Step
from sqldeid.tables.check.bases import METHODS
from sqldeid.tables.criteria import others_of
from sqldeid.tables.disguise.disguise import disguised, pseudonyms, shifted
from sqldeid.tables.fold.combined import combined_columns, counted_columns
from sqldeid.tables.plan.choosing import choosing
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan
from sqldeid.tables.release.criteria_steps import judged, measures, proofs, scored
from sqldeid.tables.rows import stacking
from sqldeid.tables.rows.shape import kept_columns

DIALECT = "duckdb"

_OWN = {
    "postgres": {
        "publish/create_schema": ("publish/list_schemas", "publish/create_schema", "publish/claim_name"),
        "tables/write/stage_rows": ("tables/write/stage_rows", "publish/copy_table"),
        "tables/write/stage_classes": ("tables/write/stage_classes", "publish/copy_table"),
    },
    "spark": {
        "publish/create_view": ("publish/flip_view",),
        "publish/comment_view": (),
        "publish/copy_parquet": (
            *("publish/create_there", "publish/open_folder", "publish/read_claims", "publish/write_claim"),
            *("publish/create_schema", "publish/comment_column", "publish/write_folder", "publish/count_files"),
            *("publish/compare_folder", "publish/write_note", "publish/drop_released", "publish/drop_schema"),
        ),
        "tables/write/stage_rows": ("tables/write/stage_rows", "publish/create_staged"),
        "tables/write/stage_classes": ("tables/write/stage_classes", "publish/create_staged"),
    },
}
"""By engine: what it does in the place of a step, as often as it takes; only the step itself is sure to run."""

_LAST = {
    "postgres": ("publish/list_grants", "publish/drop_view", "publish/rename_table", "publish/grant_right"),
    "spark": ("publish/drop_view", "publish/rename_table"),
}
"""What an engine does last, where releases are staged under other names than their own."""

UNSTILL = ("spark",)
"""Engines without a snapshot: the source's persons are counted so that they are known again."""


def steps(plan: TablePlan, kind: str, dialect: str = DIALECT) -> tuple[Step, ...]:
    """What a run of this plan executes, in order; what opens the database and ends the transaction is left out.

    Parameters
    ----------
    kind
        What the release becomes: ``table``, ``view`` or ``parquet``.
    dialect
        Of the engine that the source lies in.

    Cost: no statement is run.
    """
    folding = tuple(_fold(plan, dialect))
    if plan.sampled:
        drawn = (
            _step("tables/epsilon_safe/read_classes"),
            _step("tables/check/roll_up", None),
            _step("tables/check/check_nodes", None),
        )
        found = (
            _step("tables/check/list_failing", None),
            _step("tables/check/histogram_nodes"),
            _step("tables/write/list_shown", None),
        )
        return (*folding, *drawn, *_stage(plan, kind), *_verify(plan), *_again(dialect), *found)
    return (*folding, *_search(plan), *_stage(plan, kind), *_verify(plan), *_again(dialect), *_report(plan))


def certificate_steps(planned: TablePlan) -> tuple[Step, ...]:
    """What `verify` executes to check a certificate; writing one takes no statement.

    Cost: no statement is run.
    """
    plan = choosing(planned)
    first = shaping_steps(plan)
    n = len(plan.qis)
    return (
        *first,
        _step("tables/rows/count_values", n, *(_count_values(plan, q, i) for i, q in enumerate(plan.qis))),
        _step("tables/rows/read_values", n),
        _step("tables/certificate/prove_fold"),
        *_proof_places(plan),
        _step("tables/certificate/prove_marginals", n),
        _step("tables/certificate/prove_nodes", None),
        *(_prove_persons(plan) if plan.many else _prove_rows(plan)),
    )


def _prove_persons(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/certificate/prove_persons", None)
    for name in ("tables/certificate/prove_values", "tables/certificate/read_ranked") if plan.criteria else ():
        yield _step(name, None)


def _prove_rows(plan: TablePlan) -> tuple[Step, ...]:
    return (
        _step("tables/certificate/prove_failing", None),
        *(_step(name, None) for name in proofs(plan)),
        *([_step("tables/certificate/prove_joint", None)] if any(map(others_of, plan.criteria)) else []),
        *([_step("tables/certificate/prove_known", None)] if plan.concealing is not None else []),
        *(
            [_step("tables/certificate/prove_spread", None), _step("tables/certificate/read_ranked", None)]
            if plan.criteria
            else []
        ),
    )


def shaping_steps(plan: TablePlan, dialect: str = DIALECT) -> tuple[Step, ...]:
    """What makes one row per person of the source, and counts the persons."""
    return tuple(step for step in _fold(plan, dialect) if step.template in _SHAPING)


def restacking_steps(plan: TablePlan) -> tuple[Step, ...]:
    """What makes the stacks once more, for verification."""
    return tuple(_restack(plan))


def step_of(template: str, times: int | None = 1) -> Step:
    """A kind of statement that a run executes."""
    return _step(template, times)


def _proof_places(plan: TablePlan) -> Iterator[Step]:
    if not plan.beyond_k:
        return
    if plan.judged:
        yield _step("tables/verify/rank_values", len(plan.judged))
    yield _step("tables/certificate/prove_places")


_SHAPING = (
    *(
        "tables/rows/pick_rows",
        "tables/rows/count_doubtful",
        "tables/rows/stack_rows",
        "tables/rows/summarise_rows",
        "tables/rows/join_stacks",
    ),
    *("tables/rows/keep_source", "tables/rows/check_person", "tables/rows/check_keys"),
)


def _stack(plan: TablePlan) -> Iterator[Step]:
    """The statements of stacks; under `epsilon-safe` nobody asks whether an order is total."""
    if plan.stacked is None:
        return
    for made in stacking.statements(plan.stacked, plan.source, kept_columns(plan), plan.name):
        if made.template != "tables/rows/count_doubtful" or not plan.sampled:
            yield _step(made.template, 1, made.sql)


def _fold(plan: TablePlan, dialect: str = DIALECT) -> Iterator[Step]:
    yield from _stack(plan)
    if plan.joined and plan.stacked is None:
        yield _step("tables/rows/keep_source", 1, _keep_source(plan))
    check = "tables/rows/check_keys" if dialect in UNSTILL else "tables/rows/check_person"
    yield _step(check, 1, render(check, dialect, source=_source(plan), person=plan.person_column))
    if plan.versions and not plan.sampled:
        yield _step("tables/plan/count_versions", len(plan.versions))
    coded: tuple[QuasiIdentifier | OtherColumn, ...] = (*plan.qis, *plan.judged)
    if dialect != DIALECT:
        yield _step("tables/fold/combine_rows", 1, _combine_rows(plan))
        yield _step("tables/fold/count_every", 1, _count_every(plan))
        yield _step("tables/fold/read_every")
        yield _step("tables/fold/code_every")
        yield _step("tables/fold/pick_coded", len(coded))
    else:
        yield _step("tables/rows/count_values", len(coded), *(_count_values(plan, c, i) for i, c in enumerate(coded)))
        yield _step("tables/rows/read_values", len(coded))
        yield _step("tables/fold/code_values", len(coded))
    yield _step("tables/fold/fold_classes")
    if plan.many:
        yield from _persons(plan)
        return
    if plan.part.search.method in METHODS:
        yield _step("engine/count_rows", None)
    if plan.judged:
        joint = {c.column for c in plan.criteria if others_of(c)}
        yield _step("tables/fold/merge_classes")
        yield _step("tables/fold/spread_classes", len(plan.judged) + len(joint))
    yield _step("tables/fold/total_classes")


def _persons(plan: TablePlan) -> Iterator[Step]:
    """The classes with their persons, where one may have many rows."""
    yield _step("tables/fold/merge_classes")
    yield _step("tables/fold/settle_pairs", None)
    for name in ("tables/fold/split_pairs", "tables/fold/reference_persons") if plan.judged else ():
        yield _step(name, len(plan.judged))
    yield _step("tables/fold/total_classes")
    if plan.others:
        yield _step("tables/release/count_linking")


def _source(plan: TablePlan) -> exp.Expr:
    return table_name(f"{plan.name}_source") if plan.joined or plan.stacked is not None else plan.source


def _combine_rows(plan: TablePlan) -> str:
    combined, (columns, n) = table_name(f"{plan.name}_combined"), combined_columns(plan)
    return render(
        "tables/fold/combine_rows", combined=combined, source=_source(plan), columns=columns, n=identifier(n.name)
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
        source=_source(plan),
    )


def _keep_source(plan: TablePlan) -> str:
    kept = table_name(f"{plan.name}_source")
    return render("tables/rows/keep_source", kept=kept, columns=kept_columns(plan), source=plan.source)


def _search(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/check/roll_up", None)
    yield _step("tables/check/check_nodes", None)
    if not plan.beyond_k:
        yield _step("tables/check/list_failing", None)
        return
    if plan.many:
        yield from _judge_persons(plan)
        return
    if plan.part.search.method == "inverse-ola":
        yield _step("tables/check/list_failing", None)
    if plan.criteria:
        yield _step("engine/count_rows", None)
        for name in measures(plan):
            yield _step(name, None)
    if plan.concealing is not None:
        yield _step("tables/check/list_cells", None)
    for name in (
        "tables/check/judge_classes",
        "tables/check/sum_verdicts",
        *(["tables/check/list_spread"] if plan.criteria else []),
        "tables/check/list_verdicts",
    ):
        yield _step(name, None)


def _judge_persons(plan: TablePlan) -> Iterator[Step]:
    names = ["engine/count_rows", "tables/check/size_persons"]
    if plan.criteria:
        names += ["tables/check/trim_spread", *measures(plan), "tables/check/judge_classes"]
    for name in (*names, "tables/check/judge_persons", "tables/check/sum_verdicts", "tables/check/list_verdicts"):
        yield _step(name, None)


def _disguise(plan: TablePlan) -> Iterator[Step]:
    """What replaces keys and dates; the parts are of two hundred thousand values each."""
    if not disguised(plan):
        return
    keys = len({c.source.name for c in pseudonyms(plan)} | ({plan.person} if shifted(plan) else set()))
    yield _step("tables/disguise/number_values", keys)
    for name in ("tables/disguise/read_numbered", "tables/disguise/create_secrets", "tables/disguise/append_secrets"):
        yield _step(name, keys if name == "tables/disguise/create_secrets" else None)
    yield _step("tables/disguise/disguise_source")


def _stage(plan: TablePlan, kind: str) -> Iterator[Step]:
    yield from _disguise(plan)
    if plan.beyond_k:
        yield _step("tables/check/keep_failing")
    if plan.part.frozen:
        yield _step("tables/write/fingerprint_source")
    yield _step("tables/write/label_values", None)
    if plan.part.view == "computed":
        yield from _stage_computed(plan)
        return
    blank = plan.part.privacy.blanks
    yield _step("tables/write/keep_classes", None if blank and plan.beyond_k else 1)
    if blank and plan.criteria:
        yield _step("tables/check/merge_blanked", None)
    if blank and plan.concealing is not None:
        yield _step("tables/check/merge_known", None)
    yield from () if plan.sampled else (_step("run/sum_columns", None),)
    if kind != "parquet":
        yield _step("publish/create_schema")
    yield _step("tables/write/stage_rows" if plan.others else "tables/write/stage_classes")
    match kind:
        case "parquet":
            yield _step("publish/copy_parquet")
        case "view":
            yield _step("publish/create_view")
            yield from _notes("publish/comment_table", plan)
            yield from _notes("publish/comment_view", plan)
        case "table":
            yield from _notes("publish/comment_table", plan)
        case unknown:
            raise UnknownKindError(unknown, "kind of destination")


def _stage_computed(plan: TablePlan) -> Iterator[Step]:
    yield _step("run/sum_columns", None)
    yield _step("publish/create_schema")
    yield _step("tables/write/write_labels", None)
    yield _step("publish/comment_table", None)
    yield _step("tables/write/stage_computed")
    yield from _notes("publish/comment_view", plan)


def _notes(template: str, plan: TablePlan) -> Iterator[Step]:
    yield _step(template)
    yield _step("publish/comment_column", len(plan.released))


def _again(dialect: str) -> Iterator[Step]:
    """What looks once more whether the source has the persons that were folded."""
    if dialect in UNSTILL:
        yield _step("tables/rows/sum_keys")


def _verify(plan: TablePlan) -> Iterator[Step]:
    blank = plan.part.privacy.blanks
    yield from _restack(plan)
    yield _step("tables/verify/group_source")
    yield from _flag_persons(plan) if plan.many else _flag_rows(plan)
    yield _step("tables/verify/flag_source")
    yield _step("tables/verify/group_release")
    if plan.criteria and blank:
        yield _step("tables/verify/split_blanked", None)
        yield _step("engine/count_rows", None)
    if plan.concealing is not None and blank:
        yield _step("tables/verify/blank_known", None)
    if plan.sampled:
        yield _step("tables/verify/compare_sample")
        yield _step("tables/verify/count_sizes")
        return
    for name in ("tables/verify/expect_release", "tables/verify/compare_release", "tables/verify/count_sizes"):
        yield _step(name)
    yield from _verify_persons(plan) if plan.many else _verify_rows(plan)
    if pseudonyms(plan):
        yield _step("tables/disguise/check_pseudonyms", 2)


def _flag_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = judged(plan)
    blank = plan.part.privacy.blanks
    if criteria:
        yield _step("tables/verify/split_source", None if blank else columns)
        yield _step("tables/verify/rank_values", None if blank else 2 * columns + close)
        if number := scored(plan):
            yield _step("tables/verify/score_classes", None if blank else 4 * number)
        yield _step("tables/verify/fail_classes", None if blank else 2 * criteria)
    if plan.concealing is not None:
        yield _step("tables/verify/label_rows", None if blank else 1)
        yield _step("tables/verify/split_known", None if blank else 2)
        yield _step("tables/verify/read_known", None if blank else 2)
        yield _step("tables/verify/pick_classes")


def _flag_persons(plan: TablePlan) -> Iterator[Step]:
    for name in ("tables/verify/own_classes", "tables/verify/count_owned", "tables/verify/few_persons"):
        yield _step(name)
    for name in (
        (
            "tables/verify/split_persons",
            "tables/verify/trim_cells",
            "tables/verify/rank_values",
            *(["tables/verify/score_classes"] if scored(plan) else []),
            "tables/verify/fail_classes",
        )
        if plan.criteria
        else ()
    ):
        yield _step(name, None)


def _verify_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = judged(plan)
    if criteria:
        yield _step("tables/verify/split_release", columns)
        yield _step("engine/count_rows", None if plan.part.privacy.blanks else criteria)
        yield _step("tables/verify/measure_classes", criteria + close)


def _verify_persons(plan: TablePlan) -> Iterator[Step]:
    for name in (
        ("tables/verify/keep_passing", "engine/count_rows", "tables/verify/measure_classes") if plan.criteria else ()
    ):
        yield _step(name, None)
    yield _step("tables/verify/tell_persons")
    yield _step("tables/verify/count_owners")


def _restack(plan: TablePlan) -> Iterator[Step]:
    for one in plan.stacked.stacks if plan.stacked is not None else ():
        if one.through is not None:
            yield _step("tables/rows/repick_rows")
        yield _step("tables/rows/restack_rows" if one.ordered else "tables/rows/resummarise_rows")
    if plan.stacked is not None:
        yield _step("tables/rows/join_stacks")
        yield _step("tables/rows/compare_stacks")


def _report(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/check/histogram_nodes")
    if plan.many:
        yield _step("tables/check/count_persons_sizes")
    yield _step("tables/write/count_suppressed", None)
    if plan.many:
        yield _step("tables/check/read_sized", None)
    yield _step("tables/write/list_shown", None)
    if plan.others:
        yield _step("tables/release/count_distinct", None)


def _step(template: str, times: int | None = 1, *statements: str) -> Step:
    return Step(template, purpose(template), times, statements)


def in_dialect(listed: Sequence[Step], dialect: str) -> tuple[Step, ...]:
    """The same steps with the texts that another engine runs; what is asked of folded classes runs in its workbench."""
    if dialect == DIALECT:
        return tuple(listed)
    return (
        *(own for step in listed for own in _of_engine(step, dialect)),
        *(_step(template, None) for template in _LAST.get(dialect, ())),
    )


def _of_engine(step: Step, dialect: str) -> Iterator[Step]:
    """A step as an engine takes it, with what it does around it."""
    for template in _OWN.get(dialect, {}).get(step.template, (step.template,)):
        if template == step.template:
            texts = (t.written_for(dialect) if isinstance(t, Statement) else t for t in step.statements)
            yield replace(step, statements=tuple(texts))
        else:
            yield _step(template, None)


def purpose(template: str) -> str:
    """The first sentence of a template's head."""
    named = [source_of(f"{template}{engine}") for engine in (f".{DIALECT}", ".each", "", ".postgres", ".spark")]
    text = next(found for found in named if found is not None)
    head = re.sub(r"\s+", " ", head_of(text)).strip()
    return re.split(r"(?<=\.) ", head, maxsplit=1)[0]
