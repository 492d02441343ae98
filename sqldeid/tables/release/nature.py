"""What a run must know of a table release: whether it can be held to earlier ones, and what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.ledger.hashing import label_of
from sqldeid.making import Cohort, Days, Nature, Read, every_column, named, spelt
from sqldeid.sql import column, tables_of
from sqldeid.tables.plan.choosing import by_k
from sqldeid.tables.plan.days import shifted, shown_days
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan

if TYPE_CHECKING:
    from sqldeid.tables.itemset.plan import ChildPlan
    from sqldeid.tables.local.plan import LocalPlan
    from sqldeid.tables.mondrian.plan import PartitionPlan
    from sqldeid.tables.plan.aggregated import Aggregated
    from sqldeid.tables.plan.linking import Linked


def nature(plan: TablePlan | PartitionPlan | LocalPlan | Linked | ChildPlan) -> Nature:
    """What a run must know of a planned release."""
    if plan.way == "child":  # neither a node nor classes of its own: it goes with its parent
        return Nature(
            (plan.name,),
            plan.table.source,
            beside=(plan.parent.name, *(c.name for c in plan.earlier)),
            released=tuple((plan.key, c.name, c.source) for c in plan.sensitive),
            typed=tuple((f"{plan.key}.columns.{c.name}", c.source) for c in plan.sensitive if c.typed),
            days=replace(_days(plan.parent), shifted=(), shown=()),  # it shows no dates, unless as text or numbers
        )
    if plan.way == "local":
        held = not by_k(plan.table)  # who stays is judged by all criteria, and so would the levels of the others be
        return replace(nature(plan.table), policy=False, ledger=held, lattice=False, beside=plan.beside)
    if plan.way == "linked":
        return _of_join(plan)
    if plan.way == "mondrian":
        return _of_parts(plan)
    typed = tuple(
        (f"{plan.key}.columns.{c.name}", c.source)
        for c in plan.released
        if c.typed and not (isinstance(c, QuasiIdentifier) and plan.text)
    )
    return Nature(
        (plan.name,),
        plan.source,
        policy=True,
        ledger=True,
        many=plan.many,
        held="rows",
        columns=frozenset(label_of(c.name) for c in (*plan.others, *plan.aggregated)),
        lattice=True,
        person=plan.person_type,
        private=plan.sampled,
        released=tuple((plan.key, c.name, c.source) for c in plan.released),
        typed=typed,
        cohort=None if plan.sampled else _cohort(plan),
        told=_told(plan),
        drawn="" if plan.sample is None else f"sample {plan.sample}",
        days=_days(plan),
        reckoned=_reckoned(plan),
    )


def _of_join(plan: Linked) -> Nature:
    """What a run must know of linked tables, which are one release."""
    members = [nature(m) for m in plan.members]
    released = tuple(column for m in members for column in m.released)
    typed = tuple(column for m in members for column in m.typed)
    cohort = _cohort_of_join(plan)
    days = _days_of_join(plan)
    return Nature(
        plan.names,
        plan.joint.source,
        lattice=True,
        released=released,
        typed=typed,
        cohort=cohort,
        days=days,
        reckoned=tuple(column for m in members for column in m.reckoned),
    )


def _of_parts(plan: PartitionPlan) -> Nature:
    """What a run must know of a table that is cut at medians."""
    return Nature(
        (plan.name,),
        plan.source,
        released=tuple((plan.key, name, source) for name, source, _ in plan.others),
        typed=tuple((f"{plan.key}.columns.{name}", source) for name, source, _ in plan.others),
        cohort=_cohort_of_parts(plan),
        days=_days_of_parts(plan),
        reckoned=tuple(
            (f"{plan.key}.columns.{c.name}", c.source) for c in plan.cuts if c.source.kind in ("date", "timestamp")
        ),
    )


def _told(plan: TablePlan) -> dict[str, str]:
    """What of the job makes the classes and statistics of a table that shows any, by column.

    Two statistics of one class that are taken otherwise, or of nearly the same classes, are subtracted from each other.
    """
    stated = {key: plan.stated.get(key) for key in ("columns", "privacy", "search")}
    return {label_of(c.name): json.dumps(stated, sort_keys=True, default=str) for c in plan.aggregated}


def _cohort(plan: TablePlan) -> Cohort:
    shown = {label_of(c.name): (c.source, isinstance(c, QuasiIdentifier)) for c in plan.released if not _anew(c)}
    person = None if plan.person is None else (label_of(plan.person), plan.person)
    judged = frozenset(label_of(name) for name in plan.demands.named)
    apart = frozenset(plan.stated.get("never_with", ()))
    read = _unfiltered(plan.source, filtered=plan.filtered and plan.stacked is None)
    return Cohort(
        person,
        plan.person_type,
        _source(read),
        shown,
        judged,
        plan.many,
        apart,
        other_persons=frozenset(plan.stated.get("other_persons", ())),
        sensitive=tuple(label_of(c.name) for c in plan.released if _plain(c)),
        statistics={label_of(c.name): _taken(c, plan.demands.k) for c in plan.aggregated},
        relations=tuple(tables_of(read)),
    )


def _days(plan: TablePlan) -> Days:
    """What a table tells of days."""
    moved, shown = (_keys(plan.key, names) for names in ([c.name for c in shifted(plan)], shown_days(plan, None)))
    return Days(_persons(plan.person), moved, shown, frozenset(plan.stated.get("never_with", ())))


def _reckoned(plan: TablePlan) -> tuple[tuple[str, Column], ...]:
    """The columns of dates and times that are not only handed on, those that are shifted first."""
    moved = [c for c in plan.columns if isinstance(c, OtherColumn) and c.disguise in ("shift", "birth")]
    other = [c for c in plan.columns if isinstance(c, QuasiIdentifier) or c.to is not None or c.aggregated]
    timed = [c for c in (*moved, *other) if c.source.kind in ("date", "timestamp")]
    return tuple({f"{plan.key}.columns.{c.name}": c.source for c in timed}.items())


def _days_of_parts(plan: PartitionPlan) -> Days:
    return Days(_persons(plan.person), (), _keys(plan.key, plan.shown_days), frozenset(plan.part.never_with))


def _days_of_join(plan: Linked) -> Days:
    members = [_days(m) for m in plan.members]
    return Days(
        frozenset(label for m in members for label in m.persons),
        tuple(name for m in members for name in m.shifted),
        tuple(name for m in members for name in m.shown),
        frozenset(name for m in members for name in m.never_with),
    )


def _persons(person: str | None) -> frozenset[str]:
    """By what the persons of a release are known, beside the tables that it reads."""
    return frozenset() if person is None else frozenset({label_of(person)})


def _keys(key: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{key}.columns.{name}" for name in names)


def _taken(c: Aggregated, k: int) -> tuple[object, ...]:
    """How a statistic is taken; which rows a mean is of does not depend on k."""
    return c.statistic, c.lattice.step, c.lattice.start, c.top_code, None if c.statistic == "mean" else k


def _plain(c: QuasiIdentifier | OtherColumn) -> bool:
    """Whether it is a sensitive column whose values are shown as they are."""
    return isinstance(c, OtherColumn) and c.role == "sensitive" and c.disguise is None and c.source.kind != "other"


def _anew(c: QuasiIdentifier | OtherColumn) -> bool:
    """Whether every release has other values of it: pseudonyms, which tell nothing beside another release."""
    return isinstance(c, OtherColumn) and c.disguise == "pseudonym"


def _cohort_of_parts(plan: PartitionPlan) -> Cohort:
    shown = {label_of(c.name): (c.source, True) for c in plan.cuts}
    shown |= {label_of(name): (source, False) for name, source, _ in plan.others}
    person = None if plan.person is None else (label_of(plan.person), plan.person)
    judged = frozenset(label_of(name) for name, _ in plan.judged)
    read = _unfiltered(plan.source, filtered=plan.part.where is not None)
    return Cohort(
        person,
        plan.person_type,
        _source(read),
        shown,
        judged,
        never_with=frozenset(plan.part.never_with),
        other_persons=frozenset(plan.part.other_persons),
        sensitive=tuple(label_of(n) for n, s, role in plan.others if role == "sensitive" and s.kind != "other"),
        relations=tuple(tables_of(read)),
    )


def _cohort_of_join(plan: Linked) -> Cohort:
    """Linked tables are one release, which shows what any of them shows, under its own table's name of a column."""
    members = [_cohort(m) for m in plan.members]
    shown: dict[str, tuple[Column, bool]] = {}
    for c in plan.joint.released:
        label, quasi = label_of(c.name.partition("/")[2]), isinstance(c, QuasiIdentifier)
        if not _anew(c) and (label not in shown or not quasi):
            shown[label] = (c.source, quasi)
    person, key = members[0].person, plan.joint.person
    return Cohort(
        None if person is None or key is None else (person[0], key),
        plan.joint.person_type,
        "",
        shown,
        frozenset(label for m in members for label in m.judged),
        never_with=frozenset(name for m in members for name in m.never_with),
        other_persons=frozenset(name for m in members for name in m.other_persons),
        sensitive=tuple(dict.fromkeys(label for m in members for label in m.sensitive if not shown[label][1])),
    )


def _unfiltered(source: exp.Expr, *, filtered: bool) -> exp.Expr:
    """What a release reads before its filter."""
    found = source.this.find(exp.From) if filtered else None
    return source if found is None else found.this


def _source(read: exp.Expr) -> str:
    """The tables that a release reads, however the job spells them."""
    names = {".".join(part.name for part in table.parts) for table in read.find_all(exp.Table)}
    return ", ".join(sorted(names)).casefold()


def reads(plan: TablePlan | PartitionPlan | LocalPlan | ChildPlan, engine: Engine) -> Iterator[Read]:
    """What a release reads."""
    if plan.way == "child":
        columns = [plan.items.source, *(c.source for c in plan.sensitive)]
        yield Read("source", plan.table.source, plan.table.person_column, named(columns), spelt(columns))
        return
    if plan.way == "local":
        yield from reads(plan.table, engine)
        return
    if plan.way == "mondrian":
        columns = [c.source for c in plan.cuts] + [source for _, source, _ in plan.others]
        person = None if plan.person is None else column(plan.person, "s")
        yield Read("source", plan.source, person, named(columns), spelt(columns))
        return
    there = {c.name.casefold() for c in engine.columns(plan.source, key=plan.key)}
    released = [c.source for c in plan.released if c.source.name.casefold() in there]
    yield Read("source", plan.source, plan.person_column, named(released), spelt(released))
    for stack in plan.stacked.stacks if plan.stacked is not None else ():
        yield every_column(f"stack {stack.name}", stack.relation, engine, stack.key)
        if stack.through is not None:
            yield every_column(f"stack {stack.name} through", stack.through.relation, engine, stack.key)
