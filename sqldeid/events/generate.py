"""Make objects from the models, many at a time, in chunks: memory does not grow with their number.

Source: Shaked & Rokach 2016, §4; events.md, *Pipeline*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.events.groups import GROUP
from sqldeid.events.model import Chain, Model

CHUNK_EVENTS = 400_000
"""Events that are made at a time, more or less."""

DAY_US, HOUR_US, SECOND_US = 86_400_000_000, 3_600_000_000, 1_000_000
PARTS_MOST = 64
START_CLUSTER, END_CLUSTER = -1, -2
FURTHEST_US = 253_402_300_800_000_000
"""The year 10000 begins; times are kept below, and what would happen later does not."""

SCHEMA = pa.schema(
    [
        ("object", pa.int64()),
        ("part", pa.int64()),
        ("position", pa.int64()),
        ("state", pa.int32()),
        ("moment", pa.timestamp("us")),
    ]
)
GROUPED = SCHEMA.append(pa.field(GROUP, pa.int32()))
"""Where objects are in groups."""


@dataclass(slots=True)
class Made:
    """What was made so far."""

    objects: int = 0
    events: int = 0
    parts: int = 0


@dataclass(slots=True)
class _Chunk:
    """Events of a chunk, step by step."""

    object: list[Ints] = field(default_factory=list)
    part: list[Ints] = field(default_factory=list)
    state: list[Ints] = field(default_factory=list)
    us: list[Ints] = field(default_factory=list)


def generate(model: Model, objects: int, rng: np.random.Generator, made: Made) -> Iterator[pa.RecordBatch]:
    """Batches of events by object and position, as in `SCHEMA`; `made` counts them.

    Objects for which the models hold no first state are left out: `made` says how many there are.
    """
    size = min(objects, 4096)
    left = objects
    while left > 0:
        count = min(size, left)
        left -= count
        chunk = _Maker(model, rng).objects(count)
        batch = _batch(chunk, count, made, timed=model.timed)
        if batch.num_rows:
            size = int(np.clip(CHUNK_EVENTS * count // batch.num_rows, 1000, 200_000))
            yield batch


def _batch(chunk: _Chunk, count: int, made: Made, *, timed: bool) -> pa.RecordBatch:
    """Number objects and parts on from those before, and order the events."""
    empty = np.zeros(0, dtype=np.int64)
    number, part, state, us = (
        np.concatenate(found) if found else empty for found in (chunk.object, chunk.part, chunk.state, chunk.us)
    )
    order = np.argsort(number, kind="stable")  # steps of an object were added in their order
    number, part, state, us = number[order], part[order], state[order], us[order]
    sizes = np.bincount(number, minlength=count)
    starts = np.cumsum(sizes) - sizes
    position = np.arange(len(number)) - np.repeat(starts, sizes) + 1
    fresh = np.cumsum(sizes > 0) + made.objects
    new_part = np.ones(len(number), dtype=np.bool_)
    new_part[1:] = (number[1:] != number[:-1]) | (part[1:] != part[:-1])
    parts = np.cumsum(new_part) + made.parts
    made.objects, made.events = made.objects + int((sizes > 0).sum()), made.events + len(number)
    made.parts += int(new_part.sum())
    moment = pa.array(us).cast(pa.timestamp("us")) if timed else pa.nulls(len(us), pa.timestamp("us"))
    columns = [
        pa.array(fresh[number] if len(number) else empty),
        pa.array(parts),
        pa.array(position),
        pa.array(state.astype(np.int32)),
        moment,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Objects of one chunk, all a step at a time."""

    model: Model
    rng: np.random.Generator

    def objects(self, count: int) -> _Chunk:
        chunk = _Chunk()
        alive = np.arange(count)
        us = self.first_days(count)
        cluster = self.next_clusters(np.full(count, START_CLUSTER), us)[0]
        us = self.start_hours(cluster, us)
        parts_left = self.number_of_parts(count)
        room = np.full(count, self.model.events_most)
        for part in range(PARTS_MOST):
            there, last = self.part(chunk, alive, part, cluster, us, room)
            alive, cluster, us, last = alive[there], cluster[there], us[there], last[there]
            if self.model.by_duration:
                parts_left = parts_left[there] - 1
                more, jump, following = parts_left > 0, *self.jumps(cluster, us)
                parts_left = parts_left[more]
            else:
                jump, following = self.jumps(cluster, us)
                more = following != END_CLUSTER
            alive, cluster, us = alive[more], following[more], self.next_starts(last, jump)[more]
            if not len(alive):
                break
        return chunk

    def first_days(self, count: int) -> Ints:
        """The day on which each object starts, in microseconds since 1970."""
        days = self.model.days
        ends = np.cumsum(days.objects)
        drawn = np.searchsorted(ends, self.rng.integers(0, ends[-1], count), side="right")
        found: Ints = days.day[drawn] * DAY_US
        return found

    def start_hours(self, cluster: Ints, us: Ints) -> Ints:
        """Add an hour of the day, and a second within it; any hour where the models know none."""
        hours = self.model.hours
        if hours is None:
            return us
        entry = hours.draw(self.rng, self.ensemble(hours, self.model.part_factors, cluster, 0, us, {}))
        anywhere = self.rng.integers(0, 24, len(us))
        hour = np.where(entry >= 0, _taken(hours, entry), anywhere)
        found: Ints = us + hour * HOUR_US + self.rng.integers(0, 3600, len(us)) * SECOND_US
        return found

    def number_of_parts(self, count: int) -> Ints:
        if not self.model.by_duration:
            return np.zeros(count, dtype=np.int64)
        spread = self.model.steps["parts"]
        drawn = self.spread(np.full(count, spread.mean), np.full(count, spread.sd))
        return np.maximum(np.rint(drawn), 1).astype(np.int64)

    def next_clusters(self, cluster: Ints, us: Ints) -> tuple[Ints, Ints]:
        """The cluster that follows (END where nothing is known), and the entry that says so (−1: a neighbour)."""
        chain, pairs = self.model.clusters, self.model.cluster_pairs
        entry = chain.draw(self.rng, self.ensemble(chain, self.model.part_factors, None, cluster, us, {}))
        other = pairs.draw(self.rng, [pairs.rows(0, -1, -1, cluster)])
        near = np.where(other >= 0, _taken(pairs, other), END_CLUSTER)
        following = np.where(entry >= 0, _taken(chain, entry), near)
        unknown = (cluster == START_CLUSTER) & (following == END_CLUSTER)
        return np.where(unknown, START_CLUSTER, following), entry

    def jumps(self, cluster: Ints, us: Ints) -> tuple[Ints, Ints]:
        """Time to the next part, in microseconds, and its cluster."""
        following, entry = self.next_clusters(cluster, us)
        following = np.where(following == START_CLUSTER, END_CLUSTER, following)
        generic = self.model.steps["jump"]
        chain = self.model.clusters
        mean, sd = _spread(chain, entry, generic.mean, generic.sd)
        hours = self.spread(mean, sd)
        least = self.model.most_us + SECOND_US if self.model.most_us is not None else 0
        return np.maximum(_seconds(hours), least), following

    def next_starts(self, last: Ints, jump: Ints) -> Ints:
        """When the next parts begin; where days alone are shown, on a day that tells them from the part before."""
        if not self.model.dated or self.model.most_us is None:
            return last + jump
        apart = (last // DAY_US + self.model.most_us // DAY_US + 1) * DAY_US
        found: Ints = np.maximum(last + jump, apart)
        return found

    def part(self, chunk: _Chunk, alive: Ints, number: int, cluster: Ints, us: Ints, room: Ints) -> tuple[Flags, Ints]:
        """Make one part of each object; which have an event in it, and the time of their last."""
        model, count = self.model, len(alive)
        drawn = {name: self.part_values(name, cluster) for name in model.values}
        until = us + drawn["duration"][1] if model.by_duration else None
        there, last = np.zeros(count, dtype=np.bool_), us.copy()
        at = np.arange(count)
        state, now = np.full(count, model.start), us.copy()
        while len(at):
            values = {name: found[0][at] for name, found in drawn.items()}
            target, step = self.step(state, cluster[at], now, values)
            first = state == model.start
            step = np.where(first, 0, np.maximum(step, SECOND_US) if model.timed else HOUR_US)
            now = now + step
            go = (target != model.finish) & (room[alive[at]] > 0) & (now < FURTHEST_US)
            if until is not None:
                go &= (now <= until[at]) | first
            at, state, now = at[go], target[go], now[go]
            there[at], last[at] = True, now
            room[alive[at]] -= 1
            chunk.object.append(alive[at])
            chunk.part.append(np.full(len(at), number))
            chunk.state.append(state)
            chunk.us.append(now)
        return there, last

    def part_values(self, name: str, cluster: Ints) -> tuple[Ints, Ints]:
        """A value for each part of a factor that holds for all of it, and how long it lasts, in microseconds."""
        chain = self.model.values[name]
        entry = chain.draw(self.rng, [chain.rows(0, -1, -1, np.zeros_like(cluster)), chain.rows(1, cluster, -1, 0)])
        generic = self.model.steps["part"]
        mean, sd = _spread(chain, entry, generic.mean, generic.sd)
        lasting = _seconds(self.spread(mean, sd)) if self.model.by_duration else np.zeros_like(cluster)
        return np.where(entry >= 0, _taken(chain, entry), -1), lasting

    def step(self, state: Ints, cluster: Ints, us: Ints, values: dict[str, Ints]) -> tuple[Ints, Ints]:
        """The next state and the time to it, in microseconds; END where nothing is known."""
        model, chain, pairs = self.model, self.model.states, self.model.state_pairs
        entry = chain.draw(self.rng, self.ensemble(chain, model.factors, cluster, state, us, values))
        target = np.where(entry >= 0, _taken(chain, entry), model.finish)
        lost = np.flatnonzero(entry < 0)
        if len(lost):
            near = pairs.draw(self.rng, [pairs.rows(0, -1, -1, state[lost])])
            target[lost] = np.where(near >= 0, _taken(pairs, near), model.finish)
        if not model.timed:
            return target, np.zeros(len(target), dtype=np.int64)
        generic = model.steps["step"]
        step = _seconds(self.spread(*_spread(chain, entry, generic.mean, generic.sd)))
        return target, np.minimum(step, model.most_us) if model.most_us is not None else step

    def ensemble(
        self,
        chain: Chain,
        factors: tuple[tuple[str, int], ...],
        cluster: Ints | None,
        origin: Ints | int,
        us: Ints,
        values: dict[str, Ints],
    ) -> list[Ints]:
        """For each model that applies, the row of each object."""
        origin = np.broadcast_to(np.asarray(origin, dtype=np.int64), us.shape)
        found = [chain.rows(0, -1, -1, origin)]
        if cluster is not None:
            found.append(chain.rows(1, cluster, -1, origin))
        for name, number in factors:
            value = values[name] if name in values else moment(name, us)
            found.append(chain.rows(2 * number, -1, value, origin))
            if cluster is not None:
                found.append(chain.rows(2 * number + 1, cluster, value, origin))
        return found

    def spread(self, mean: Floats, sd: Floats) -> Floats:
        """Gamma with these means and deviations; the mean where there is no deviation."""
        spread = (sd > 0) & (mean > 0)
        safe_mean, safe_sd = np.where(spread, mean, 1.0), np.where(spread, sd, 1.0)
        shape = (safe_mean / safe_sd) ** 2
        return np.where(spread, self.rng.standard_gamma(shape) * safe_sd**2 / safe_mean, mean)


def moment(name: str, us: Ints) -> Ints:
    """What a factor of time says of these times, as the SQL has it: Monday is 1."""
    day = us // DAY_US
    if name == "weekday":
        return (day + 3) % 7 + 1
    if name == "hour":
        return us // HOUR_US % 24
    months = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months % 12 + 1 if name == "month" else months // 12 + 1970


def _taken(chain: Chain, entry: Ints) -> Ints:
    """The target of each entry; any where there is none."""
    if not len(chain.target):
        return np.zeros(len(entry), dtype=np.int64)
    return chain.target[np.maximum(entry, 0)].astype(np.int64)


def _spread(chain: Chain, entry: Ints, mean: float, sd: float) -> tuple[Floats, Floats]:
    """Mean and deviation of each entry's time; the generic ones where there is none."""
    if not len(chain.target):
        return np.full(len(entry), mean), np.full(len(entry), sd)
    at = np.maximum(entry, 0)
    found_mean, found_sd = chain.mean[at].astype(np.float64), chain.sd[at].astype(np.float64)
    known = (entry >= 0) & ~np.isnan(found_mean)
    return np.where(known, found_mean, mean), np.where(known, np.nan_to_num(found_sd), sd)


def _seconds(hours: Floats) -> Ints:
    """Whole seconds, in microseconds."""
    return np.rint(np.clip(hours, 0, 2e7) * 3600).astype(np.int64) * SECOND_US
