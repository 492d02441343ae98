"""Write what was made: streamed into the workbench in batches, released with the source's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.events.generate import GROUPED, SCHEMA
from sqldeid.events.groups import GROUP, value_of
from sqldeid.events.plan import OBJECT, POSITION, EventsPlan
from sqldeid.publish import Note, Staging
from sqldeid.sql import column, identifier, render


@dataclass(frozen=True, slots=True)
class Released:
    """A column of the release and where it comes from."""

    name: exp.Identifier
    value: exp.Expr


def put_batches(name: str, batches: Iterator[pa.RecordBatch], engine: Engine, *, grouped: bool = False) -> exp.Table:
    """A temporary table of what was made, never all of it in memory of ours."""
    return engine.put(f"{name}_made", pa.RecordBatchReader.from_batches(GROUPED if grouped else SCHEMA, batches))


def columns_of(plan: EventsPlan) -> tuple[Released, ...]:
    """The columns of the release: a new object number, its groups, time or position, the states."""
    when = []
    if plan.time is not None:
        moment: exp.Expr = column("moment", "m")
        if plan.time.kind == "date":
            moment = exp.cast(moment, exp.DataType.build("date"))
        when.append(Released(identifier(plan.time.name), moment))
    if plan.placed:
        when.append(Released(identifier(POSITION), column("position", "m")))
    states = [
        Released(identifier(c.name), column(n.name.name, "l"))
        for c, n in zip(plan.states, plan.state_names, strict=True)
    ]
    groups = [
        Released(identifier(c.name), value_of(plan.domain, at, column(GROUP, "m")))
        for at, c in enumerate(plan.grouped)
        if plan.domain is not None
    ]
    return (Released(identifier(OBJECT), column("object", "m")), *groups, *when, *states)


def stage(plan: EventsPlan, made: exp.Table, listed: exp.Table, staging: Staging, note: Note) -> exp.Expr:
    """Write the release with its note; what to read to verify it."""

    def statement(target: exp.Table) -> str:
        return render("events/write_events", target=target, made=made, listed=listed, columns=columns_of(plan))

    write: Callable[[Callable[[exp.Table], str], Note], exp.Expr] = staging.write
    return write(statement, note)


def note_of(plan: EventsPlan, guarantee: dict[str, object], ledger: list[dict[str, object]]) -> Note:
    """What is kept on the release: method, promise and ledger; nothing of the source that is not in the job."""
    content: dict[str, object] = {
        "kind": "events",
        "method": plan.method,
        "guarantee": guarantee,
        "ledger": ledger,
    }
    comments = {OBJECT: "a new number; stands for nobody"}
    if plan.time is not None:
        comments[plan.time.name] = "time, made"
    if plan.placed:
        comments[POSITION] = "place among the object's events, made"
    comments |= {c.name: "group of the object, made" for c in plan.grouped}
    comments |= {c.name: "state, made" for c in plan.states}
    return Note(plan.name, content, comments)
