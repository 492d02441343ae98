"""Where a made patient lies during an admission: wards and ICUs in turn, as `transfers` and `icustays`.

An admission is six segments in order, of which some are absent: ward, ICU, another unit of the same ICU stay, ward,
second ICU stay, ward. They follow each other without a gap and end with the discharge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.conditions import CAREUNITS, CONDITIONS
from sqldeid.demo.draw import draw_codes, integers, text, timestamps, weight_table
from sqldeid.demo.patients import DAY, HOUR, MINUTE, SOURCES, Admissions, Patients

SEGMENTS = 6
ICU, ICU_MOVED, WARD_BETWEEN, ICU_AGAIN, WARD_AFTER = 1, 2, 3, 4, 5
UNIT_SEGMENTS = np.array([ICU, ICU_MOVED, ICU_AGAIN])
WARD_OF_UNIT = np.array([[52, 23, 50], [57, 33, 57], [7, 7, 57], [15, 12, 15], [14, 23, 14], [56, 56, 26]])
WARDS = np.array([2, 3, 4, 17, 18, 24, 27, 29, 31, 32, 36, 40, 45, 48, 49, 54, 55])
EVENTS = ("admit", "transfer", "discharge")


@dataclass(frozen=True, slots=True)
class Segments:
    """One row per admission, one column per segment.

    `seconds` is 0 where a segment is absent; `unit` is a care unit, -1 on a ward; `before_seconds` lie between the
    admission and the first segment.
    """

    present: Flags
    seconds: Ints
    unit: Ints
    ward: Ints
    before_seconds: Ints

    @property
    def total_seconds(self) -> Ints:
        """From admission to discharge, whole minutes."""
        return np.asarray(self.before_seconds + self.seconds.sum(axis=1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Stays:
    """One entry per ICU stay; `admission` is a position in `Admissions`, times are seconds since 1970."""

    ids: Ints
    admission: Ints
    first: Ints
    last: Ints
    entered: Ints
    left: Ints


def draw_segments(rng: np.random.Generator, condition: Ints, died: Flags, severity: Floats) -> Segments:
    """Which segments there are, how long and where: the sicker stay longer, the dying rarely leave the ICU."""
    count, newborn = len(condition), condition == len(CONDITIONS) - 1
    chance = np.tile([0.25, 1.0, 0.07, 0.06, 0.06, 0.88], (count, 1))
    chance[:, WARD_AFTER] = np.where(died, 0.15, chance[:, WARD_AFTER])
    chance[newborn] = [0.0, 1.0, 0.0, 0.0, 0.0, 0.3]
    present = rng.random(chance.shape) < chance
    present[:, WARD_BETWEEN] = present[:, ICU_AGAIN]
    median = np.tile([22.0, 44.0, 40.0, 48.0, 40.0, 96.0], (count, 1)) * np.exp(0.25 * severity)[:, None]
    median[newborn, ICU] *= 2.5
    hours = np.clip(median * np.exp(rng.normal(0.0, 0.85, median.shape)), 3.0, 70 * 24.0)
    seconds = np.where(present, (hours * HOUR).astype(np.int64), 0)
    before = rng.integers(20, 240, count)
    last = SEGMENTS - 1 - present[:, ::-1].argmax(axis=1)
    seconds[np.arange(count), last] += -(before + seconds.sum(axis=1)) % MINUTE
    unit, ward = _places(rng, condition, present)
    return Segments(present, seconds, unit, ward, before)


def _places(rng: np.random.Generator, condition: Ints, present: Flags) -> tuple[Ints, Ints]:
    """Care unit by condition; after a move inside the ICU another draw."""
    weights = weight_table(CAREUNITS, [c.units for c in CONDITIONS])
    unit = np.full(present.shape, -1, dtype=np.int64)
    ward = WARDS[rng.integers(0, len(WARDS), present.shape)]
    for segment in UNIT_SEGMENTS:
        unit[:, segment] = draw_codes(rng, weights, condition)
        ward[:, segment] = WARD_OF_UNIT[unit[:, segment], rng.integers(0, 3, len(condition))]
    return unit, ward


def find_stays(rng: np.random.Generator, admissions: Admissions, segments: Segments) -> Stays:
    """The ICU stays, in order of admission and time."""
    begins, ends = _bounds(admissions, segments)
    opens = segments.present[:, [ICU, ICU_AGAIN]]
    admission, again = np.nonzero(opens)
    first = np.where(again == 1, ICU_AGAIN, ICU)
    last = np.where((again == 0) & segments.present[admission, ICU_MOVED], ICU_MOVED, first)
    ids = 200_000 + rng.permutation(max(100_000, 2 * len(first)))[: len(first)]
    return Stays(ids, admission, first, last, begins[admission, first], ends[admission, last])


def icustays_table(patients: Patients, admissions: Admissions, segments: Segments, stays: Stays) -> pa.Table:
    """The table `icustays`, one row per stay; `los` in days."""
    who, at = admissions.patient[stays.admission], stays.admission
    small = pa.int16()
    return pa.table(
        {
            "row_id": integers(np.arange(1, len(at) + 1)),
            "subject_id": integers(patients.ids[who]),
            "hadm_id": integers(admissions.ids[at]),
            "icustay_id": integers(stays.ids),
            "dbsource": text(SOURCES, patients.source[who]),
            "first_careunit": text(CAREUNITS, segments.unit[at, stays.first]),
            "last_careunit": text(CAREUNITS, segments.unit[at, stays.last]),
            "first_wardid": integers(segments.ward[at, stays.first], kind=small),
            "last_wardid": integers(segments.ward[at, stays.last], kind=small),
            "intime": timestamps(stays.entered),
            "outtime": timestamps(stays.left),
            "los": pa.array(np.round((stays.left - stays.entered) / DAY, 4)),
        }
    )


def transfers_table(patients: Patients, admissions: Admissions, segments: Segments, stays: Stays) -> pa.Table:
    """The table `transfers`: one row per segment and one for the discharge; `los` in hours."""
    begins, ends = _bounds(admissions, segments)
    shown = np.column_stack([segments.present, np.ones(len(begins), dtype=np.bool_)])
    at, segment = np.nonzero(shown)
    gone = segment == SEGMENTS
    first = np.append(True, at[1:] != at[:-1])
    here = np.where(gone, 0, segment)
    unit, ward = segments.unit[at, here], segments.ward[at, here]
    intime = np.where(gone, admissions.discharged[at], begins[at, here])
    outtime = ends[at, here]
    stay = _stay_of_segment(len(begins), stays)[at, here]
    before_unit, before_ward = np.roll(unit, 1), np.roll(ward, 1)
    who, small = admissions.patient[at], pa.int16()
    return pa.table(
        {
            "row_id": integers(np.arange(1, len(at) + 1)),
            "subject_id": integers(patients.ids[who]),
            "hadm_id": integers(admissions.ids[at]),
            "icustay_id": integers(stay, gone | (stay < 0)),
            "dbsource": text(SOURCES, patients.source[who]),
            "eventtype": text(EVENTS, np.where(gone, 2, np.where(first, 0, 1))),
            "prev_careunit": text(CAREUNITS, np.maximum(before_unit, 0), first | (before_unit < 0)),
            "curr_careunit": text(CAREUNITS, np.maximum(unit, 0), gone | (unit < 0)),
            "prev_wardid": integers(before_ward, first, kind=small),
            "curr_wardid": integers(ward, gone, kind=small),
            "intime": timestamps(intime),
            "outtime": timestamps(outtime, gone),
            "los": pa.array(np.round((outtime - intime) / HOUR, 2), mask=gone),
        }
    )


def _bounds(admissions: Admissions, segments: Segments) -> tuple[Ints, Ints]:
    """Begin and end of every segment; one row per admission, one column per segment."""
    ends = (admissions.admitted + segments.before_seconds)[:, None] + np.cumsum(segments.seconds, axis=1)
    return ends - segments.seconds, ends


def _stay_of_segment(count: int, stays: Stays) -> Ints:
    """The stay's id for every segment that belongs to one; -1 elsewhere, also for segments that are absent."""
    stay = np.full((count, SEGMENTS), -1, dtype=np.int64)
    stay[stays.admission, stays.first] = stays.ids
    stay[stays.admission, stays.last] = stays.ids
    return stay
