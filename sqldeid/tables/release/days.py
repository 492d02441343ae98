"""What table releases tell of days, for a run that holds them to each other: shifted dates beside true ones.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.making import Days, Published
from sqldeid.publish import DAYS_NOTE, days_of
from sqldeid.tables.disguise.disguise import days_noted, refuse_bare_dates
from sqldeid.tables.plan.days import first_of_years, tells_days
from sqldeid.tables.plan.plan import OtherColumn, TablePlan
from sqldeid.tables.release.nature import nature

if TYPE_CHECKING:
    from sqldeid.tables.itemset.plan import ChildPlan
    from sqldeid.tables.mondrian.plan import PartitionPlan
    from sqldeid.tables.release.face import Unit


@dataclass(frozen=True, slots=True)
class InSource:
    """Columns of a relation that leave as they are there.

    Parameters
    ----------
    key
        The release's, in the job.
    columns
        Of the source, by their names in the release.
    """

    key: str
    source: exp.Expr
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What of a release is looked at beside shifted dates, as far as that takes more than the plan.

    Parameters
    ----------
    levels
        Keys of the quasi-identifying dates, whose level the search finds.
    labels
        Keys of the other columns that are generalised.
    """

    reads: tuple[InSource, ...]
    levels: tuple[str, ...]
    labels: tuple[str, ...]


def refuse_bare(plan: Unit) -> None:
    """Refuse a true date beside shifted ones of one release, or of linked ones.

    Raises
    ------
    JobError
        As `sqldeid.tables.disguise.disguise.refuse_bare_dates`.
    """
    if plan.way == "linked":
        with plan.naming():
            refuse_bare_dates(plan.joint)
    elif plan.way == "lattice":
        refuse_bare_dates(plan)
    elif plan.way == "local":
        refuse_bare_dates(plan.table)


def to_look_at(plan: Unit, engine: Engine) -> LookedAt:
    """What of a release is looked at beside shifted dates, before its search and after it.

    What is stacked is only looked at once it is written. Cost: no statement but of the catalogue.
    """
    members = plan.members if plan.way == "linked" else (plan,)
    parts = [(m.table if m.way == "local" else m) for m in members]
    reads = [_in_source(part, engine) for part in parts]
    tables = [part for part in parts if part.way == "lattice"]
    dated = {f"{t.key}.columns.{q.name}": first_of_years(q) > 0 for t in tables for q in t.qis}
    if plan.way == "child":
        dated = {f"{plan.key}.columns.{q.name}": False for q in plan.table.qis}
    levels, labels = (tuple(key for key, date in dated.items() if date is wanted) for wanted in (True, False))
    return LookedAt(tuple(read for read in reads if read.columns), levels, labels)


def _in_source(plan: TablePlan | PartitionPlan | ChildPlan, engine: Engine) -> InSource:
    if plan.way == "child":
        return InSource(plan.key, plan.table.source, {c.name: c.source for c in plan.sensitive})
    if plan.way == "mondrian":
        return InSource(plan.key, plan.source, {name: source for name, source, _ in plan.others})
    shown = {c.name: c.source for c in plan.released if isinstance(c, OtherColumn) and c.disguise is None}
    if plan.stacked is not None:
        there = {c.name for c in engine.columns(plan.source, key=plan.key)}
        shown = {name: source for name, source in shown.items() if source.name in there}
    return InSource(plan.key, plan.source, shown)


def days_there(plan: Unit, there: Mapping[str, Published], engine: Engine) -> Days:
    """What published tables tell of days: by levels that their re-check has confirmed, and by the types written.

    Parameters
    ----------
    there
        What was published, and its note, by name.
    """
    found = nature(plan)
    days = found.days
    if plan.way != "mondrian" and plan.way != "child":
        note = there[found.names[0]][1]
        table = plan.table if plan.way == "local" else plan.joint if plan.way == "linked" else plan
        shifted_there, shown = days_of({**note, **_noted_again(table, note)})
        days = replace(days, shifted=shifted_there, shown=shown)
    typed = [
        f"tables.{name}.columns.{c.name}"
        for name in found.names
        for c in engine.columns(there[name][0])
        if tells_days(c)
    ]
    return replace(days, shown=tuple(dict.fromkeys((*days.shown, *(k for k in typed if k not in days.shifted)))))


def _noted_again(plan: TablePlan, note: Mapping[str, Any]) -> dict[str, object]:
    """What a note must say of days, by its levels."""
    layers = note["layers"] if "layers" in note else [[note["node"][q.name] for q in plan.qis]]
    return {DAYS_NOTE: {}, **days_noted(plan, [tuple(layer) for layer in layers])}
