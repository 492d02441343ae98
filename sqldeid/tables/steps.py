"""The statements of a planned release in order, each with its purpose, before any of them is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.sql import identifier, render, table_name
from sqldeid.sql.templates import SUFFIX, folder
from sqldeid.tables.plan import OtherColumn, QuasiIdentifier, TablePlan

DIALECT = "duckdb"


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


def steps(plan: TablePlan, kind: str) -> tuple[Step, ...]:
    """What a run of this plan executes, in order; what opens the database and ends the transaction is left out.

    Parameters
    ----------
    kind
        What the release becomes: ``table``, ``view`` or ``parquet``.

    Cost: no statement is run.
    """
    if plan.sampled:
        drawn = (_step("tables/read_classes"), _step("tables/roll_up", None), _step("tables/check_nodes", None))
        found = (_step("tables/list_failing", None), _step("tables/histogram_nodes"))
        return (*_fold(plan), *drawn, *_stage(plan, kind), *_verify(plan), *found)
    return (*_fold(plan), *_search(plan), *_stage(plan, kind), *_verify(plan), *_report(plan))


def certificate_steps(plan: TablePlan) -> tuple[Step, ...]:
    """What `verify` executes to check a certificate; writing one takes no statement.

    Cost: no statement is run.
    """
    first = [s for s in _fold(plan) if s.template in ("tables/keep_source", "tables/check_person")]
    n = len(plan.qis)
    return (
        *first,
        _step("tables/count_values", n, *(_count_values(plan, q, i) for i, q in enumerate(plan.qis))),
        _step("tables/read_values", n),
        _step("tables/prove_fold"),
        *_proof_places(plan),
        _step("tables/prove_marginals", n),
        _step("tables/prove_nodes", None),
        _step("tables/prove_failing", None),
        *([_step("tables/prove_criterion", None)] if plan.criteria else []),
        *([_step("tables/prove_known", None)] if plan.concealing is not None else []),
    )


def _proof_places(plan: TablePlan) -> Iterator[Step]:
    if not plan.beyond_k:
        return
    if plan.judged:
        yield _step("tables/rank_values", len(plan.judged))
    yield _step("tables/prove_places")


def _fold(plan: TablePlan) -> Iterator[Step]:
    if plan.joined:
        yield _step("tables/keep_source", 1, _keep_source(plan))
    person = render("tables/check_person", source=_source(plan), person=plan.person_column)
    yield _step("tables/check_person", 1, person)
    coded: tuple[QuasiIdentifier | OtherColumn, ...] = (*plan.qis, *plan.judged)
    yield _step("tables/count_values", len(coded), *(_count_values(plan, c, i) for i, c in enumerate(coded)))
    yield _step("tables/read_values", len(coded))
    yield _step("tables/code_values", len(coded))
    yield _step("tables/fold_classes")
    if plan.judged:
        yield _step("tables/spread_classes", len(plan.judged))
        yield _step("tables/merge_classes")
    yield _step("tables/total_classes")


def _source(plan: TablePlan) -> exp.Expr:
    return table_name(f"{plan.name}_source") if plan.joined else plan.source


def _count_values(plan: TablePlan, column: QuasiIdentifier | OtherColumn, number: int) -> str:
    return render(
        "tables/count_values",
        values=table_name(f"{plan.name}_values_{number}"),
        column=column.column,
        type=column.travel_type,
        source=_source(plan),
    )


def _keep_source(plan: TablePlan) -> str:
    names = dict.fromkeys([c.source.name for c in plan.released] + ([plan.person] if plan.person else []))
    kept = table_name(f"{plan.name}_source")
    return render("tables/keep_source", kept=kept, columns=[identifier(n) for n in names], source=plan.source)


def _search(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/roll_up", None)
    yield _step("tables/check_nodes", None)
    if not plan.beyond_k:
        yield _step("tables/list_failing", None)
        return
    if plan.criteria:
        yield _step("tables/count_spread", None)
    if plan.concealing is not None:
        yield _step("tables/list_cells", None)
    for name in ("judge_classes", "sum_verdicts", "list_verdicts"):
        yield _step(f"tables/{name}", None)
    yield _step("tables/keep_failing")


def _stage(plan: TablePlan, kind: str) -> Iterator[Step]:
    if plan.part.frozen:
        yield _step("tables/fingerprint_source")
    yield _step("tables/label_values", None)
    if plan.part.view == "computed":
        yield from _stage_computed(plan)
        return
    blank = plan.part.privacy.suppression == "blank"
    yield _step("tables/keep_classes", None if blank and plan.beyond_k else 1)
    if blank and plan.criteria:
        yield _step("tables/merge_blanked", None)
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
        case _:
            yield from _notes("publish/comment_table", plan)


def _stage_computed(plan: TablePlan) -> Iterator[Step]:
    yield _step("publish/create_schema")
    yield _step("tables/write_labels", None)
    yield _step("publish/comment_table", None)
    yield _step("tables/stage_computed")
    yield from _notes("publish/comment_view", plan)


def _notes(template: str, plan: TablePlan) -> Iterator[Step]:
    yield _step(template)
    yield _step("publish/comment_column", len(plan.released))


def _verify(plan: TablePlan) -> Iterator[Step]:
    columns, criteria = len({c.column for c in plan.criteria}), len(plan.criteria)
    blank = plan.part.privacy.suppression == "blank"
    yield _step("tables/group_source")
    if criteria:
        yield _step("tables/split_source", None if blank else columns)
        yield _step("tables/rank_values", None if blank else 2 * columns)
        yield _step("tables/fail_classes", None if blank else 2 * criteria)
    if plan.concealing is not None:
        yield _step("tables/label_rows")
        yield _step("tables/split_known", 2)
        yield _step("tables/read_known", 2)
        yield _step("tables/pick_classes")
    yield _step("tables/flag_source")
    yield _step("tables/group_release")
    if criteria and blank:
        yield _step("tables/split_blanked", None)
        yield _step("tables/count_rows", None)
    if plan.sampled:
        yield _step("tables/compare_sample")
        yield _step("tables/count_sizes")
        return
    for name in ("expect_release", "compare_release", "count_sizes"):
        yield _step(f"tables/{name}")
    if criteria:
        yield _step("tables/split_release", columns)
        yield _step("tables/count_rows", None if blank else criteria)
        yield _step("tables/measure_classes", criteria)


def _report(plan: TablePlan) -> Iterator[Step]:
    yield _step("tables/histogram_nodes")
    yield _step("tables/count_suppressed", None)
    if plan.others:
        yield _step("tables/count_distinct", None)


def _step(template: str, times: int | None = 1, *statements: str) -> Step:
    return Step(template, purpose(template), times, statements)


def purpose(template: str) -> str:
    """The first sentence of a template's head."""
    own = folder() / f"{template}.{DIALECT}{SUFFIX}"
    text = (own if own.exists() else folder() / f"{template}{SUFFIX}").read_text(encoding="utf-8")
    head = re.sub(r"\s+", " ", text.removeprefix("{#-").partition("#}")[0]).strip()
    return re.split(r"(?<=\.) ", head, maxsplit=1)[0]
