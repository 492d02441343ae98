"""Whether a table of test rows is one: of the source's types, of other persons, and with labels that the source has.

A column of another type meets no category of the release, a label that is written otherwise no class, and a person of
the training part is no test at all. None of these stops a model: its figures are only wrong. So they are looked for
before anything is searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from sqldeid.catalogue.beneath import beneath
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.insight.utility_rows import features
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.columns import OtherColumn
from sqldeid.tables.plan.plan import TablePlan

MANY_ALIKE = 0.9
"""Share of the test rows from which it is told that they are rows of the source in all columns that a model sees."""

_KEY = "--test"
_SCALE = re.compile(r"DECIMAL\(\d+, ?(\d+)\)")


def refuse_unlike(plan: TablePlan, other: TablePlan, label: OtherColumn, other_label: OtherColumn) -> None:
    """Refuse test rows whose columns are of other types than the source's.

    Raises
    ------
    JobError
        With the first such column.
    """
    there = {c.name: c.source for c in other.columns} | {label.name: other_label.source}
    for c in plan.columns:
        if c.name in there and not _alike(c.source, there[c.name]):
            raise _unlike(there[c.name].name, there[c.name].shown_type, c.source.shown_type, plan, other)
    if plan.person is not None and plan.person_type != other.person_type:
        raise _unlike(str(other.person), other.person_type, plan.person_type, plan, other)


def _alike(here: Column, there: Column) -> bool:
    """Whether equal values of two types are spelt alike, and equal to a model."""
    if here.kind != there.kind:
        return False
    if here.kind in ("timestamp", "other"):
        return here.type == there.type
    return here.kind != "number" or _scale(here) == _scale(there)


def _scale(c: Column) -> str:
    found = _SCALE.fullmatch(c.type)
    return c.type if found is None else found[1]


def _unlike(name: str, there: str, here: str, plan: TablePlan, other: TablePlan) -> JobError:
    return JobError.at(
        _KEY,
        f"{name} is of type {there} in {other.source_label}, and of type {here} in {plan.source_label}: its values "
        "would be none that the model knows; cast it in a view of the test rows, and name that",
    )


def refuse_seen(plan: TablePlan, other: TablePlan, label: OtherColumn, engine: Engine) -> tuple[str, ...]:
    """Refuse test rows that the training part has, or whose labels it has not; what is to be said of others.

    Parameters
    ----------
    plan, other
        Of the training part and the test part, whose sources are what was kept of them.

    Raises
    ------
    JobError
        If a person of the test rows is in the training part, or none of their labels.

    Notes
    -----
    Cost: two statements, each of which groups the rows of both parts once.
    """
    return (*_refuse_persons(plan, other, label, engine), *_refuse_labels(plan, other, label, engine))


def refuse_source(plan: TablePlan, other: TablePlan, engine: Engine) -> None:
    """Refuse the source as its own test rows, or a view over it, where there is no person key to tell persons apart.

    Raises
    ------
    JobError
        If it is that.
    """
    unfiltered = plan.source.this.find(exp.From) if plan.filtered else None
    read = plan.source if unfiltered is None else unfiltered.this
    if plan.person is not None or not isinstance(read, exp.Table):
        return
    own = ".".join(part.name for part in read.parts[-2:]).casefold()
    if any(f".{name}".endswith(f".{own}") for of in beneath(other.source, engine) for name in of or ()):
        raise JobError.at(
            _KEY,
            f"{other.source_label} is {plan.source_label}, or a view over it, and without a person key it is not known "
            "which of its rows the model is trained on; keep the test rows in a table of their own, or let two views "
            "split the rows, and name one as the source and one as the test rows",
        )


def _refuse_persons(plan: TablePlan, other: TablePlan, label: OtherColumn, engine: Engine) -> Iterator[str]:
    if plan.person is not None:
        found = _common(plan, other, [column(plan.person, "s")], column(plan.person, "s"), engine)
        if found["common"]:
            raise JobError.at(
                _KEY,
                f"{found['common']:,} of {found['different']:,} persons of {other.source_label} are in "
                f"{plan.source_label} by {plan.person}: a model is not tested on whom it was trained on. Leave them "
                "out of one of the two; where both tables number their own persons, number those of one on from the "
                "other's last",
            )
        return
    used = [c.column for c in (*features(plan, label), label)]
    found = _common(plan, other, used, label.column, engine)
    if found["known"] >= MANY_ALIKE * found["n"] > 0:
        yield (
            f"{plan.key}: {found['known']:,} of {found['n']:,} rows of {other.source_label} are equal to rows of "
            f"{plan.source_label} in all columns that the model sees; if they are the same persons, the figures are "
            "too good"
        )


def _refuse_labels(plan: TablePlan, other: TablePlan, label: OtherColumn, engine: Engine) -> Iterator[str]:
    found = _common(plan, other, [label.column], label.column, engine)
    if found["n"] and not found["known"]:
        raise JobError.at(
            _KEY,
            f"no value of {label.name} in {other.source_label} is one that {plan.source_label} has; write the labels "
            "alike in both",
        )
    if found["known"] < found["n"]:
        yield (
            f"{plan.key}: {found['n'] - found['known']:,} of {found['n']:,} rows of {other.source_label} have a value "
            f"of {label.name} that {plan.source_label} has not, and no model can name it: {found['common']} of "
            f"{found['different']} values are in both"
        )


def _common(
    plan: TablePlan, other: TablePlan, values: list[exp.Expr], present: exp.Expr, engine: Engine
) -> dict[str, int]:
    columns = [{"name": identifier(f"v{i}"), "value": value} for i, value in enumerate(values)]
    row = engine.row("insight/count_common", train=plan.source, test=other.source, columns=columns, present=present)
    return {name: int(n) for name, n in row.items()}
