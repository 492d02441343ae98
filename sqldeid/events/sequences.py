"""From the source to parts of sequences: usable events as numbers, ordered, split at long gaps; all in SQL.

Source: Shaked & Rokach 2016, definitions 1 and 2, §3.3; events.md, *Pipeline*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp as e_to

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.events.plan import FIRST_TIME, LAST_TIME, EventsPlan, timestamp
from sqldeid.sql import column

BIN_WIDTH = 0.25
"""Of the histogram of gaps, in units of ln(hours)."""

HOUR_US = 3_600_000_000


LONGEST_HOURS = 1e8
"""More hours than lie between any two usable times."""


LEAST_HOURS = 1.0
"""What the rule finds at least: a threshold of minutes cuts what is charted in rounds into single events."""
MUCH_TOGETHER = 0.5
"""Share of gaps of less than a minute from which the result says so."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Times between events of one object.

    Parameters
    ----------
    threshold_hours
        A longer gap splits a sequence; None where none does.
    rule
        How the threshold was found.
    histogram
        Gaps by bin of ln(hours): bin b begins at exp(b × `BIN_WIDTH`) hours; less than a minute counts as a minute.
    together
        Share of gaps of less than a minute, 0…1: charted at once; measured where the threshold is found.
    floored
        Whether the rule gave less than `LEAST_HOURS`.
    """

    threshold_hours: float | None
    rule: str
    histogram: Mapping[int, int]
    together: float = 0.0
    floored: bool = False


@dataclass(frozen=True, slots=True)
class Sequences:
    """The source as numbers.

    Parameters
    ----------
    split
        Table of events (template ``split_events``).
    parts
        Table of parts (``build_parts``).
    states
        Number of states: 0 … states − 1 are in use.
    most
        The greatest number of events of one object.
    """

    split: exp.Table
    parts: exp.Table
    gaps: Gaps
    events: int
    objects: int
    states: int
    most: int


def read_sequences(plan: EventsPlan, engine: Engine) -> Sequences:
    """Order and split the events of the source."""
    placed, _, counts = read_placed(plan, engine)
    return sequence(plan, placed, counts, engine)


def read_placed(plan: EventsPlan, engine: Engine) -> tuple[exp.Table, exp.Table, dict[str, int]]:
    """Placed events of the source, what its states stand for, and how many there are of what.

    Raises
    ------
    JobError
        If there is no usable event, or the job's SQL fails on the rows.
    """
    numbered = order_events(plan, engine)
    names = [n.name for n in plan.state_names]
    listed = engine.make("events/list_states", f"{plan.name}_states", events=numbered, states=names)
    placed = place_events(plan, numbered, engine)
    engine.drop(numbered)
    counts = count_source(plan, placed, engine)
    if not counts["events"]:
        raise JobError.at(
            plan.key, f"{plan.source_label} has no event with {needed(plan)}; there is nothing to release"
        )
    return placed, listed, counts


def count_source(plan: EventsPlan, placed: exp.Table, engine: Engine) -> dict[str, int]:
    """How much of the source is used, and how many of its rows are nobody's."""
    return engine.row("events/count_source", placed=placed, source=plan.source, owner=column(plan.owner.name, "s"))


def needed(plan: EventsPlan) -> str:
    """What a row must have to be an event."""
    return "object, state and a time within the years 1 to 9999" if plan.timed else "object and state"


def sequence(
    plan: EventsPlan, placed: exp.Table, counts: Mapping[str, int], engine: Engine, *, split: bool = True
) -> Sequences:
    """Placed events, split into parts.

    Parameters
    ----------
    counts
        Of the whole source (its number of states holds for any part of it).
    split
        Whether gaps may split at all.
    """
    gaps = find_gaps(plan, placed, engine) if split else Gaps(None, "none: sequences are not split", {})
    events = split_events(plan, placed, gaps.threshold_hours, engine)
    parts = build_parts(plan, events, engine)
    return Sequences(events, parts, gaps, counts["events"], counts["objects"], counts["states"], counts["most"])


def order_events(plan: EventsPlan, engine: Engine) -> exp.Table:
    """The usable events, with objects and states as numbers."""
    events = engine.workbench(f"{plan.name}_events")
    try:
        engine.run(
            "events/order_events",
            events=events,
            source=plan.source,
            object=column(plan.owner.name, "s"),
            time=plan.moment,
            first_time=timestamp(FIRST_TIME),
            last_time=timestamp(LAST_TIME),
            states=plan.state_names,
            orders=(*plan.orders, *plan.group),
            factors=plan.expressions,
        )
    except JobError as error:
        if error.key:
            raise
        asked = {"source": True, "where": plan.part.where is not None, "factors": bool(plan.expressions)}
        keys = [name for name, there in asked.items() if there]
        raise JobError(f"{plan.key}.{' or '.join(keys)}: {error.message}", key=f"{plan.key}.{keys[-1]}") from None
    return events


def place_events(plan: EventsPlan, events: exp.Table, engine: Engine) -> exp.Table:
    """Each event's place, and the time since the one before."""
    return engine.make(
        "events/place_events",
        f"{plan.name}_placed",
        events=events,
        timed=plan.timed,
        orders=[o.name for o in plan.orders],
        factors=[f.name for f in (*plan.expressions, *plan.group)],
    )


def find_gaps(plan: EventsPlan, placed: exp.Table, engine: Engine) -> Gaps:
    """The threshold of the job, or the upper fence of ln(gap), Q3 + 1.5 (Q3 − Q1); and the histogram."""
    if not plan.timed:
        return Gaps(None, "none: there are no times", {})
    rows = engine.rows("events/count_gaps", placed=placed, width=BIN_WIDTH)
    histogram = {row["bin"]: row["gaps"] for row in rows}
    asked = plan.part.gap_hours
    if asked == "none":
        return Gaps(None, "none: sequences are not split", histogram)
    if not isinstance(asked, str):
        return Gaps(float(asked), "given by the job", histogram)
    row = engine.row("events/measure_gaps", placed=placed)
    if not row["gaps"]:
        return Gaps(None, "auto: there are no gaps", histogram)
    together = row["together"] / row["gaps"]
    low, high = row["low"], row["high"]
    if low is None:
        return Gaps(None, "auto: all gaps are of less than a minute", histogram, together)
    fence = float(f"{e_to(high + 1.5 * (high - low)):.13g}")  # the last digits depend on the engine's logarithm
    rule = "auto: exp(Q3 + 1.5 (Q3 - Q1)) of ln(gap in hours), gaps of a minute or more"
    if fence < LEAST_HOURS:
        return Gaps(LEAST_HOURS, f"{rule}; at least {LEAST_HOURS:g} h", histogram, together, floored=True)
    return Gaps(fence, rule, histogram, together)


def microseconds(hours: float | None) -> int | None:
    """A threshold as a whole number that the database holds; no gap is longer than 10,000 years."""
    return round(min(hours, LONGEST_HOURS) * HOUR_US) if hours is not None else None


def split_events(plan: EventsPlan, placed: exp.Table, threshold_hours: float | None, engine: Engine) -> exp.Table:
    """Events with their parts."""
    return engine.make(
        "events/split_events",
        f"{plan.name}_split",
        placed=placed,
        most_us=microseconds(threshold_hours),
        factors=[f.name for f in plan.expressions],
    )


def build_parts(plan: EventsPlan, split: exp.Table, engine: Engine) -> exp.Table:
    """The parts."""
    return engine.make(
        "events/build_parts", f"{plan.name}_parts", split=split, factors=[f.name for f in plan.expressions]
    )
