"""A computed view: it generalises and suppresses at each reading, where soundness.md 5 allows that.

It stands in the source database, for people who may see the source: its text and its hierarchy tables show values.
Offered for k-anonymity alone, with dropped rows, and only if the source is frozen or nothing but quasi-identifying
columns is shown (the job refuses the rest).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.publish import Note, Staging
from sqldeid.sql import identifier, literal, render
from sqldeid.sql.steps import step
from sqldeid.stages import Stage
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.write.draft import Beside, Draft
from sqldeid.tables.write.stage import Chosen, labels

Statement = Callable[[exp.Table], str]


def stage_computed(chosen: Chosen, engine: Engine, staging: Staging, note: Note) -> exp.Expr:
    """Write the view and the hierarchy tables that it reads; the view, to be verified."""
    tables = {
        c.qi.name: _label_statement(chosen, engine, i, level)
        for i, (c, level) in enumerate(zip(chosen.folded.columns, chosen.node, strict=True))
        if level > 0 or not c.qi.typed
    }
    return staging.write_computed(partial(_view_statement, chosen), note, tables)


def _label_statement(chosen: Chosen, engine: Engine, index: int, level: int) -> Statement:
    coded = chosen.folded.columns[index]
    shown = labels(chosen, engine, index, level)

    def statement(target: exp.Table) -> str:
        mask = coded.field.mask(level)
        return render("tables/write/write_labels", target=target, coded=coded.table, labels=shown, mask=mask)

    return statement


def _view_statement(chosen: Chosen, target: exp.Table, tables: dict[str, exp.Table]) -> str:
    plan = chosen.plan
    columns = [
        _column(i, c, level, tables)
        for i, (c, level) in enumerate(zip(chosen.folded.columns, chosen.node, strict=True))
    ]
    return render(
        "tables/write/stage_computed",
        target=target,
        source=without_catalog(plan),
        k=chosen.k,
        text=plan.text,
        person=plan.person_column,
        alias=identifier("sqldeid person"),
        columns=columns,
        others=[{"name": identifier(o.name), "value": o.column} for o in plan.others],
        released=[identifier(c.name) for c in plan.released],
    )


def _column(number: int, coded: Coded, level: int, tables: dict[str, exp.Table]) -> dict[str, object]:
    null_label = None
    if coded.null_code is not None and (level > 0 or not coded.qi.typed):
        null_leaf = coded.hierarchy.leaf[coded.hierarchy.values.is_null().to_numpy(zero_copy_only=False)][0]
        null_label = literal(coded.hierarchy.labels[level][coded.hierarchy.groups[level][null_leaf]])
    return {
        "name": identifier(coded.qi.name),
        "column": coded.qi.column,
        "alias": identifier(f"m{number}"),
        "labels": tables.get(coded.qi.name),
        "null_label": null_label,
    }


def without_catalog(plan: TablePlan) -> exp.Expr:
    """The source as a view's text may name it: whoever opens the file gives the catalogue its name."""
    source = plan.source.copy()
    for table in source.find_all(exp.Table):
        if table.catalog.casefold() == "temp":
            raise JobError.at(f"{plan.key}.view", "a computed view cannot read a temporary table")
        table.set("catalog", None)
    return source


def frozen(plan: TablePlan) -> Beside:
    """What accompanies a release whose source never changes: the note has its fingerprint."""

    def take(draft: Draft) -> None:
        draft.note = draft.note.also({"source_fingerprint": fingerprint(draft.plan, draft.engine)})

    statements = [step("tables/write/fingerprint_source")]
    return Beside(before=(Stage("", take, lambda _: statements),)) if plan.frozen else Beside()


def fingerprint(plan: TablePlan, engine: Engine) -> str:
    """Of all rows and columns that the release reads; changes when the source does. Cost: one scan."""
    columns = [c.column for c in plan.released]
    if plan.person_column is not None:
        columns.append(plan.person_column)
    row = engine.row("tables/write/fingerprint_source", source=plan.source, columns=columns)
    return str(row["fingerprint"])
