"""What a run must know of a release of events: whether it composes with earlier ones, and what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.engine.base import Engine
from sqldeid.events.plan import EventsPlan
from sqldeid.making import Nature, Read, named, spelt
from sqldeid.sql import column


def nature(plan: EventsPlan) -> Nature:
    """What a run must know of a planned release."""
    private = plan.method == "laplace"
    typed = () if plan.domain is not None else tuple((f"{plan.key}.state", c) for c in plan.states)
    reckoned = () if plan.time is None else ((f"{plan.key}.time", plan.time),)
    return Nature((plan.name,), plan.source, ledger=private, private=private, typed=typed, reckoned=reckoned)


def reads(plan: EventsPlan, engine: Engine) -> Iterator[Read]:
    """What a release reads."""
    expressions = [(f"order {n.name.name}", n.value) for n in plan.orders]
    expressions += [(f"factor {n.name.name}", n.value) for n in plan.expressions]
    columns = [*plan.states, *plan.grouped, *([plan.time] if plan.time is not None else [])]
    yield Read("source", plan.source, column(plan.owner.name, "s"), [*named(columns), *expressions], spelt(columns))
