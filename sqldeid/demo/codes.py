"""Diagnosis and procedure codes of the made admissions: a first code, what comes with it, and chronic conditions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.conditions import CHRONIC, CONDITIONS
from sqldeid.demo.draw import band, draw_codes, integers, rank_in_group, text, weight_table
from sqldeid.demo.patients import Admissions, Patients

NOTED = 0.9
"""Share of the admissions at which a chronic condition is written down."""


def draw_conditions(rng: np.random.Generator, age_years: Floats, newborn: Flags) -> Ints:
    """Why each admission happens, by age; newborns have the last condition."""
    weights = np.array([c.frequency for c in CONDITIONS]).T
    drawn = draw_codes(rng, weights, band(age_years, (45, 65)))
    return np.where(newborn, len(CONDITIONS) - 1, drawn)


def diagnoses_table(rng: np.random.Generator, patients: Patients, admissions: Admissions) -> pa.Table:
    """The table `diagnoses_icd`: per admission the primary code, then further and chronic ones in drawn order."""
    words = tuple(dict.fromkeys(code for c in CONDITIONS for code in (*c.primary, *c.secondary))) + tuple(
        code for code in CHRONIC if all(code not in (*c.primary, *c.secondary) for c in CONDITIONS)
    )
    first = draw_codes(rng, weight_table(words, [c.primary for c in CONDITIONS]), admissions.condition)
    share = weight_table(words, [c.secondary for c in CONDITIONS])
    shown = rng.random((len(first), len(words))) < share[admissions.condition]
    shown |= _chronic(rng, patients, words)[admissions.patient] & (rng.random(shown.shape) < NOTED)
    shown[np.arange(len(first)), first] = True
    place = rng.random(shown.shape)
    place[np.arange(len(first)), first] = -1.0
    return _code_rows(patients, admissions, words, shown, place)


def procedures_table(rng: np.random.Generator, patients: Patients, admissions: Admissions) -> pa.Table:
    """The table `procedures_icd`: those of the condition, about in their usual order; some have none."""
    words = tuple(dict.fromkeys(code for c in CONDITIONS for code in c.procedures))
    share = weight_table(words, [c.procedures for c in CONDITIONS])
    shown = rng.random((len(admissions.ids), len(words))) < share[admissions.condition]
    usual = np.array([[_position(tuple(c.procedures), word) for word in words] for c in CONDITIONS])
    place = usual[admissions.condition] + rng.normal(0.0, 1.5, shown.shape)
    return _code_rows(patients, admissions, words, shown, place)


def used_codes_table(rows: pa.Table) -> pa.Table:
    """The dictionary of the codes that `rows` use, in order; MIMIC's titles are left out."""
    codes = sorted(rows["icd9_code"].unique().to_pylist())
    return pa.table({"row_id": integers(np.arange(1, len(codes) + 1)), "icd9_code": pa.array(codes, pa.string())})


def _position(order: tuple[str, ...], word: str) -> float:
    return float(order.index(word)) if word in order else 0.0


def _chronic(rng: np.random.Generator, patients: Patients, words: tuple[str, ...]) -> Flags:
    """Who has which chronic condition: one row per patient, one column per word."""
    share = weight_table(words, [{code: shares[age] for code, shares in CHRONIC.items()} for age in range(3)])
    drawn: Flags = rng.random((len(patients.ids), len(words))) < share[band(patients.first_age_years, (45, 65))]
    drawn[patients.newborn] = False
    return drawn


def _code_rows(
    patients: Patients, admissions: Admissions, words: tuple[str, ...], shown: Flags, place: Floats
) -> pa.Table:
    """One row per code that is shown, numbered from 1 within the admission by `place`."""
    admission, code = np.nonzero(shown)
    order = np.lexsort((place[admission, code], admission))
    number = rank_in_group(shown.sum(axis=1).astype(np.int64)) + 1
    return pa.table(
        {
            "row_id": integers(np.arange(1, len(order) + 1)),
            "subject_id": integers(patients.ids[admissions.patient[admission]]),
            "hadm_id": integers(admissions.ids[admission]),
            "seq_num": integers(number),
            "icd9_code": text(words, code[order]),
        }
    )
