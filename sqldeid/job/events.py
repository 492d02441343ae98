"""`[events.NAME]` of a job as pydantic models: event sequences. Their field descriptions are the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from sqldeid.job.fields import listed, or_one
from sqldeid.job.parts import MAX_WHOLE, Positive, Section, Source, Text, Whole
from sqldeid.job.rules import Problem

MAX_HASHES = 500
MAX_LENGTH = 1000
GAP_MOST_HOURS = 10_000_000
BUILT_IN_FACTORS = ("weekday", "hour", "duration", "month", "year")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)
"""A date, or a date and a time; Python reads far more, such as 2100-01-01+05:00 as five in the morning."""

_ZONED = re.compile(r"\d{4}-\d{2}-\d{2}.*([+-]\d{2}(:?\d{2})?|[zZ])$", re.ASCII)
LAPLACE_KEYS = ("states", "other", "groups", "time_range", "gap_bins_hours", "length_bins", "events_max")
PUBLIC_FACTORS = ("weekday", "hour", "month", "year")
"""Factors whose values are known without looking at the data."""

MODEL_KEYS = ("gap_hours", "end", "clusters")
"""What shapes the ensemble of Markov models, which `laplace` does not use."""


def _gap(value: object) -> int | float | str:
    """Hours, or a word."""
    if value in ("auto", "none"):
        return str(value)
    if type(value) in (int, float) and 0 < value < 1e300:  # type: ignore[operator]
        return value  # type: ignore[return-value]  # narrowed by `type(...) in`
    raise ValueError('not "auto", "none" or a positive number')


def _first_events(value: object) -> int | str:
    """A number of events, or a word."""
    if value == "private":
        return "private"
    if type(value) is int and 1 <= value <= MAX_LENGTH:
        return value
    raise ValueError(f'not "private" or a whole number from 1 to {MAX_LENGTH}')


Gap = Annotated[
    int | float | str,
    PlainValidator(_gap),
    WithJsonSchema({"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": "^(auto|none)$"}),
]
FirstEvents = Annotated[
    int | str,
    PlainValidator(_first_events),
    WithJsonSchema({"type": ["integer", "string"], "minimum": 1, "maximum": MAX_LENGTH, "pattern": "^private$"}),
]
Columns = Annotated[list[Text], BeforeValidator(listed)]


def privacy_problems(privacy: Mapping[str, object]) -> Iterator[Problem]:
    """Parameters belong to their method; public bins rise."""
    method = privacy.get("method")
    laplace = method == "laplace"
    if method in ("laplace", "ratio") and privacy.get("epsilon") is None:
        yield Problem(("epsilon",), f'missing; method = "{method}" needs it')
    if method == "none" and privacy.get("epsilon") is not None:
        yield Problem(("epsilon",), 'goes with method = "laplace" or "ratio"; remove it or change method')
    for name in LAPLACE_KEYS if method in ("ratio", "none") else ():
        if privacy.get(name) is not None:
            yield Problem((name,), 'goes with method = "laplace" alone; remove it or change method')
    if laplace and privacy.get("states") is None:
        yield Problem(
            ("states",),
            "missing; laplace needs a file of states that were listed without looking at the data: a list that is "
            "taken from the data gives rare states away",
        )
    yield from _bins(privacy)
    yield from _range(privacy.get("time_range"))
    groups = privacy.get("groups")
    for name, values in groups.items() if isinstance(groups, Mapping) else ():
        if isinstance(values, list) and len({str(v) for v in values}) < len(values):
            yield Problem(("groups", str(name)), "names a value twice")


def _bins(privacy: Mapping[str, object]) -> Iterator[Problem]:
    """Bins rise, and end where times and lengths do."""
    for name in ("gap_bins_hours", "length_bins"):
        bins = privacy.get(name)
        if not isinstance(bins, list) or not all(type(v) in (int, float) for v in bins):
            continue
        if not all(a < b for a, b in pairwise(bins)):
            yield Problem((name,), "must rise")
        if name == "gap_bins_hours" and any(v > GAP_MOST_HOURS for v in bins):
            yield Problem((name,), "must be at most 10,000,000 hours: times are within 1,000 years")
        if name == "length_bins" and privacy.get("events_max") == "private" and any(v > MAX_LENGTH for v in bins):
            yield Problem((name,), f'must be at most {MAX_LENGTH} with events_max = "private"')


def _range(given: object) -> Iterator[Problem]:
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(v, str) for v in given):
        return
    if any(_ZONED.match(v) for v in given):
        yield Problem(("time_range",), "must be without a time zone")
        return
    try:
        if not all(_MOMENT.fullmatch(v) for v in given):
            raise ValueError
        first, last = (datetime.fromisoformat(v) for v in given)
    except ValueError:
        yield Problem(("time_range",), 'must be two dates such as "2100-01-01"')
        return
    if first >= last:
        yield Problem(("time_range",), "must rise: the first date, then the date after the last")
    elif last.year - first.year > 1000:
        yield Problem(("time_range",), "must be at most 1,000 years")


def events_problems(events: Mapping[str, object]) -> Iterator[Problem]:
    """What `laplace` needs and does not use; times and orders."""
    privacy = events.get("privacy")
    privacy = privacy if isinstance(privacy, Mapping) else {}
    if events.get("time") is None and not events.get("order"):
        yield Problem(("time",), "missing; name the column with the time, or give order where there is only an order")
    timed = events.get("time") is not None
    if privacy.get("method") == "laplace":
        yield from _laplace(events, privacy, timed)
    if not timed and events.get("gap_hours", "none") not in ("none", "auto"):
        yield Problem(("gap_hours",), "needs times, and there is only an order; remove it")
    factors = events.get("factors")
    for factor in factors if isinstance(factors, list) else ():
        if not timed and factor in ("weekday", "hour", "month", "year"):
            yield Problem(("factors",), "weekday, hour, month and year need times, and there is only an order")
            break
    if isinstance(factors, list) and len({str(f) for f in factors}) < len(factors):
        yield Problem(("factors",), "names a factor twice")
    yield from _names_twice(events)


def _laplace(events: Mapping[str, object], privacy: Mapping[str, object], timed: bool) -> Iterator[Problem]:
    for name in MODEL_KEYS:
        if events.get(name) is not None:
            yield Problem((name,), "does not go with laplace, whose tables are over public domains only; remove it")
    factors = events.get("factors")
    if isinstance(factors, list) and not all(f in PUBLIC_FACTORS for f in factors):
        yield Problem(
            ("factors",), "may be weekday, hour, month and year with laplace: their values are known without the data"
        )
    for name in ("time_range", "gap_bins_hours"):
        if timed and privacy.get(name) is None:
            yield Problem(("privacy", name), "missing; laplace needs it, known without looking at the data")
        if not timed and privacy.get(name) is not None:
            yield Problem(("privacy", name), "goes with time, and there is only an order; remove it")


def _names_twice(events: Mapping[str, object]) -> Iterator[Problem]:
    """Released columns: the object's number, the time, the states, the groups."""
    state = events.get("state")
    states = [state] if isinstance(state, str) else state if isinstance(state, list) else []
    taken = {str(events[k]).casefold(): k for k in ("object", "time") if isinstance(events.get(k), str)}
    if events.get("time") is None:
        taken["position"] = "position, the place that is released where there is only an order"
    if len({str(s).casefold() for s in states}) < len(states):
        yield Problem(("state",), "names a column twice")
    for name in states:
        if str(name).casefold() in taken:
            yield Problem(("state",), f"names the column of {taken[str(name).casefold()]}")
    yield from _groups_twice(events, taken | {str(name).casefold(): "state" for name in states})


def _groups_twice(events: Mapping[str, object], taken: Mapping[str, str]) -> Iterator[Problem]:
    """Columns of groups are released beside the others, each once."""
    privacy = events.get("privacy")
    groups = privacy.get("groups") if isinstance(privacy, Mapping) else None
    names = [str(name) for name in groups] if isinstance(groups, Mapping) else []
    if len({name.casefold() for name in names}) < len(names):
        yield Problem(("privacy", "groups"), "names a column twice")
    for name in names:
        if name.casefold() in taken:
            yield Problem(("privacy", "groups", name), f"names the column of {taken[name.casefold()]}")


class Clusters(Section):
    """How parts of sequences are clustered (Shaked & Rokach 2016, §2.2)."""

    share: float = Field(default=0.15, gt=0, le=1, description="Number of clusters as a share of the number of parts.")
    hashes: Annotated[int, Field(ge=10, le=MAX_HASHES)] = Field(
        default=100, description="Hash functions of a MinHash signature."
    )
    shingle: Annotated[int, Field(ge=1, le=3)] = Field(default=1, description="States in a row that make a shingle.")


class EventsPrivacy(Section):
    """What protects the objects."""

    check = privacy_problems

    method: Literal["ratio", "laplace", "none"] = Field(
        description="laplace: differential privacy per object. ratio: the source's test, which is not differential "
        "privacy. none: no protection, for comparison."
    )
    epsilon: Positive | None = Field(default=None, description="With laplace and ratio, and always there.")
    states: Text | None = Field(
        default=None,
        description="With laplace: a file with one state a line (several columns separated by tabs), known "
        "without looking at the data.",
    )
    other: Text | None = Field(
        default=None, description="With laplace: what a state that is not in the list becomes; absent: it is dropped."
    )
    groups: dict[Text, Annotated[list[Text], Field(min_length=1, max_length=64)]] | None = Field(
        default=None,
        min_length=1,
        max_length=4,
        description="With laplace: columns that say which group an object belongs to, such as sex or age group, each "
        "with its values, known without looking at the data. Transitions are counted by group, and the columns are "
        "released. Whoever has another value, or none, at the first event is in a rest group, shown as NULL.",
    )
    time_range: list[Text] | None = Field(
        default=None, min_length=2, max_length=2, description="With laplace: first date, and date after the last."
    )
    gap_bins_hours: list[Positive] | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="With laplace: edges of bins of gaps, in hours, rising; a gap on an edge is in the bin above it.",
    )
    length_bins: list[Whole] | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="With laplace: last lengths of bins of events per object, rising; what is made has at most 8 times "
        "the last.",
    )
    events_max: FirstEvents | None = Field(
        default=None,
        description="With laplace: first events of an object that are looked at, 8 by default; private: the last "
        "length of the first bin up to which 80 % of the objects are, by the noised lengths, which get 5 % of epsilon "
        "more.",
    )


class Generate(Section):
    """What is made."""

    objects: Whole | None = Field(
        default=None, description="Objects to make; absent: as many as the source has, noised."
    )
    seed: Annotated[int, Field(ge=0, le=MAX_WHOLE)] | None = Field(
        default=None, description="Repeats the drawing of events (never the noise of laplace). For tests."
    )


class Events(Section):
    """One release of event sequences (Shaked & Rokach 2016)."""

    check = events_problems

    source: Source = Field(description="A table with one row per event, or { query = … }.")
    object: Text = Field(description="Column that says whose event it is: what is protected; never released.")
    time: Text | None = Field(default=None, description="Column with the time: a timestamp or date.")
    order: Columns = Field(
        default_factory=list,
        description="Columns that order an object's events: beside time for equal times, or instead of time where "
        "there is only an order.",
        json_schema_extra=or_one,
    )
    state: Columns = Field(
        min_length=1, max_length=8, description="Column, or columns, that make up a state.", json_schema_extra=or_one
    )
    where: Text | None = Field(default=None, description="One SQL expression; rows for which it holds are the input.")
    gap_hours: Gap = Field(
        default="auto",
        description="A sequence is split where nothing happens for longer; auto: found from the gaps of a minute or "
        "more, and at least an hour; none: never.",
    )
    end: Literal["state", "duration"] = Field(
        default="state",
        description="state: the end of a sequence is learnt like a state. duration: the source's way, by how long "
        "sequences last.",
    )
    clusters: Clusters = Field(default_factory=Clusters, description="How parts of sequences are clustered.")
    factors: list[Text] | None = Field(
        default=None,
        max_length=8,
        description="What the next state may depend on: weekday, hour, duration, month, year, or an SQL expression "
        "over the row that begins a part. By default weekday, hour and duration where there are times. With laplace "
        "none by default, and weekday, hour, month and year alone: each is a table that costs its part of epsilon.",
    )
    privacy: EventsPrivacy = Field(description="What protects the objects; method is mandatory.")
    generate: Generate = Field(default_factory=Generate, description="How many objects are made.")
    attacks: bool = Field(
        default=True, description="false leaves out the attacks on the result, which fit the models again."
    )


def problems_of_events(job: Mapping[str, object]) -> Iterator[Problem]:
    """Every broken rule of the events of a job as written, whatever else is wrong with it."""
    sections = job.get("events")
    for name, events in sections.items() if isinstance(sections, Mapping) else ():
        if not isinstance(events, Mapping):
            continue
        privacy = events.get("privacy")
        found = privacy_problems(privacy) if isinstance(privacy, Mapping) else ()
        yield from (p.inside("events", name, "privacy") for p in found)
        yield from (p.inside("events", name) for p in events_problems(events))
