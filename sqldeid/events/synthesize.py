"""`laplace`: count over public domains, add noise once, and make objects from the noised tables alone.

Source: events.md, *laplace*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.events.domain import Domain, choose_events
from sqldeid.events.estimate import posterior_mean, rake, shares
from sqldeid.events.generate import DAY_US, GROUPED, HOUR_US, SCHEMA, SECOND_US, Made, moment
from sqldeid.events.groups import GROUP
from sqldeid.events.privacy.laplace import BY_GROUP, Ledger, Spend, by, noise
from sqldeid.sql import identifier

CHUNK_OBJECTS, CHUNK_CELLS = 50_000, 8_000_000
"""Made at a time: so many objects, and chances of what follows that are looked at at once."""

OPEN_BIN = 10
"""The last bin of gaps is open; gaps in it go up to so many times its edge."""


@dataclass(frozen=True, slots=True)
class Tables:
    """One count per cell of every statistic: exact before the noise, which nothing but `add_noise` may see.

    Parameters
    ----------
    transitions
        Rows: START, then each state. Columns: each state, then END. START → END cannot be and is always 0.
    factors
        The same by value of each factor: a table more per value; by `BY_GROUP` a table more per group.
    groups
        Objects by group, the rest last; empty where objects are not grouped.
    """

    transitions: Ints
    states: Ints
    gaps: Ints
    lengths: Ints
    months: Ints
    hours: Ints
    factors: Mapping[str, Ints] = field(default_factory=dict)
    groups: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def possible(transitions: Ints | Floats) -> Flags:
    """Which transitions can be: all but START → END."""
    found = np.ones(transitions.shape, dtype=np.bool_)
    found[..., 0, -1] = False
    return found


@dataclass(frozen=True, slots=True)
class Private:
    """What objects are made from: noised tables after post-processing, and what they cost.

    Parameters
    ----------
    first, following, gaps, months, hours
        Shares: of first states; of the next state or END by state; of bins of gaps by state; of months and of weekday
        and hour of starts.
    factors
        By factor and value: shares of the next state, rows as in `Tables`; where there are any, what is drawn from. By
        group the rest is last, which has the shares of all objects.
    groups
        Shares of the groups, the rest last; empty where objects are not grouped.
    objects
        Sum of the noised histogram of lengths, at least 0.
    noise_ratio
        Cells × scale / transitions, noised: above 1 most of the table is noise.
    group_noise_ratio
        The same of the tables by group; 0 where there are none.
    """

    domain: Domain
    ledger: Ledger
    first: Floats
    following: Floats
    gaps: Floats
    months: Floats
    hours: Floats
    objects: int
    noise_ratio: float
    factors: Mapping[str, Floats] = field(default_factory=dict)
    groups: Floats = field(default_factory=lambda: np.zeros(0))
    group_noise_ratio: float = 0.0

    def generate(self, objects: int, rng: np.random.Generator, made: Made) -> Iterator[pa.RecordBatch]:
        """Batches of events by object and position, as in ``generate.SCHEMA``; `made` counts them."""
        left = objects
        while left > 0:
            count = min(CHUNK_OBJECTS, max(CHUNK_CELLS // (len(self.domain.states) + 1), 1), left)
            left -= count
            batch = _chunk(self, count, rng, made)
            if batch.num_rows:
                yield batch


def fit_private(
    name: str, domain: Domain, epsilon: Fraction, placed: exp.Table, engine: Engine, step: Callable[[str], None]
) -> Private:
    """Count, add noise, estimate; where lengths say how many events are looked at, they are noised first, and once."""
    first = None
    if domain.chosen:
        spend = Ledger.split(domain, epsilon).of("lengths")
        assert spend is not None  # noqa: S101 - every ledger has lengths
        first = noise(count_lengths(domain, placed, engine), spend)
        domain = choose_events(domain, first[0].tolist())
    exact = count_tables(domain, placed, engine)
    step("adding noise")
    return estimate(domain, *add_noise(exact, Ledger.split(domain, epsilon), first))


def count_tables(domain: Domain, placed: exp.Table, engine: Engine) -> Tables:
    """Counts over the whole public domain, each object bounded to its first events by its own rows."""
    states, most = len(domain.states), domain.events_max
    steps = engine.ask("events/bound_steps", placed=placed, most=most, start=states, finish=states + 1)
    transitions = np.zeros((states + 1, states + 1), dtype=np.int64)
    transitions[_cells(steps, states)] = steps.column("n").to_numpy()
    found = engine.ask("events/bound_states", placed=placed, most=most).to_pydict()
    counted = np.zeros(states, dtype=np.int64)
    counted[np.array(found["state"], dtype=np.int64)] = found["n"]
    return Tables(
        transitions,
        counted,
        _gaps(domain, placed, engine),
        count_lengths(domain, placed, engine),
        *_starts(domain, placed, engine),
        {factor: _by_factor(domain, factor, placed, engine) for factor in domain.factors}
        | ({BY_GROUP: _by_group(domain, placed, engine)} if domain.groups else {}),
        _groups(domain, placed, engine),
    )


def count_lengths(domain: Domain, placed: exp.Table, engine: Engine) -> Ints:
    """Objects by public bins of their number of events, all of them: it does not depend on how many are looked at."""
    lengths = np.zeros(len(domain.length_bins) + 1, dtype=np.int64)
    found = engine.ask("events/bound_lengths", placed=placed, lasts=list(domain.length_bins)).to_pydict()
    lengths[np.array(found["bin"], dtype=np.int64)] = found["n"]
    return lengths


def _cells(steps: pa.Table, states: int) -> tuple[Ints, Ints]:
    """Rows and columns of a table of transitions: START is row 0, END the last column."""
    origin, target = (steps.column(c).to_numpy() for c in ("origin", "target"))
    return (origin + 1) % (states + 1), np.minimum(target, states)


def _by_factor(domain: Domain, factor: str, placed: exp.Table, engine: Engine) -> Ints:
    """Transitions by the value of a factor at the event before (START: at the first event)."""
    states, values = len(domain.states), domain.values(factor)
    steps = engine.ask(
        "events/bound_factors",
        placed=placed,
        most=domain.events_max,
        start=states,
        finish=states + 1,
        factor={kind: kind == factor for kind in ("weekday", "hour", "month")},
    )
    found = np.zeros((len(values), states + 1, states + 1), dtype=np.int64)
    found[(steps.column("value").to_numpy() - values.start, *_cells(steps, states))] = steps.column("n").to_numpy()
    return found


def _groups(domain: Domain, placed: exp.Table, engine: Engine) -> Ints:
    """Objects by group, the rest last."""
    if not domain.groups:
        return np.zeros(0, dtype=np.int64)
    counted = np.zeros(domain.group_count + 1, dtype=np.int64)
    found = engine.ask("events/bound_groups", placed=placed, group=identifier(GROUP)).to_pydict()
    counted[np.array(found["value"], dtype=np.int64)] = found["n"]
    return counted


def _by_group(domain: Domain, placed: exp.Table, engine: Engine) -> Ints:
    """Transitions by the object's group, which is that of its first event; those of the rest are in no table."""
    states = len(domain.states)
    steps = engine.ask(
        "events/bound_group_steps",
        placed=placed,
        most=domain.events_max,
        start=states,
        finish=states + 1,
        rest=domain.group_count,
        group=identifier(GROUP),
    )
    found = np.zeros((domain.group_count, states + 1, states + 1), dtype=np.int64)
    found[(steps.column("value").to_numpy(), *_cells(steps, states))] = steps.column("n").to_numpy()
    return found


def _gaps(domain: Domain, placed: exp.Table, engine: Engine) -> Ints:
    counted = np.zeros((len(domain.states), len(domain.gap_bins_hours) + 1), dtype=np.int64)
    if domain.timed and domain.events_max > 1:
        edges = [round(e * HOUR_US) for e in domain.gap_bins_hours]
        found = engine.ask("events/bound_gaps", placed=placed, most=domain.events_max, edges_us=edges).to_pydict()
        counted[np.array(found["origin"], dtype=np.int64), np.array(found["bin"], dtype=np.int64)] = found["n"]
    return counted


def _starts(domain: Domain, placed: exp.Table, engine: Engine) -> tuple[Ints, Ints]:
    months, hours = np.zeros(domain.months, dtype=np.int64), np.zeros((7, 24), dtype=np.int64)
    if domain.first is not None:
        found = engine.ask("events/bound_starts", placed=placed).to_pydict()
        first = domain.first.year * 12 + domain.first.month - 1
        at = np.array(found["year"], dtype=np.int64) * 12 + np.array(found["month"], dtype=np.int64) - 1 - first
        np.add.at(months, at, np.array(found["n"], dtype=np.int64))
        place = np.array(found["weekday"], dtype=np.int64) - 1, np.array(found["hour"], dtype=np.int64)
        np.add.at(hours, place, np.array(found["n"], dtype=np.int64))
    return months, hours


def add_noise(exact: Tables, ledger: Ledger, lengths: tuple[Ints, Spend] | None = None) -> tuple[Tables, Ledger]:
    """Noise on every cell that can be other than 0; the one place that sees exact counts.

    Parameters
    ----------
    lengths
        The lengths with their noise, and its spend, where they were noised before: they are not noised again.

    Returns
    -------
    The noised tables, and the ledger with the scales that were used.
    """
    spends = []

    def noised(statistic: str, counts: Ints) -> Ints:
        spend = ledger.of(statistic)
        if spend is None:
            return np.zeros_like(counts)
        drawn, used = noise(counts, spend)
        spends.append(used)
        return drawn

    def steps(statistic: str, counts: Ints) -> Ints:
        found, can_be = np.zeros_like(counts), possible(counts)
        found[can_be] = noised(statistic, counts[can_be])
        return found

    if lengths is not None:
        spends.append(lengths[1])
    tables = Tables(
        steps("transitions", exact.transitions),
        noised("states", exact.states),
        noised("gaps", exact.gaps),
        lengths[0] if lengths is not None else noised("lengths", exact.lengths),
        noised("start months", exact.months),
        noised("start hours", exact.hours),
        {factor: steps(by(factor), counts) for factor, counts in exact.factors.items()},
        noised("groups", exact.groups),
    )
    return tables, Ledger(ledger.epsilon, tuple(spends))


def estimate(domain: Domain, noised: Tables, ledger: Ledger) -> Private:
    """From noised tables to shares; nothing here sees the data."""

    def scale(statistic: str) -> float:
        spend = ledger.of(statistic)
        return spend.scale if spend is not None else 1.0

    objects = max(int(noised.lengths.sum()), 0)
    total = max(float(noised.states.sum()), 1.0)
    states = posterior_mean(noised.states, scale("states"), np.full(len(noised.states), total / len(noised.states)))
    following = _transitions(domain, noised, states, objects, scale("transitions"))
    bins = noised.gaps.sum(axis=0, keepdims=True).clip(1.0)
    prior = states[:, None] * bins / bins.sum()
    starts = max(objects, 1)
    transitions = max(float(noised.transitions.sum()), 1.0)

    def noise_ratio(statistic: str) -> float:
        spend = ledger.of(statistic)
        return spend.cells * spend.scale / transitions if spend is not None else 0.0

    groups = shares(_alike(noised.groups, scale("groups"), starts)) if domain.groups else np.zeros(0)
    return Private(
        domain=domain,
        ledger=ledger,
        first=shares(following[0, :-1]),
        following=shares(following[1:]),
        gaps=shares(posterior_mean(noised.gaps, scale("gaps"), prior)) if domain.timed else np.zeros((0, 0)),
        months=shares(_alike(noised.months, scale("start months"), starts)) if domain.timed else np.zeros(0),
        hours=shares(_alike(noised.hours, scale("start hours"), starts).ravel()) if domain.timed else np.zeros(0),
        objects=objects,
        noise_ratio=noise_ratio("transitions"),
        factors={f: _learnt(f, counts, scale(by(f)), following, groups) for f, counts in noised.factors.items()},
        groups=groups,
        group_noise_ratio=noise_ratio(by(BY_GROUP)),
    )


def _alike(noised: Ints, scale: float, total: int) -> Floats:
    return posterior_mean(noised, scale, np.full(noised.shape, total / noised.size))


def _learnt(name: str, noised: Ints, scale: float, following: Floats, groups: Floats) -> Floats:
    """Shares by a factor's value, or by group: how many objects a group has is known by a table of its own."""
    if name != BY_GROUP:
        return _alike_factor(noised, scale, following, shares(noised.sum(axis=(1, 2)).clip(0).astype(np.float64)))
    rest = following.copy()
    rest[0, :-1], rest[1:] = shares(following[0, :-1]), shares(following[1:])
    return np.concatenate([_alike_factor(noised, scale, following, groups[:-1]), rest[None]])


def _alike_factor(noised: Ints, scale: float, following: Floats, parts: Floats) -> Floats:
    """Shares by a factor's value: what all share, in these parts, is the prior, which much noise leaves as it is."""
    prior = parts[:, None, None] * following
    found, can_be = np.zeros_like(prior), possible(noised)
    found[can_be] = posterior_mean(noised[can_be], scale, prior[can_be])
    found = np.where(found.sum(axis=2, keepdims=True) > 0, found, prior)
    found[:, 0, :-1], found[:, 1:] = shares(found[:, 0, :-1]), shares(found[:, 1:])
    return found


def _transitions(domain: Domain, noised: Tables, states: Floats, objects: int, scale: float) -> Floats:
    """Posterior means of all transitions, raked to the state counts and the number of objects."""
    total = max(states.sum(), 1e-9)
    inside = np.array([last <= domain.events_max for last in domain.length_bins] + [False])
    ended = float(np.clip(noised.lengths[inside].sum(), 0, objects))
    rows = np.concatenate([[float(objects)], states])
    columns = np.concatenate([states, [ended]])
    prior = np.outer(rows, columns) / max(columns.sum(), 1e-9)
    prior[0] = objects * np.append(states / total, 0.0)
    found = np.zeros_like(prior)
    can_be = possible(prior)
    found[can_be] = posterior_mean(noised.transitions[can_be], scale, prior[can_be])
    return rake(found, rows, np.append(states, np.nan))


def _chunk(model: Private, count: int, rng: np.random.Generator, made: Made) -> pa.RecordBatch:
    """Some objects, all a step at a time."""
    domain = model.domain
    states = len(domain.states)
    us, end = _first_times(model, count, rng)
    group = rng.choice(len(model.groups), count, p=model.groups) if len(model.groups) else None
    chain = _Chain.of(model)
    at = np.arange(count)
    state = np.minimum(chain.draw(np.zeros(count, dtype=np.int64), us, group, rng), states - 1)
    events: list[tuple[Ints, Ints, Ints]] = []
    for _ in range(domain.longest):
        events.append((at, state, us[at]))
        after = chain.draw(state + 1, us[at], group[at] if group is not None else None, rng)
        if domain.timed:
            us[at] += _steps(model, state, rng)
        go = (after < states) & (us[at] < end)
        at, state = at[go], after[go]
        if not len(at):
            break
    number, state, when = (np.concatenate(c) for c in zip(*events, strict=True))
    order = np.argsort(number, kind="stable")
    number, state, when = number[order], state[order], when[order]
    sizes = np.bincount(number, minlength=count)
    position = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    groups = [pa.array(group[number].astype(np.int32))] if group is not None else []
    number = number + made.objects + 1
    made.objects, made.events, made.parts = made.objects + count, made.events + len(number), made.parts + count
    times = pa.array(when).cast(pa.timestamp("us")) if domain.timed else pa.nulls(len(when), pa.timestamp("us"))
    events_made = [pa.array(number), pa.array(number), pa.array(position), pa.array(state.astype(np.int32)), times]
    return pa.RecordBatch.from_arrays([*events_made, *groups], schema=GROUPED if groups else SCHEMA)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Running sums of shares: of all, or by the values of each factor, of which the mean is drawn from.

    Parameters
    ----------
    factors
        Name, first value, and running sums by value.
    """

    whole: Floats
    factors: tuple[tuple[str, int, Floats], ...]

    @classmethod
    def of(cls, model: Private) -> _Chain:
        """START → END is 0."""
        whole = np.vstack([np.append(model.first, 0.0), model.following])
        lowest = {n: 0 if n == BY_GROUP else model.domain.values(n).start for n in model.factors}
        found = ((n, lowest[n], np.cumsum(t, axis=2)) for n, t in model.factors.items())
        return cls(np.cumsum(whole, axis=1), tuple(found))

    def draw(self, row: Ints, us: Ints, group: Ints | None, rng: np.random.Generator) -> Ints:
        """What follows each state (row 0: START), whose event was at these times, of objects of these groups."""
        steps = self.whole[row]
        if self.factors:
            values = [
                group if n == BY_GROUP and group is not None else np.clip(moment(n, us) - low, 0, len(t) - 1)
                for n, low, t in self.factors
            ]
            steps = np.mean([t[v, row] for v, (_, _, t) in zip(values, self.factors, strict=True)], axis=0)
        found: Ints = (steps <= (rng.random(len(row)) * steps[:, -1])[:, None]).sum(axis=1)
        return found


def _first_times(model: Private, count: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """When objects start, in microseconds since 1970, and the end of the range."""
    domain = model.domain
    if domain.first is None or domain.last is None:
        return np.zeros(count, dtype=np.int64), 1
    start, end = (int(np.datetime64(t, "us").astype(np.int64)) for t in (domain.first, domain.last))
    month = rng.choice(domain.months, count, p=model.months) + (domain.first.year - 1970) * 12 + domain.first.month - 1
    begins = month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    ends = (month + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    slot = rng.choice(7 * 24, count, p=model.hours)
    day = begins + (slot // 24 - (begins + 3) % 7) % 7 + 7 * rng.integers(0, 5, count)
    day = np.where(day >= ends, day - 7, day)
    us = day * DAY_US + slot % 24 * HOUR_US + rng.integers(0, 3600, count) * SECOND_US
    outside = (us < start) | (us >= end)
    anywhere = start + (rng.random(count) * max((end - start) // SECOND_US, 1)).astype(np.int64) * SECOND_US
    return np.where(outside, anywhere, us), end


def _steps(model: Private, state: Ints, rng: np.random.Generator) -> Ints:
    """Times to the next event: a bin by the state, then whole seconds within it (even on a logarithmic scale).

    An edge is the first gap of the bin above it, as where gaps are counted (`events/bound_gaps`).
    """
    edges = np.array([float(e) for e in model.domain.gap_bins_hours])
    cumulative = np.cumsum(model.gaps, axis=1)[state]
    drawn = (cumulative <= (rng.random(len(state)) * cumulative[:, -1])[:, None]).sum(axis=1)
    low = np.concatenate([[0.0], edges])[drawn]
    high = np.concatenate([edges, [edges[-1] * OPEN_BIN]])[drawn]
    chance = rng.random(len(state))
    hours = np.where(low > 0, np.maximum(low, 1e-9) * (high / np.maximum(low, 1e-9)) ** chance, high * chance)
    least = np.array([1, *(max(ceil(edge * 3600), 1) for edge in model.domain.gap_bins_hours)], dtype=np.int64)
    most = np.append(least[1:] - 1, np.iinfo(np.int64).max)
    seconds: Ints = np.clip(np.floor(hours * 3600).astype(np.int64), least[drawn], np.maximum(most, least)[drawn])
    return seconds * SECOND_US
