"""A MIMIC-III-shaped hospital: patients, admissions, ICU stays, transfers, codes and vital signs, all made."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.codes import diagnoses_table, draw_conditions, procedures_table, used_codes_table
from sqldeid.demo.conditions import CONDITIONS
from sqldeid.demo.draw import starts
from sqldeid.demo.patients import (
    YEAR,
    Admissions,
    Patients,
    admissions_table,
    draw_patients,
    draw_times,
    number_admissions,
    patients_table,
)
from sqldeid.demo.stays import Segments, draw_segments, find_stays, icustays_table, transfers_table
from sqldeid.demo.vitals import charted_admissions, chartevents


def mimic_rows(patients: int, seed: int) -> dict[str, pa.Table | pa.RecordBatchReader]:
    """The tables of the schema `mimiciii` by name; `chartevents` in batches. The same seed gives the same rows.

    Parameters
    ----------
    patients
        Number of patients.
    seed
        Seed of the PCG64 generators, one for the vital signs and one for the rest.
    """
    rng, vital_rng = (np.random.Generator(np.random.PCG64([seed, part])) for part in (0, 1))
    people = draw_patients(rng, patients)
    admissions, segments = _draw_admissions(rng, people)
    stays = find_stays(rng, admissions, segments)
    charted = charted_admissions(admissions, stays)
    words = tuple(condition.word for condition in CONDITIONS)
    procedures = procedures_table(rng, people, admissions)
    return {
        "patients": patients_table(rng, people, admissions),
        "admissions": admissions_table(rng, people, admissions, words, charted),
        "icustays": icustays_table(people, admissions, segments, stays),
        "transfers": transfers_table(people, admissions, segments, stays),
        "diagnoses_icd": diagnoses_table(rng, people, admissions),
        "procedures_icd": procedures,
        "d_icd_procedures": used_codes_table(procedures),
        "chartevents": chartevents(vital_rng, people, admissions, stays),
    }


def _draw_admissions(rng: np.random.Generator, people: Patients) -> tuple[Admissions, Segments]:
    """Admissions and their segments: the reason and who dies first, then the length, and the dates last."""
    who, number, ids = number_admissions(rng, people)
    first_age = people.first_age_years[who]
    condition = draw_conditions(rng, first_age, people.newborn[who])
    severity = rng.normal(size=len(who))
    died = _deaths(rng, people, condition, severity, first_age)
    segments = draw_segments(rng, condition, died, severity)
    admitted, discharged = draw_times(rng, people, segments.total_seconds)
    passed = admitted - np.repeat(admitted[starts(people.admissions)], people.admissions)
    age = first_age + passed / YEAR
    return Admissions(who, number, ids, age, condition, severity, died, admitted, discharged), segments


def _deaths(rng: np.random.Generator, people: Patients, condition: Ints, severity: Floats, age: Floats) -> Flags:
    """Who dies in hospital: only at the last admission, by reason, severity and age."""
    last = np.zeros(len(condition), dtype=np.bool_)
    last[np.cumsum(people.admissions) - 1] = True
    danger = np.array([c.danger for c in CONDITIONS])[condition]
    score = -2.2 + danger + 0.9 * severity + (age - 65) / 25
    return np.asarray(last & (rng.random(len(condition)) < 1 / (1 + np.exp(-score))), dtype=np.bool_)
