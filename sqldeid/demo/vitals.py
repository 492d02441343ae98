"""Vital signs of the made ICU stays: about hourly, autocorrelated, with gaps, in the items of both source systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.conditions import CONDITIONS
from sqldeid.demo.draw import integers, text, timestamps
from sqldeid.demo.patients import HOUR, MINUTE, Admissions, Patients
from sqldeid.demo.stays import Stays

CHARTED_STAYS_MOST = 20_000
CHARTED_HOURS_MOST = 72
STAYS_IN_BATCH = 500
CELSIUS = 223762
CELSIUS_SHARE = 0.15
NULL_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class Vital:
    """A vital sign.

    Parameters
    ----------
    name
        As in `conditions.Condition.vitals`.
    items
        Item ids of carevue and metavision.
    units
        Unit texts of carevue and metavision.
    level, newborn_level
        Mean in the unit (°F for temperature).
    between, within
        Standard deviations between stays and around a stay's own level.
    severity
        Added per unit of the admission's severity.
    bounds
        Values are cut to this range.
    hourly
        Share of the hours in which it is taken.
    """

    name: str
    items: tuple[int, int]
    units: tuple[str, str]
    level: float
    newborn_level: float
    between: float
    within: float
    severity: float
    bounds: tuple[float, float]
    hourly: float


VITALS = (
    Vital("heart rate", (211, 220045), ("BPM", "bpm"), 84, 145, 11, 8, 5, (25, 220), 0.96),
    Vital("systolic", (51, 220179), ("mmHg", "mmHg"), 121, 66, 13, 12, -5, (45, 240), 0.9),
    Vital("diastolic", (8368, 220180), ("mmHg", "mmHg"), 62, 38, 8, 8, -3, (20, 140), 0.9),
    Vital("oxygen saturation", (646, 220277), ("%", "%"), 97.4, 96, 1.1, 1.6, -0.6, (60, 100), 0.94),
    Vital("temperature", (678, 223761), ("Deg. F", "?F"), 98.5, 98.4, 0.6, 0.6, 0.1, (88, 108), 0.27),
    Vital("respiration", (618, 220210), ("BPM", "insp/min"), 18.5, 44, 2.6, 3.6, 1.3, (4, 80), 0.94),
    Vital("glucose", (807, 220621), ("", "mg/dL"), 132, 82, 24, 24, 6, (35, 500), 0.16),
)
SYSTOLIC, DIASTOLIC, TEMPERATURE, GLUCOSE = 1, 2, 4, 6
REMEMBERED = 0.85
"""Correlation of a value with that of the hour before."""


def chartevents(
    rng: np.random.Generator, patients: Patients, admissions: Admissions, stays: Stays
) -> pa.RecordBatchReader:
    """The table `chartevents` in batches: the first `CHARTED_HOURS_MOST` hours of the first `CHARTED_STAYS_MOST` stays.

    About 4.5 rows an hour. MIMIC too has admissions without chart events (``has_chartevents_data``).
    """
    rows = _batches(rng, patients, admissions, stays)
    return pa.RecordBatchReader.from_batches(SCHEMA, rows)


def charted_admissions(admissions: Admissions, stays: Stays) -> Flags:
    """Which admissions have a stay that `chartevents` covers."""
    charted = np.zeros(len(admissions.ids), dtype=np.bool_)
    charted[stays.admission[:CHARTED_STAYS_MOST]] = True
    return charted


SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("row_id", "subject_id", "hadm_id", "icustay_id", "itemid")),
        *(("charttime", pa.timestamp("us")), ("storetime", pa.timestamp("us")), ("cgid", pa.int32())),
        *(("value", pa.string()), ("valuenum", pa.float64()), ("valueuom", pa.string())),
        *(("warning", pa.int32()), ("error", pa.int32()), ("resultstatus", pa.string()), ("stopped", pa.string())),
    ]
)


def _batches(
    rng: np.random.Generator, patients: Patients, admissions: Admissions, stays: Stays
) -> Iterator[pa.RecordBatch]:
    written = 0
    for begin in range(0, min(len(stays.ids), CHARTED_STAYS_MOST), STAYS_IN_BATCH):
        chosen = np.arange(begin, min(begin + STAYS_IN_BATCH, len(stays.ids), CHARTED_STAYS_MOST))
        batch = _batch(rng, patients, admissions, stays, chosen, written)
        written += batch.num_rows
        yield batch


def _batch(
    rng: np.random.Generator, patients: Patients, admissions: Admissions, stays: Stays, chosen: Ints, written: int
) -> pa.RecordBatch:
    """The rows of the `chosen` stays, by stay, time and vital sign; `written` rows came before."""
    at = stays.admission[chosen]
    source = patients.source[admissions.patient[at]]
    values = _values(rng, admissions.condition[at], admissions.severity[at])
    hour = -(-stays.entered[chosen] // HOUR)[:, None] + np.arange(CHARTED_HOURS_MOST)
    late = rng.integers(0, 60, hour.shape) * (rng.random(hour.shape) < 0.25)
    charted = hour * HOUR + late * MINUTE
    taken = _taken(rng, len(chosen)) & (charted <= stays.left[chosen, None])[:, :, None]
    stay, when, vital = np.nonzero(taken)
    celsius = (rng.random(len(chosen)) < CELSIUS_SHARE) & (source == 1)
    number, item, unit = _as_written(values[taken], vital, source[stay], celsius[stay])
    return _rows(
        rng,
        {
            "row_id": integers(written + 1 + np.arange(len(stay))),
            "subject_id": integers(patients.ids[admissions.patient[at]][stay]),
            "hadm_id": integers(admissions.ids[at][stay]),
            "icustay_id": integers(stays.ids[chosen][stay]),
            "itemid": integers(item),
        },
        charted[stay, when],
        number,
        text(UNITS, unit, unit == 0),
        source[stay],
        vital,
    )


def _values(rng: np.random.Generator, condition: Ints, severity: Floats) -> Floats:
    """Values by stay, hour and vital sign: a level per stay, and around it an autoregression from hour to hour."""
    newborn = (condition == len(CONDITIONS) - 1)[:, None]
    level = np.where(newborn, [v.newborn_level for v in VITALS], [v.level for v in VITALS])
    shift = np.array([[c.vitals.get(v.name, 0.0) for v in VITALS] for c in CONDITIONS])
    level = level + shift[condition] + severity[:, None] * np.array([v.severity for v in VITALS])
    level += rng.normal(size=level.shape) * np.array([v.between for v in VITALS])
    news = rng.normal(size=(len(condition), CHARTED_HOURS_MOST, len(VITALS)))
    news[:, :, DIASTOLIC] = 0.75 * news[:, :, SYSTOLIC] + 0.66 * news[:, :, DIASTOLIC]
    state = news.copy()
    for hour in range(1, CHARTED_HOURS_MOST):
        state[:, hour] = REMEMBERED * state[:, hour - 1] + np.sqrt(1 - REMEMBERED**2) * news[:, hour]
    values = level[:, None, :] + state * np.array([v.within for v in VITALS])
    low, high = np.array([v.bounds for v in VITALS]).T
    values = np.clip(values, low, high)
    values[:, :, DIASTOLIC] = np.minimum(values[:, :, DIASTOLIC], values[:, :, SYSTOLIC] - 8)
    return np.asarray(values, dtype=np.float64)


def _taken(rng: np.random.Generator, count: int) -> Flags:
    """What is written down, by stay, hour and vital: single misses, and in two stays of five a gap of 3 to 8 hours."""
    taken: Flags = rng.random((count, CHARTED_HOURS_MOST, len(VITALS))) < np.array([v.hourly for v in VITALS])
    taken[:, :, DIASTOLIC] = taken[:, :, SYSTOLIC]
    begin = np.where(rng.random(count) < 0.4, rng.integers(0, CHARTED_HOURS_MOST, count), CHARTED_HOURS_MOST)
    end = begin + rng.integers(3, 9, count)
    hours = np.arange(CHARTED_HOURS_MOST)
    away = (hours >= begin[:, None]) & (hours < end[:, None])
    taken[away] = False
    return taken


UNITS = ("", *dict.fromkeys(unit for v in VITALS for unit in v.units if unit), "?C")


def _as_written(values: Floats, vital: Ints, source: Ints, celsius: Flags) -> tuple[Floats, Ints, Ints]:
    """The number as the nurse writes it, its item id and its unit: whole numbers, temperatures with one decimal."""
    cold = celsius & (vital == TEMPERATURE)
    values = np.where(cold, (values - 32) / 1.8, values)
    number = np.where(vital == TEMPERATURE, np.round(values, 1), np.rint(values))
    item = np.where(cold, CELSIUS, np.array([v.items for v in VITALS])[vital, source])
    unit = np.array([[UNITS.index(unit) for unit in v.units] for v in VITALS])[vital, source]
    return number, item, np.where(cold, len(UNITS) - 1, unit)


def _rows(
    rng: np.random.Generator,
    keys: dict[str, pa.Array],
    charted: Ints,
    number: Floats,
    unit: pa.Array,
    source: Ints,
    vital: Ints,
) -> pa.RecordBatch:
    """The rest of the columns: NULL where the source system does not have them, and for a few values."""
    count, carevue = len(number), source == 0
    none = rng.random(count) < NULL_SHARE
    zero = np.zeros(count, dtype=np.int64)
    valuenum = pa.array(number, mask=none)
    columns = keys | {
        "charttime": timestamps(charted),
        "storetime": timestamps(charted + rng.integers(1, 90, count) * MINUTE),
        "cgid": integers(14_000 + rng.integers(0, 400, count) * 19),
        "value": valuenum.cast(pa.string()),
        "valuenum": valuenum,
        "valueuom": unit,
        "warning": integers(zero, carevue),
        "error": integers(zero, carevue),
        "resultstatus": text(("Manual",), zero, ~(carevue & (vital == GLUCOSE))),
        "stopped": text(("NotStopd",), zero, ~carevue),
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)
