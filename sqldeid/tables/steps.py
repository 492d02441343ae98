"""The statements of a planned release in order, each with its purpose, before any of them is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqldeid.sql import identifier, render, table_name
from sqldeid.sql.templates import SUFFIX, folder
from sqldeid.tables.plan import TablePlan

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
    return (*_fold(plan), *_search(), *_stage(plan, kind), *_verify(), *_report())


def _fold(plan: TablePlan) -> Iterator[Step]:
    source = table_name(f"{plan.name}_source") if plan.joined else plan.source
    if plan.joined:
        yield _step("tables/keep_source", 1, _keep_source(plan))
    yield _step("tables/check_person", 1, render("tables/check_person", source=source, person=plan.person_column))
    counted = [
        render(
            "tables/count_values",
            values=table_name(f"{plan.name}_values_{i}"),
            column=q.column,
            type=q.travel_type,
            source=source,
        )
        for i, q in enumerate(plan.qis)
    ]
    yield _step("tables/count_values", len(plan.qis), *counted)
    yield _step("tables/read_values", len(plan.qis))
    yield _step("tables/code_values", len(plan.qis))
    yield _step("tables/fold_classes")
    yield _step("tables/total_classes")


def _keep_source(plan: TablePlan) -> str:
    names = dict.fromkeys([c.source.name for c in plan.released] + ([plan.person] if plan.person else []))
    kept = table_name(f"{plan.name}_source")
    return render("tables/keep_source", kept=kept, columns=[identifier(n) for n in names], source=plan.source)


def _search() -> Iterator[Step]:
    yield _step("tables/check_nodes", None)
    yield _step("tables/list_failing", None)


def _stage(plan: TablePlan, kind: str) -> Iterator[Step]:
    yield _step("tables/label_values", None)
    if plan.part.view == "computed":
        yield from _stage_computed(plan)
        return
    yield _step("tables/keep_classes")
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


def _verify() -> Iterator[Step]:
    for name in ("group_source", "group_release", "expect_release", "compare_release", "count_sizes"):
        yield _step(f"tables/{name}")


def _report() -> Iterator[Step]:
    yield _step("tables/histogram_nodes")
    yield _step("tables/count_suppressed", None)


def _step(template: str, times: int | None = 1, *statements: str) -> Step:
    return Step(template, purpose(template), times, statements)


def purpose(template: str) -> str:
    """The first sentence of a template's head."""
    own = folder() / f"{template}.{DIALECT}{SUFFIX}"
    text = (own if own.exists() else folder() / f"{template}{SUFFIX}").read_text(encoding="utf-8")
    head = re.sub(r"\s+", " ", text.removeprefix("{#-").partition("#}")[0]).strip()
    return re.split(r"(?<=\.) ", head, maxsplit=1)[0]
