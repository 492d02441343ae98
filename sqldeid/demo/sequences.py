"""Two tables of hospital events: transfers between wards (with times) and billed procedures (with an order alone).

Kind T: 42 wards, each entered by admission or transfer, and a discharge: 85 states. Kind C: 117 procedure codes.
Patients are of a few types, each with wards or codes of its own and habits of going from one to another; the numbers
are ours. At 4,370 and 3,171 objects there are about 25,000 events of each kind, as in Shaked & Rokach 2016, table 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Floats, Ints
from sqldeid.demo.draw import rank_in_group, timestamps

WARDS, CODES = 42, 117
TYPES = 8
HOUR, DAY = 3600, 86_400
FIRST_DAY, DAYS = 47_482, 3_650
"""Admissions begin within ten years from 2100-01-01 on."""

HISTORY_MOST = 138
BILLED_MOST = 116
_HABITS_SEED = 20_160_831
"""Wards, codes and habits are those of one hospital, whatever the seed of its patients is."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How patients of each type go from one of `size` places to the next.

    Parameters
    ----------
    first
        Cumulative shares of first places, a line per type.
    following
        Cumulative shares of following places, a line per type and place.
    """

    first: Floats
    following: Floats
    size: int

    def start(self, rng: np.random.Generator, kind: Ints) -> Ints:
        """First places."""
        return self._take(rng, self.first[kind])

    def go_on(self, rng: np.random.Generator, kind: Ints, place: Ints) -> Ints:
        """Following places."""
        return self._take(rng, self.following[kind * self.size + place])

    def _take(self, rng: np.random.Generator, steps: Floats) -> Ints:
        chance = rng.random(len(steps))[:, None]
        found: Ints = np.minimum((steps <= chance).sum(axis=1), self.size - 1).astype(np.int64)
        return found


def make_habits(size: int, pool: int, stay: float, wander: float, steep: float) -> Habits:
    """Habits of `TYPES` types.

    Parameters
    ----------
    pool
        Places that patients of a type mostly visit.
    stay, wander
        Shares of steps that stay where they are, and that go anywhere in the pool; the others follow a habit.
    steep
        Exponent by which a pool's places become rarer.
    """
    rng = np.random.default_rng(_HABITS_SEED + size)
    common = 1.0 / (np.arange(size) + 1.0) ** 1.1
    first, following = [], []
    for _ in range(TYPES):
        places = rng.choice(size, pool, replace=False, p=common / common.sum())
        liked = np.full(size, 0.05 / size)
        liked[places] += 0.95 / (np.arange(pool) + 1.0) ** steep / (1 / (np.arange(pool) + 1.0) ** steep).sum()
        first.append(np.cumsum(liked / liked.sum()))
        for place in range(size):
            steps = wander * liked / liked.sum()
            steps[place] += stay
            steps[rng.choice(places, 3, replace=False)] += (1 - stay - wander) * np.array([0.6, 0.28, 0.12])
            following.append(np.cumsum(steps / steps.sum()))
    return Habits(np.array(first), np.array(following), size)


@dataclass(slots=True)
class _Events:
    """Columns of events, in the order in which they were drawn."""

    columns: dict[str, list[Ints]] = field(default_factory=dict)

    def add(self, **columns: Ints) -> None:
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(values)

    def ordered(self, *keys: str) -> dict[str, Ints]:
        """All columns, ordered by these."""
        whole = {name: np.concatenate(values) for name, values in self.columns.items()}
        order = np.lexsort([whole[k] for k in reversed(keys)])
        return {name: values[order] for name, values in whole.items()}


def _kinds(rng: np.random.Generator, objects: int) -> Ints:
    share = 1.0 / np.arange(1, TYPES + 1)
    return rng.choice(TYPES, objects, p=share / share.sum())


def transfer_rows(objects: int, seed: int) -> pa.Table:
    """Kind T: one row per admission, transfer and discharge, in the shape of MIMIC-III's TRANSFERS.

    Columns row_id, subject_id, hadm_id, eventtype, curr_wardid (NULL at discharge) and intime.
    """
    rng = np.random.default_rng([seed, 1])
    habits = make_habits(WARDS, pool=9, stay=0.03, wander=0.22, steep=1.0)
    kind = _kinds(rng, objects)
    hadm = rng.permutation(objects * 16)
    now = (FIRST_DAY + rng.integers(0, DAYS, objects)) * DAY + _day_time(rng, objects)
    length = np.zeros(objects, dtype=np.int64)
    alive, events = np.arange(objects), _Events()
    for visit in range(12):
        now[alive] = _admission(rng, habits, kind, alive, now, length, hadm[alive * 16 + visit], events)
        alive = alive[(rng.random(len(alive)) < 0.21) & (length[alive] < HISTORY_MOST - 16)]
        far = rng.random(len(alive)) < 0.24
        days = np.where(far, rng.gamma(6.0, 230.0, len(alive)) + 720, rng.gamma(1.1, 75.0, len(alive)) + 1)
        now[alive] = ((now[alive] // DAY) + days.astype(np.int64)) * DAY + _day_time(rng, len(alive))
    found = events.ordered("object", "step")
    words = np.array(["admit", "transfer", "discharge"])
    leaving = found["what"] == 2
    return pa.table(
        {
            "row_id": pa.array(np.arange(1, len(leaving) + 1), pa.int32()),
            "subject_id": pa.array(found["object"] * 7 + 10_006, pa.int32()),
            "hadm_id": pa.array(found["visit"] + 100_000, pa.int32()),
            "eventtype": pa.array(words[found["what"]]),
            "curr_wardid": pa.array(found["ward"] + 1, mask=leaving).cast(pa.int32()),
            "intime": timestamps(found["seconds"]),
        }
    )


def _day_time(rng: np.random.Generator, count: int) -> Ints:
    """Seconds since midnight; most arrive in the afternoon."""
    return (np.clip(rng.normal(14.5, 5.0, count), 0, 23.99) * HOUR).astype(np.int64)


def _admission(
    rng: np.random.Generator,
    habits: Habits,
    kind: Ints,
    alive: Ints,
    now: Ints,
    length: Ints,
    visit: Ints,
    events: _Events,
) -> Ints:
    """One admission of each: in, from ward to ward, out; the time of leaving."""
    at, us = np.arange(len(alive)), now[alive]
    ward = habits.start(rng, kind[alive])
    stay = rng.lognormal(0.0, 0.35, len(alive))
    what = np.zeros(len(alive), dtype=np.int64)
    while len(at):
        who = alive[at]
        events.add(object=who, step=length[who], visit=visit[at], ward=ward, what=what[at], seconds=us[at])
        length[who] += 1
        hours = rng.lognormal(2.2 + 0.05 * (ward % 30), 0.7) * stay[at]
        us[at] += (hours * HOUR).astype(np.int64) + 60
        going = rng.random(len(at)) < np.where(what[at] == 0, 0.85, 0.668) * (length[who] < HISTORY_MOST - 4)
        left = at[~going]
        gone = alive[left]
        events.add(
            object=gone, step=length[gone], visit=visit[left], ward=ward[~going], what=left * 0 + 2, seconds=us[left]
        )
        length[gone] += 1
        at, ward = at[going], ward[going]
        ward = habits.go_on(rng, kind[alive[at]], ward)
        what[at] = 1
    return us


def procedure_rows(objects: int, seed: int) -> pa.Table:
    """Kind C: one row per billed procedure, in the shape of MIMIC-III's CPTEVENTS.

    Columns row_id, subject_id, hadm_id, cpt_cd and ticket_id_seq (NULL here and there).
    """
    rng = np.random.default_rng([seed, 2])
    habits = make_habits(CODES, pool=11, stay=0.52, wander=0.16, steep=1.3)
    kind = _kinds(rng, objects)
    many = np.clip(np.floor(rng.lognormal(1.575, 0.95, objects)) + 1, 1, BILLED_MOST).astype(np.int64)
    code, alive, events = habits.start(rng, kind), np.arange(objects), _Events()
    for step in range(BILLED_MOST):
        events.add(object=alive, step=np.full(len(alive), step), code=code)
        stays = many[alive] > step + 1
        alive, code = alive[stays], code[stays]
        if not len(alive):
            break
        code = habits.go_on(rng, kind[alive], code)
    found = events.ordered("object", "step")
    ticket = rank_in_group(many) + 1
    last = np.append(found["object"][1:] != found["object"][:-1], True)
    codes = np.array([f"{c:05d}" for c in 90_000 + (np.arange(CODES) * 7_919) % 9_990])
    return pa.table(
        {
            "row_id": pa.array(np.arange(1, len(ticket) + 1), pa.int32()),
            "subject_id": pa.array(found["object"] * 7 + 10_006, pa.int32()),
            "hadm_id": pa.array(found["object"] * 11 + 100_001, pa.int32()),
            "cpt_cd": pa.array(codes[found["code"]]),
            "ticket_id_seq": pa.array(ticket, mask=last & (rng.random(len(ticket)) < 0.05)).cast(pa.int32()),
        }
    )
