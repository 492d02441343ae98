"""What recipients need to read a release of events: its columns, what stands in them, and the states that rows show.

Only states of rows that were written are named, and nothing is counted.
"""

from __future__ import annotations

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.events.plan import OBJECT, POSITION, EventsPlan
from sqldeid.sql import column

SHOWN = 24
"""States of a column that are named, the most frequent ones."""

TYPES = {"integer": "whole number", "float": "number", "number": "number", "boolean": "true or false", "date": "date"}
TYPES |= {"timestamp": "date and time"}
"""Types as recipients are told of them, the same whatever the engine calls them; all others are text."""


def describe(plan: EventsPlan, written: exp.Expr, engine: Engine) -> dict[str, dict[str, object]]:
    """Each column of the release by name: `type`, `meaning` and `codes`, the states shown. Cost: one statement."""
    found: dict[str, dict[str, object]] = {
        OBJECT: {"type": "whole number", "meaning": "which events belong together; it was made, and stands for nobody"}
    }
    for c in plan.grouped:
        meaning = "group of the object, the same in all its rows; drawn from a model, NULL stands for the rest"
        found[c.name] = {"type": "text", "meaning": meaning}
    if plan.time is not None:
        kind = "date" if plan.time.kind == "date" else "timestamp"
        found[plan.time.name] = {"type": TYPES[kind], "meaning": "when it happens; it was made"}
    if plan.placed:
        found[POSITION] = {"type": "whole number", "meaning": "its place among the object's events; it was made"}
    text = exp.DataType.build("varchar", dialect="duckdb")
    shown_columns = [*plan.states, *plan.grouped]
    asked = [{"number": i, "column": exp.cast(column(c.name, "r"), text)} for i, c in enumerate(shown_columns)]
    rows = engine.rows("tables/write/list_shown", release=written, columns=asked, most=SHOWN + 1)
    for i, c in enumerate(shown_columns):
        shown = ["NULL" if row["shown"] is None else str(row["shown"]) for row in rows if row["number"] == i]
        codes = {"codes": [{"shown": label} for label in sorted(shown[:SHOWN])], "more_codes": len(shown) > SHOWN}
        kind = "text" if plan.domain is not None else TYPES.get(c.kind, "text")
        told = {"type": kind, "meaning": "what happens; drawn from a model, in the words of the source"}
        found[c.name] = found.get(c.name, told) | codes
    return found
