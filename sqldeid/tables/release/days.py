"""What table releases tell of days, for a run that holds them to each other: shifted dates beside true ones.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqldeid.engine.base import Engine
from sqldeid.making import Days, Published
from sqldeid.publish import DAYS_NOTE, days_of
from sqldeid.tables.disguise.disguise import days_noted
from sqldeid.tables.itemset.plan import ChildPlan
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.plan.days import tells_days
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.nature import nature


def days_there(
    plan: TablePlan | PartitionPlan | LocalPlan | Linked | ChildPlan, there: Mapping[str, Published], engine: Engine
) -> Days:
    """What published tables tell of days: by levels that their re-check has confirmed, and by the types written.

    Parameters
    ----------
    there
        What was published, and its note, by name.
    """
    found = nature(plan)
    days = found.days
    if not isinstance(plan, (PartitionPlan, ChildPlan)):
        note = there[found.names[0]][1]
        table = plan.table if isinstance(plan, LocalPlan) else plan.joint if isinstance(plan, Linked) else plan
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
