"""Count the ensemble of state-and-time Markov models: GROUPING SETS in the database, the ratio test in a window.

Only counts, means and deviations per entry leave the database, and of these only what the test keeps.

Source: Shaked & Rokach 2016, definitions 6 to 10, §3.6; events.md, *Pipeline*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.events.model import Chain, Days, Model, Spread, make_chain
from sqldeid.events.plan import EventsPlan, Factor
from sqldeid.events.sequences import Sequences, microseconds
from sqldeid.sql import identifier

PART_FACTORS = ("weekday", "month", "year")
"""What the next cluster may depend on, where there are times (§5)."""


@dataclass(frozen=True, slots=True)
class Support:
    """How much a test leaves of the entries of all transitions between states.

    Parameters
    ----------
    entries, suppressed
        Entries of all models, and those that are not used.
    records, suppressed_records
        The records that they count, each once per model that it is in.
    """

    entries: int
    suppressed: int
    records: int
    suppressed_records: int

    @property
    def mean(self) -> float:
        """Mean count of the entries that are used; 0 where none is."""
        used = self.entries - self.suppressed
        return (self.records - self.suppressed_records) / used if used else 0.0

    @property
    def suppressed_share(self) -> float:
        """Share of entries that are not used, 0 … 1."""
        return self.suppressed / self.entries if self.entries else 0.0

    @property
    def suppressed_records_share(self) -> float:
        """Share of records in entries that are not used, 0 … 1."""
        return self.suppressed_records / self.records if self.records else 0.0


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of every chain, not yet tested: tables of ``count_links``."""

    states: exp.Table
    clusters: exp.Table
    hours: exp.Table | None
    values: tuple[tuple[Factor, exp.Table], ...]
    state_pairs: exp.Table
    cluster_pairs: exp.Table
    days: Days
    steps: dict[str, Spread]

    @property
    def tables(self) -> tuple[exp.Table, ...]:
        """All tables."""
        hours = (self.hours,) if self.hours is not None else ()
        return (self.states, self.clusters, *hours, *(t for _, t in self.values), self.state_pairs, self.cluster_pairs)


@dataclass(frozen=True, slots=True)
class _Flagged:
    """A factor as ``link_events`` and ``count_links`` read it."""

    name: exp.Identifier
    kind: str
    weight: int

    @property
    def weekday(self) -> bool:
        return self.kind == "weekday"

    @property
    def hour(self) -> bool:
        return self.kind == "hour"

    @property
    def month(self) -> bool:
        return self.kind == "month"

    @property
    def year(self) -> bool:
        return self.kind == "year"


def part_factors(plan: EventsPlan) -> tuple[Factor, ...]:
    """The factors of the chain of clusters."""
    return tuple(
        Factor(n, identifier(n), n, i)  # type: ignore[arg-type]  # built-in ones
        for i, n in enumerate(PART_FACTORS if plan.timed else (), start=1)
    )


def drawn_factors(plan: EventsPlan) -> tuple[Factor, ...]:
    """The factors that are drawn for each part that is made; with end by duration, how long it lasts is one."""
    found = [f for f in plan.factors if f.of_part]
    if plan.part.end == "duration" and all(f.kind != "duration" for f in found):
        found.append(Factor("duration", identifier("duration"), "duration", 0))
    return tuple(found)


def count(plan: EventsPlan, sequences: Sequences, clustered: exp.Table, engine: Engine) -> Counted:
    """Count every chain at every support level."""
    run = _Counter(plan, sequences, clustered, engine)
    links, steps = run.link_events(), run.link_parts()
    hours = run.link("events/link_starts", "starts") if plan.timed else None
    values = [(f, run.link("events/link_values", f"value{f.number}", factor=f.name)) for f in drawn_factors(plan)]
    spreads = run.spreads(steps)
    return Counted(
        states=run.count(links, plan.factors),
        clusters=run.count(steps, part_factors(plan), clustered=False),
        hours=run.count(hours, part_factors(plan)) if hours is not None else None,
        values=tuple((f, run.count(table, ())) for f, table in values),
        state_pairs=run.pairs("events/pair_states", split=sequences.split),
        cluster_pairs=run.pairs("events/pair_clusters", parts=sequences.parts, clustered=clustered),
        days=run.days(),
        steps=spreads,
    )


@dataclass(frozen=True, slots=True)
class _Counter:
    plan: EventsPlan
    sequences: Sequences
    clustered: exp.Table
    engine: Engine

    def make(self, template: str, table: str, **parameters: object) -> exp.Table:
        return self.engine.make(template, f"{self.plan.name}_{table}", **parameters)

    def link_events(self) -> exp.Table:
        start, finish = self.sequences.states, self.sequences.states + 1
        return self.make(
            "events/link_events",
            "links",
            split=self.sequences.split,
            parts=self.sequences.parts,
            clustered=self.clustered,
            start=start,
            finish=finish,
            ends=self.plan.part.end == "state",
            factors=_flagged(self.plan.factors),
        )

    def link_parts(self) -> exp.Table:
        """START and END are −1 and −2: the number of clusters does not matter."""
        return self.make(
            "events/link_parts",
            "steps",
            parts=self.sequences.parts,
            clustered=self.clustered,
            start=START_CLUSTER,
            finish=END_CLUSTER,
            ends=self.plan.part.end == "state",
            timed=self.plan.timed,
        )

    def link(self, template: str, table: str, **parameters: object) -> exp.Table:
        return self.make(template, table, parts=self.sequences.parts, clustered=self.clustered, **parameters)

    def count(self, links: exp.Table, factors: Sequence[Factor], *, clustered: bool = True) -> exp.Table:
        found = self.make("events/count_links", "counted", links=links, clustered=clustered, factors=_flagged(factors))
        self.engine.drop(links)
        return found

    def pairs(self, template: str, **parameters: object) -> exp.Table:
        return self.make(template, "pairs", **parameters)

    def days(self) -> Days:
        found = self.engine.ask("events/count_days", parts=self.sequences.parts)
        objects = found.column("objects").to_numpy().astype(np.int64)
        days = found.column("day")
        if not self.plan.timed:
            return Days(np.zeros(len(objects), dtype=np.int64), objects)
        return Days(days.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64), objects)

    def spreads(self, steps: exp.Table) -> dict[str, Spread]:
        row = self.engine.row(
            "events/measure_steps", split=self.sequences.split, parts=self.sequences.parts, steps=steps
        )
        return {n: _spread(row[f"{n}_mean"], row[f"{n}_sd"]) for n in ("step", "jump", "part", "parts")}


START_CLUSTER, END_CLUSTER = -1, -2

LEAST_SD = 1e-9
"""Times the mean: a deviation below is none. Engines sum in orders of their own, and equal times must stay equal."""


def _spread(mean: float | None, sd: float | None) -> Spread:
    """In single precision, in which engines agree, as entries of chains are kept."""
    found = float(np.float32(mean or 0.0))
    deviation = float(np.float32(sd or 0.0))
    return Spread(found, deviation if deviation > LEAST_SD * found else 0.0)


def _flagged(factors: Sequence[Factor]) -> list[_Flagged]:
    return [_Flagged(f.name, f.kind, 2 * f.number) for f in factors]


def privatise(
    plan: EventsPlan, sequences: Sequences, counted: Counted, bound: float | None, engine: Engine
) -> tuple[Model, Support]:
    """Test every chain and read what may be used.

    Parameters
    ----------
    bound
        e to the epsilon; None keeps everything.
    """
    judged = judge(plan.name, counted.states, bound, _finish(plan, sequences.states + 1), engine)
    support = Support(**engine.row("events/sum_links", judged=judged))

    def chain(table: exp.Table, finish: int | None = None) -> Chain:
        tested = judge(plan.name, table, bound, finish, engine)
        found = _read(tested, engine)
        engine.drop(tested)
        return found

    states = _read(judged, engine)
    engine.drop(judged)
    gaps = sequences.gaps
    model = Model(
        timed=plan.timed,
        dated=plan.time is not None and plan.time.kind == "date",
        by_duration=plan.part.end == "duration",
        start=sequences.states,
        finish=sequences.states + 1,
        states=states,
        clusters=chain(counted.clusters, _finish(plan, END_CLUSTER)),
        hours=chain(counted.hours) if counted.hours is not None else None,
        values={f.kind if f.kind == "duration" else f.shown: chain(t) for f, t in counted.values},
        state_pairs=chain(counted.state_pairs),
        cluster_pairs=chain(counted.cluster_pairs),
        days=counted.days,
        steps=counted.steps,
        factors=tuple((f.kind if f.kind != "expression" else f.shown, f.number) for f in plan.factors),
        part_factors=tuple((f.kind, f.number) for f in part_factors(plan)),
        most_us=microseconds(gaps.threshold_hours),
        events_most=_round_up(sequences.most),
    )
    return model, support


def _finish(plan: EventsPlan, number: int) -> int | None:
    return number if plan.part.end == "state" else None


def _round_up(most: int) -> int:
    """The next power of two: a cap that does not say how long the longest sequence is."""
    return 1 << max(most - 1, 1).bit_length()


def judge(name: str, counted: exp.Table, bound: float | None, finish: int | None, engine: Engine) -> exp.Table:
    """Counts with what the test says of each."""
    return engine.make("events/judge_links", f"{name}_judged", counted=counted, bound=bound, finish=finish)


def _read(judged: exp.Table, engine: Engine) -> Chain:
    rows = engine.ask("events/read_links", judged=judged)

    def column(name: str) -> Ints:
        found: Ints = rows.column(name).to_numpy()
        return found

    def real(name: str) -> Floats:
        found: Floats = rows.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        return found

    mean, sd = real("mean_hours"), real("sd_hours")
    return make_chain(
        column("level"),
        column("cluster"),
        column("value"),
        column("origin"),
        column("target"),
        column("n"),
        mean,
        np.where(sd <= LEAST_SD * mean, 0.0, sd),
    )
