"""What a run must know of a table release: whether it can be held to earlier ones, and what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.engine.base import Engine
from sqldeid.ledger.hashing import label_of
from sqldeid.making import Nature, Read, every_column, named
from sqldeid.sql import column
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import OtherColumn, TablePlan


def nature(plan: TablePlan | PartitionPlan | Linked) -> Nature:
    """What a run must know of a planned release."""
    if isinstance(plan, Linked):
        members = [nature(m) for m in plan.members]
        released = tuple(column for m in members for column in m.released)
        typed = tuple(column for m in members for column in m.typed)
        return Nature(plan.names, plan.joint.source, lattice=True, released=released, typed=typed)
    if isinstance(plan, PartitionPlan):
        return Nature(
            (plan.name,),
            plan.source,
            released=tuple((plan.key, name, source) for name, source, _ in plan.others),
            typed=tuple((f"{plan.key}.columns.{name}", source) for name, source, _ in plan.others),
        )
    typed = tuple(
        (f"{plan.key}.columns.{c.name}", c.source) for c in plan.released if isinstance(c, OtherColumn) and c.typed
    )
    return Nature(
        (plan.name,),
        plan.source,
        policy=True,
        ledger=True,
        many=plan.many,
        held="rows",
        columns=frozenset(label_of(c.name) for c in plan.others),
        lattice=True,
        person=plan.person_type,
        private=plan.sampled,
        released=tuple((plan.key, c.name, c.source) for c in plan.released),
        typed=typed,
    )


def reads(plan: TablePlan | PartitionPlan, engine: Engine) -> Iterator[Read]:
    """What a release reads."""
    if isinstance(plan, PartitionPlan):
        columns = [c.source for c in plan.cuts] + [source for _, source, _ in plan.others]
        person = None if plan.person is None else column(plan.person, "s")
        yield Read("source", plan.source, person, named(columns))
        return
    there = {c.name.casefold() for c in engine.columns(plan.source, key=plan.key)}
    released = [c.source for c in plan.released if c.source.name.casefold() in there]
    yield Read("source", plan.source, plan.person_column, named(released))
    for stack in plan.stacked.stacks if plan.stacked is not None else ():
        yield every_column(f"stack {stack.name}", stack.relation, engine, stack.key)
        if stack.through is not None:
            yield every_column(f"stack {stack.name} through", stack.through.relation, engine, stack.key)
