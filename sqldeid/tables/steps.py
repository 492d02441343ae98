"""The statements of a planned release in order, each with its purpose, before any of them is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqldeid.errors import UnknownKindError
from sqldeid.sql import Statement, identifier, render, table_name
from sqldeid.sql.templates import SUFFIX, folder, head_of
from sqldeid.tables import stacking
from sqldeid.tables.bases import METHODS
from sqldeid.tables.choosing import choosing
from sqldeid.tables.combined import combined_columns, counted_columns
from sqldeid.tables.disguise import disguised, pseudonyms, shifted
from sqldeid.tables.plan import OtherColumn, QuasiIdentifier, TablePlan
from sqldeid.tables.privacy import TCloseness, others_of
from sqldeid.tables.shape import kept_columns

DIALECT = "duckdb"

_OWN = {
    "postgres": {
        "tables/sum_columns": (),
        "publish/create_schema": ("publish/list_schemas", "publish/create_schema", "publish/claim_name"),
        "tables/stage_rows": ("tables/stage_rows", "publish/copy_table"),
        "tables/stage_classes": ("tables/stage_classes", "publish/copy_table"),
    },
    "spark": {
        "tables/sum_columns": (),
        "publish/create_view": ("publish/flip_view",),
        "publish/comment_view": (),
        "publish/copy_parquet": (
            *("publish/create_there", "publish/open_folder", "publish/read_claims", "publish/write_claim"),
            *("publish/create_schema", "publish/comment_column", "publish/write_folder", "publish/count_files"),
            *("publish/compare_folder", "publish/write_note", "publish/drop_released", "publish/drop_schema"),
        ),
        "tables/stage_rows": ("tables/stage_rows", "publish/create_staged"),
        "tables/stage_classes": ("tables/stage_classes", "publish/create_staged"),
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


@dataclass(frozen=True, slots=True)
class Step:
    """One statement, or one kind of statement, of a run.

    Parameters
    ----------
    template
        Its template, as ``area/verb_noun``.
    purpose
        What it is for: the first sentence of the template's head.
    times
        How often it is run, where that is known; None where the search decides.
    statements
        Its text, where it follows from job and catalogue alone; temporary tables carry other names in a run.
    """

    template: str
    purpose: str
    times: int | None = 1
    statements: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "template": self.template,
            "purpose": self.purpose,
            "times": self.times,
            "statements": list(self.statements),
        }


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
        drawn = (_step("tables/read_classes"), _step("tables/roll_up", None), _step("tables/check_nodes", None))
        found = (_step("tables/list_failing", None), _step("tables/histogram_nodes"), _step("tables/list_shown", None))
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
        _step("tables/count_values", n, *(_count_values(plan, q, i) for i, q in enumerate(plan.qis))),
        _step("tables/read_values", n),
        _step("tables/prove_fold"),
        *_proof_places(plan),
        _step("tables/prove_marginals", n),
        _step("tables/prove_nodes", None),
        *(_prove_persons(plan) if plan.many else _prove_rows(plan)),
    )


def _prove_persons(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/prove_persons", None)
    for name in ("prove_values", "read_ranked") if plan.criteria else ():
        yield _step(f"tables/{name}", None)


def _prove_rows(plan: TablePlan) -> tuple[Step, ...]:
    return (
        _step("tables/prove_failing", None),
        *([_step("tables/prove_criterion", None)] if not all(map(others_of, plan.criteria)) else []),
        *([_step("tables/prove_joint", None)] if any(map(others_of, plan.criteria)) else []),
        *([_step("tables/prove_known", None)] if plan.concealing is not None else []),
        *([_step("tables/prove_spread", None), _step("tables/read_ranked", None)] if plan.criteria else []),
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
        yield _step("tables/rank_values", len(plan.judged))
    yield _step("tables/prove_places")


_SHAPING = (
    *("tables/pick_rows", "tables/count_doubtful", "tables/stack_rows", "tables/summarise_rows", "tables/join_stacks"),
    *("tables/keep_source", "tables/check_person", "tables/check_keys"),
)


def _stack(plan: TablePlan) -> Iterator[Step]:
    """The statements of stacks; under `epsilon-safe` nobody asks whether an order is total."""
    if plan.stacked is None:
        return
    for made in stacking.statements(plan.stacked, plan.source, kept_columns(plan), plan.name):
        if made.template != "tables/count_doubtful" or not plan.sampled:
            yield _step(made.template, 1, made.sql)


def _fold(plan: TablePlan, dialect: str = DIALECT) -> Iterator[Step]:
    yield from _stack(plan)
    if plan.joined and plan.stacked is None:
        yield _step("tables/keep_source", 1, _keep_source(plan))
    check = "tables/check_keys" if dialect in UNSTILL else "tables/check_person"
    yield _step(check, 1, render(check, dialect, source=_source(plan), person=plan.person_column))
    if plan.versions and not plan.sampled:
        yield _step("tables/count_versions", len(plan.versions))
    coded: tuple[QuasiIdentifier | OtherColumn, ...] = (*plan.qis, *plan.judged)
    if dialect != DIALECT:
        yield _step("tables/combine_rows", 1, _combine_rows(plan))
        yield _step("tables/count_every", 1, _count_every(plan))
        yield _step("tables/read_every")
        yield _step("tables/code_every")
        yield _step("tables/pick_coded", len(coded))
    else:
        yield _step("tables/count_values", len(coded), *(_count_values(plan, c, i) for i, c in enumerate(coded)))
        yield _step("tables/read_values", len(coded))
        yield _step("tables/code_values", len(coded))
    yield _step("tables/fold_classes")
    if plan.many:
        yield from _persons(plan)
        return
    if plan.part.search.method in METHODS:
        yield _step("tables/count_rows", None)
    if plan.judged:
        joint = {c.column for c in plan.criteria if others_of(c)}
        yield _step("tables/merge_classes")
        yield _step("tables/spread_classes", len(plan.judged) + len(joint))
    yield _step("tables/total_classes")


def _persons(plan: TablePlan) -> Iterator[Step]:
    """The classes with their persons, where one may have many rows."""
    yield _step("tables/merge_classes")
    yield _step("tables/settle_pairs", None)
    for name in ("split_pairs", "reference_persons") if plan.judged else ():
        yield _step(f"tables/{name}", len(plan.judged))
    yield _step("tables/total_classes")
    if plan.others:
        yield _step("tables/count_linking")


def _source(plan: TablePlan) -> exp.Expr:
    return table_name(f"{plan.name}_source") if plan.joined or plan.stacked is not None else plan.source


def _combine_rows(plan: TablePlan) -> str:
    combined, (columns, n) = table_name(f"{plan.name}_combined"), combined_columns(plan)
    return render("tables/combine_rows", combined=combined, source=_source(plan), columns=columns, n=identifier(n.name))


def _count_every(plan: TablePlan) -> str:
    values, combined = table_name(f"{plan.name}_values"), table_name(f"{plan.name}_combined")
    columns, n = counted_columns(plan), combined_columns(plan)[1]
    return render("tables/count_every", values=values, columns=columns, source=combined, n=n)


def _count_values(plan: TablePlan, column: QuasiIdentifier | OtherColumn, number: int) -> str:
    return render(
        "tables/count_values",
        values=table_name(f"{plan.name}_values_{number}"),
        column=column.column,
        type=column.travel_type,
        source=_source(plan),
    )


def _keep_source(plan: TablePlan) -> str:
    kept = table_name(f"{plan.name}_source")
    return render("tables/keep_source", kept=kept, columns=kept_columns(plan), source=plan.source)


def _search(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/roll_up", None)
    yield _step("tables/check_nodes", None)
    if not plan.beyond_k:
        yield _step("tables/list_failing", None)
        return
    if plan.many:
        yield from _judge_persons(plan)
        return
    if plan.part.search.method == "inverse-ola":
        yield _step("tables/list_failing", None)
    if plan.criteria:
        yield _step("tables/count_rows", None)
        yield _step("tables/count_spread", None)
    if plan.concealing is not None:
        yield _step("tables/list_cells", None)
    for name in ("judge_classes", "sum_verdicts", *(["list_spread"] if plan.criteria else []), "list_verdicts"):
        yield _step(f"tables/{name}", None)


def _judge_persons(plan: TablePlan) -> Iterator[Step]:
    names = ["count_rows", "size_persons"]
    if plan.criteria:
        names += ["trim_spread", "count_spread", "judge_classes"]
    for name in (*names, "judge_persons", "sum_verdicts", "list_verdicts"):
        yield _step(f"tables/{name}", None)


def _disguise(plan: TablePlan) -> Iterator[Step]:
    """What replaces keys and dates; the parts are of two hundred thousand values each."""
    if not disguised(plan):
        return
    keys = len({c.source.name for c in pseudonyms(plan)} | ({plan.person} if shifted(plan) else set()))
    yield _step("tables/number_values", keys)
    for name in ("read_numbered", "create_secrets", "append_secrets"):
        yield _step(f"tables/{name}", keys if name == "create_secrets" else None)
    yield _step("tables/disguise_source")


def _stage(plan: TablePlan, kind: str) -> Iterator[Step]:
    yield from _disguise(plan)
    if plan.beyond_k:
        yield _step("tables/keep_failing")
    if plan.part.frozen:
        yield _step("tables/fingerprint_source")
    yield _step("tables/label_values", None)
    if plan.part.view == "computed":
        yield from _stage_computed(plan)
        return
    blank = plan.part.privacy.blanks
    yield _step("tables/keep_classes", None if blank and plan.beyond_k else 1)
    if blank and plan.criteria:
        yield _step("tables/merge_blanked", None)
    if blank and plan.concealing is not None:
        yield _step("tables/merge_known", None)
    yield from () if plan.sampled else (_step("tables/sum_columns", None),)
    if kind != "parquet":
        yield _step("publish/create_schema")
    yield _step("tables/stage_rows" if plan.others else "tables/stage_classes")
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
    yield _step("tables/sum_columns", None)
    yield _step("publish/create_schema")
    yield _step("tables/write_labels", None)
    yield _step("publish/comment_table", None)
    yield _step("tables/stage_computed")
    yield from _notes("publish/comment_view", plan)


def _notes(template: str, plan: TablePlan) -> Iterator[Step]:
    yield _step(template)
    yield _step("publish/comment_column", len(plan.released))


def _again(dialect: str) -> Iterator[Step]:
    """What looks once more whether the source has the persons that were folded."""
    if dialect in UNSTILL:
        yield _step("tables/sum_keys")


def _verify(plan: TablePlan) -> Iterator[Step]:
    blank = plan.part.privacy.blanks
    yield from _restack(plan)
    yield _step("tables/group_source")
    yield from _flag_persons(plan) if plan.many else _flag_rows(plan)
    yield _step("tables/flag_source")
    yield _step("tables/group_release")
    if plan.criteria and blank:
        yield _step("tables/split_blanked", None)
        yield _step("tables/count_rows", None)
    if plan.concealing is not None and blank:
        yield _step("tables/blank_known", None)
    if plan.sampled:
        yield _step("tables/compare_sample")
        yield _step("tables/count_sizes")
        return
    for name in ("expect_release", "compare_release", "count_sizes"):
        yield _step(f"tables/{name}")
    yield from _verify_persons(plan) if plan.many else _verify_rows(plan)
    if pseudonyms(plan):
        yield _step("tables/check_pseudonyms", 2)


def _judged(plan: TablePlan) -> tuple[int, int, int]:
    """Splits of classes by sensitive columns, criteria, and those that are measured against the released rows, too."""
    close = sum(isinstance(c, TCloseness) for c in plan.criteria)
    return len({(c.column, others_of(c)) for c in plan.criteria}), len(plan.criteria), close


def _flag_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = _judged(plan)
    blank = plan.part.privacy.blanks
    if criteria:
        yield _step("tables/split_source", None if blank else columns)
        yield _step("tables/rank_values", None if blank else 2 * columns + close)
        yield _step("tables/fail_classes", None if blank else 2 * criteria)
    if plan.concealing is not None:
        yield _step("tables/label_rows", None if blank else 1)
        yield _step("tables/split_known", None if blank else 2)
        yield _step("tables/read_known", None if blank else 2)
        yield _step("tables/pick_classes")


def _flag_persons(plan: TablePlan) -> Iterator[Step]:
    for name in ("own_classes", "count_owned", "few_persons"):
        yield _step(f"tables/{name}")
    for name in ("split_persons", "trim_cells", "rank_values", "fail_classes") if plan.criteria else ():
        yield _step(f"tables/{name}", None)


def _verify_rows(plan: TablePlan) -> Iterator[Step]:
    columns, criteria, close = _judged(plan)
    if criteria:
        yield _step("tables/split_release", columns)
        yield _step("tables/count_rows", None if plan.part.privacy.blanks else criteria)
        yield _step("tables/measure_classes", criteria + close)


def _verify_persons(plan: TablePlan) -> Iterator[Step]:
    for name in ("keep_passing", "count_rows", "measure_classes") if plan.criteria else ():
        yield _step(f"tables/{name}", None)
    yield _step("tables/tell_persons")
    yield _step("tables/count_owners")


def _restack(plan: TablePlan) -> Iterator[Step]:
    for one in plan.stacked.stacks if plan.stacked is not None else ():
        if one.through is not None:
            yield _step("tables/repick_rows")
        yield _step("tables/restack_rows" if one.ordered else "tables/resummarise_rows")
    if plan.stacked is not None:
        yield _step("tables/join_stacks")
        yield _step("tables/compare_stacks")


def _report(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/histogram_nodes")
    if plan.many:
        yield _step("tables/count_persons_sizes")
    yield _step("tables/count_suppressed", None)
    if plan.many:
        yield _step("tables/read_sized", None)
    yield _step("tables/list_shown", None)
    if plan.others:
        yield _step("tables/count_distinct", None)


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
    named = [folder() / f"{template}{engine}{SUFFIX}" for engine in (f".{DIALECT}", "", ".postgres", ".spark")]
    text = next(path for path in named if path.exists()).read_text(encoding="utf-8")
    head = re.sub(r"\s+", " ", head_of(text)).strip()
    return re.split(r"(?<=\.) ", head, maxsplit=1)[0]
