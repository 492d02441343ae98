"""Made patients and their admissions, in the shape of MIMIC-III: who they are, when they came, how they left.

Dates are shifted by person to 2100–2200, as MIMIC shifts them, and a person who is over 89 at the last admission is
shown as born 300 years before the first one. NULL stands where MIMIC has it: language often, marital status of
newborns, dates of death of the living, emergency-room times of who did not pass through it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.draw import band, draw_codes, integers, rank_in_group, starts, text, timestamps, weight_table
from sqldeid.demo.patient_weights import (
    DISCHARGES,
    DISCHARGES_BY_AGE,
    ETHNICITIES,
    INSURANCE_BY_AGE,
    INSURANCES,
    LANGUAGE_BY_ETHNICITY,
    LANGUAGES,
    LOCATION_BY_TYPE,
    LOCATIONS,
    MARITAL_BY_AGE_AND_GENDER,
    MARITALS,
    RELIGION_BY_ETHNICITY,
    RELIGIONS,
    TYPE_BY_CONDITION,
    TYPES,
)

DAY, HOUR, MINUTE = 86_400, 3_600, 60
YEAR = 365.2425 * DAY
FIRST_DAY, LAST_DAY = 47_482 * DAY, 69_396 * DAY  # 2100-01-01 and 2160-01-01, in seconds since 1970
ADMISSIONS_MOST = 12
GAP_DAYS_MOST = 900.0
NEWBORNS = 0.12
GENDERS = ("M", "F")
SOURCES = ("carevue", "metavision")


@dataclass(frozen=True, slots=True)
class Patients:
    """One entry per patient; codes point into the word lists of `patient_weights`."""

    ids: Ints
    gender: Ints
    ethnicity: Ints
    newborn: Flags
    first_age_years: Floats
    admissions: Ints
    source: Ints


@dataclass(frozen=True, slots=True)
class Admissions:
    """One entry per admission, a patient's in order of time.

    `patient` is a position in `Patients`; `severity` is a hidden standard normal score that deaths and vital signs
    share; `died` is set on a patient's last admission only; times are seconds since 1970.
    """

    patient: Ints
    number: Ints
    ids: Ints
    age_years: Floats
    condition: Ints
    severity: Floats
    died: Flags
    admitted: Ints
    discharged: Ints


def draw_patients(rng: np.random.Generator, count: int) -> Patients:
    """Patients without times: identity, age at the first admission, and how often they come."""
    newborn = rng.random(count) < NEWBORNS
    age = np.where(rng.random(count) < 0.8, rng.normal(67, 14, count), rng.uniform(16, 60, count))
    age = np.where(newborn, 0.0, np.clip(np.where(age < 16, 32 - age, age), 16, 99))
    again = np.minimum(rng.geometric(np.where(newborn, 1.0, 0.78)), ADMISSIONS_MOST)
    one = np.zeros(count, dtype=np.int64)
    return Patients(
        ids=np.cumsum(rng.integers(1, 4, count)) + 2,
        gender=draw_codes(rng, np.array([[0.56, 0.44]]), one),
        ethnicity=draw_codes(rng, weight_table(tuple(ETHNICITIES), [ETHNICITIES]), one),
        newborn=newborn,
        first_age_years=age,
        admissions=again.astype(np.int64),
        source=draw_codes(rng, np.array([[0.58, 0.42]]), one),
    )


def draw_times(rng: np.random.Generator, patients: Patients, stays_seconds: Ints) -> tuple[Ints, Ints]:
    """Admission and discharge, given how long each admission lasts; gaps of a day to `GAP_DAYS_MOST` between them."""
    counts = patients.admissions
    gaps = np.clip(rng.exponential(240.0, len(stays_seconds)), 1.0, GAP_DAYS_MOST) * DAY
    first = rng.integers(FIRST_DAY // MINUTE, LAST_DAY // MINUTE, len(counts)) * MINUTE
    steps = np.ceil((stays_seconds + gaps) / MINUTE).astype(np.int64) * MINUTE
    passed = np.cumsum(steps) - steps
    admitted = np.repeat(first - passed[starts(counts)], counts) + passed
    return admitted, admitted + stays_seconds


def patients_table(rng: np.random.Generator, patients: Patients, admissions: Admissions) -> pa.Table:
    """The table `patients`, one row per patient."""
    count = len(patients.ids)
    first = starts(patients.admissions)
    last = first + patients.admissions - 1
    born = admissions.admitted[first] - (patients.first_age_years * YEAR).astype(np.int64)
    old = admissions.age_years[last] > 89
    born = np.where(old, admissions.admitted[first] - int(300 * YEAR), born) // DAY * DAY
    in_hospital = admissions.died[last]
    years = np.maximum(admissions.age_years[last], 0)
    later = ~in_hospital & (rng.random(count) < np.clip((years - 35) / 90, 0.0, 0.6))
    survived = (rng.exponential(500, count) * DAY).astype(np.int64) + DAY
    death = (admissions.discharged[last] + np.where(in_hospital, 0, survived)) // DAY * DAY
    registered = later | (in_hospital & (rng.random(count) < 0.8))
    return pa.table(
        {
            "row_id": integers(np.arange(1, count + 1)),
            "subject_id": integers(patients.ids),
            "gender": text(GENDERS, patients.gender),
            "dob": timestamps(born),
            "dod": timestamps(death, ~(in_hospital | later)),
            "dod_hosp": timestamps(death, ~in_hospital),
            "dod_ssn": timestamps(death, ~registered),
            "expire_flag": integers((in_hospital | later).astype(np.int64)),
        }
    )


def admissions_table(
    rng: np.random.Generator, patients: Patients, admissions: Admissions, diagnoses: tuple[str, ...], charted: Flags
) -> pa.Table:
    """The table `admissions`; `diagnoses` are the words of the conditions, `charted` says who has chart events."""
    who = admissions.patient
    newborn = patients.newborn[who] & (admissions.number == 0)
    kind = draw_codes(rng, weight_table(TYPES, TYPE_BY_CONDITION), admissions.condition)
    kind = np.where(newborn, TYPES.index("NEWBORN"), kind)
    location = draw_codes(rng, weight_table(LOCATIONS, LOCATION_BY_TYPE), kind)
    emergency = location == LOCATIONS.index("EMERGENCY ROOM ADMIT")
    waited = rng.integers(30, 600, len(who)) * MINUTE
    left = draw_codes(rng, weight_table(DISCHARGES, DISCHARGES_BY_AGE), band(admissions.age_years, (1, 50, 75)))
    person, unknown_language = _persons(rng, patients, admissions)
    flags = pa.int16()
    return pa.table(
        {
            "row_id": integers(np.arange(1, len(who) + 1)),
            "subject_id": integers(patients.ids[who]),
            "hadm_id": integers(admissions.ids),
            "admittime": timestamps(admissions.admitted),
            "dischtime": timestamps(admissions.discharged),
            "deathtime": timestamps(admissions.discharged, ~admissions.died),
            "admission_type": text(TYPES, kind),
            "admission_location": text(LOCATIONS, location),
            "discharge_location": text(DISCHARGES, np.where(admissions.died, DISCHARGES.index("DEAD/EXPIRED"), left)),
            "insurance": text(INSURANCES, person["insurance"]),
            "language": text(LANGUAGES, person["language"], unknown_language),
            "religion": text(RELIGIONS, person["religion"], person["religion"] == len(RELIGIONS) - 1),
            "marital_status": text(MARITALS, person["marital"], person["marital"] == len(MARITALS) - 1),
            "ethnicity": text(tuple(ETHNICITIES), patients.ethnicity[who]),
            "edregtime": timestamps(admissions.admitted - waited, ~emergency),
            "edouttime": timestamps(admissions.admitted + 20 * MINUTE, ~emergency),
            "diagnosis": text(diagnoses, admissions.condition),
            "hospital_expire_flag": integers(admissions.died.astype(np.int64), kind=flags),
            "has_chartevents_data": integers(charted.astype(np.int64), kind=flags),
        }
    )


def _persons(rng: np.random.Generator, patients: Patients, admissions: Admissions) -> tuple[dict[str, Ints], Flags]:
    """Columns that belong to the person and follow it through its admissions, and where the language is NULL.

    Insurance follows the age at each admission with one draw per person, so that it changes only when age makes it.
    """
    who, ages = admissions.patient, band(patients.first_age_years, (1, 25, 45, 65, 80))
    luck = rng.integers(2**63, size=len(patients.ids))
    marital = draw_codes(rng, weight_table(MARITALS, MARITAL_BY_AGE_AND_GENDER), ages * 2 + patients.gender)
    language = draw_codes(rng, weight_table(LANGUAGES, LANGUAGE_BY_ETHNICITY), patients.ethnicity)
    religion = draw_codes(rng, weight_table(RELIGIONS, RELIGION_BY_ETHNICITY), patients.ethnicity)
    now = band(admissions.age_years, (1, 25, 45, 65, 80))
    steps = np.cumsum(weight_table(INSURANCES, INSURANCE_BY_AGE), axis=1)
    share = (luck / 2.0**63)[who]
    insurance = (share[:, None] >= (steps / steps[:, -1:])[now]).sum(axis=1)
    words = {"insurance": insurance, "language": language[who], "religion": religion[who], "marital": marital[who]}
    return words, rng.random(len(who)) < 0.4


def number_admissions(rng: np.random.Generator, patients: Patients) -> tuple[Ints, Ints, Ints]:
    """Position of the patient, number of the admission (from 0) and its id, one entry per admission."""
    counts = patients.admissions
    total = int(counts.sum())
    ids = 100_000 + rng.permutation(max(100_000, 2 * total))[:total]
    return np.repeat(np.arange(len(counts)), counts), rank_in_group(counts), ids
