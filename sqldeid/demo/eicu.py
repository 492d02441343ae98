"""A database in the shape of eICU-CRD 2.0: 31 tables of ICU stays in many hospitals, times in minutes of the stay.

As there: ages are text with ``> 89`` and empty ones, a person has several hospital stays and these several unit stays,
offsets are negative for what came before, vital signs stand one a column with NULL patterns. Empty stay: the care
plans, the APACHE variables but the result, customlab, infusiondrug, intakeoutput, microlab, nurse assessment, care and
charting, physicalexam, respiratory care and charting, admissiondrug, admissiondx, allergy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.demo.draw import integers, rank_in_group, text
from sqldeid.demo.shared import ICD9, ICD10, batch, completed, icd_codes, numbered, rows, streamed, words
from sqldeid.schemas import shared_schema

HOSPITALS = 60
REGIONS = ("Midwest", "South", "West", "Northeast", "")
UNITS = ("Med-Surg ICU", "MICU", "SICU", "CCU-CTICU", "Neuro ICU", "Cardiac ICU")
ETHNICITIES = ("Caucasian", "African American", "Hispanic", "Asian", "Native American", "Other/Unknown", "")
EVERY, READINGS, STAYS_AT_ONCE, CHARTED_STAYS_MOST = 5, 60, 2_000, 20_000
"""Vital signs are kept every five minutes for the first five hours of the first stays."""

VITALS: tuple[tuple[str, float, float, float], ...] = (
    ("sao2", 96, 2, 0.95),
    ("heartrate", 84, 12, 0.98),
    ("respiration", 19, 4, 0.9),
    ("systemicmean", 82, 10, 0.25),
    ("cvp", 9, 3, 0.1),
    ("temperature", 37, 0.5, 0.08),
)


def eicu_rows(persons: int, seed: int) -> dict[tuple[str, str], pa.Table | pa.RecordBatchReader]:
    """All tables by schema and name; `vitalperiodic` in batches. The same seed gives the same rows."""
    rng, later = (np.random.Generator(np.random.PCG64([seed, part])) for part in (0, 1))
    shared = shared_schema("eicu")
    t = shared.tables
    number = rng.geometric(0.75, persons)
    owner = np.repeat(np.arange(persons), number)
    stays = 141_000 + rng.permutation(len(owner) * 9)[: len(owner)].astype(np.int64)
    length = rng.integers(300, 12_000, len(owner))
    made: dict[str, pa.Table | pa.RecordBatchReader] = {
        "patient": rows(t["patient"], len(owner), _patients(rng, number, owner, stays, length)),
        "hospital": _hospitals(rng),
        "diagnosis": _diagnoses(rng, stays, length),
        "lab": _labs(rng, stays),
        "medication": _medication(rng, stays),
        "treatment": _repeated(
            rng,
            stays,
            "treatment",
            {"treatmentstring": words(rng, len(stays), ("pulmonary|ventilation", "renal|dialysis"), (4, 1))},
        ),
        "pasthistory": _repeated(
            rng,
            stays,
            "pasthistory",
            {"pasthistoryvalue": words(rng, len(stays), ("hypertension", "diabetes", "none"), (4, 2, 2))},
        ),
        "note": _repeated(rng, stays, "note", {"notetext": numbered("An invented note of stay ", stays)}),
        "apachepatientresult": rows(
            t["apachepatientresult"],
            len(stays),
            {
                "apachepatientresultsid": np.arange(len(stays)) + 1,
                "patientunitstayid": stays,
                "apachescore": np.where(rng.random(len(stays)) < 0.1, -1, rng.integers(10, 140, len(stays))),
                "apacheversion": "IVa",
            },
        ),
        "vitalaperiodic": _aperiodic(rng, stays),
    }
    made["vitalperiodic"] = streamed(t["vitalperiodic"], _vitals(later, stays, length))
    return completed(shared, made)


def _patients(rng: np.random.Generator, number: Ints, owner: Ints, stays: Ints, length: Ints) -> dict[str, object]:
    """What a person keeps is drawn once for each; a person's age is the older by a year at some later stays."""
    persons, count, rank = len(number), len(owner), rank_in_group(number)
    age = np.clip(rng.normal(63, 17, persons), 16, 99).astype(np.int64)[owner] + (rank > 1)
    ages = (*(str(a) if a < 90 else "> 89" for a in range(101)), "")
    untold = rng.random(persons)[owner] < 0.003
    sex = words(rng, persons, ("Male", "Female", "Unknown", "Other", ""), (54, 45, 0.2, 0.1, 0.2))
    race = words(rng, persons, ETHNICITIES, (77, 11, 4, 2, 1, 4, 1))
    dead = (rank == number[owner] - 1) & (rng.random(count) < 0.09)
    hospital = rng.integers(0, HOSPITALS, persons)[owner] + 59
    return {
        "patientunitstayid": stays,
        "patienthealthsystemstayid": 128_000 + owner * 9 + rank // 2,
        "gender": sex.take(pa.array(owner)),
        "age": text(ages, np.where(untold, 101, age)),
        "ethnicity": race.take(pa.array(owner)),
        "hospitalid": hospital,
        "wardid": hospital * 3 + rng.integers(0, 3, count),
        "apacheadmissiondx": words(rng, count, ("Sepsis, pulmonary", "CHF", "CVA", "Trauma", ""), (3, 2, 2, 1, 1)),
        "admissionheight": pa.array(np.round(rng.normal(169, 12, count), 1), mask=rng.random(count) < 0.03),
        "hospitaladmittime24": _clock(rng, count),
        "hospitaladmitoffset": -rng.integers(0, 4_000, count),
        "hospitaladmitsource": words(rng, count, ("Emergency Department", "Floor", "Operating Room", ""), (5, 2, 1, 2)),
        "hospitaldischargeyear": (2014 + rng.integers(0, 2, persons))[owner],
        "hospitaldischargetime24": _clock(rng, count),
        "hospitaldischargeoffset": length + rng.integers(0, 9_000, count),
        "hospitaldischargelocation": words(rng, count, ("Home", "Skilled Nursing Facility", "Other", ""), (6, 2, 1, 1)),
        "hospitaldischargestatus": text(
            ("Alive", "Expired", ""), np.where(dead, 1, np.where(rng.random(count) < 0.01, 2, 0))
        ),
        "unittype": words(rng, count, UNITS, (55, 9, 8, 10, 8, 10)),
        "unitadmittime24": _clock(rng, count),
        "unitvisitnumber": rank % 2 + 1,
        "unitstaytype": text(("admit", "readmit"), rank % 2),
        "admissionweight": pa.array(np.round(rng.normal(83, 20, count), 1), mask=rng.random(count) < 0.08),
        "unitdischargetime24": _clock(rng, count),
        "unitdischargeoffset": length,
        "unitdischargestatus": text(("Alive", "Expired"), dead.astype(np.int64)),
        "uniquepid": numbered("002-", 10_000 + np.arange(persons) * 7).take(pa.array(owner)),
    }


def _clock(rng: np.random.Generator, count: int) -> pa.Array:
    minutes = rng.integers(0, 1_440, count).tolist()
    return pa.array([f"{m // 60:02}:{m % 60:02}:00" for m in minutes], pa.string())


def _hospitals(rng: np.random.Generator) -> pa.Table:
    columns = {
        "hospitalid": np.arange(HOSPITALS) + 59,
        "numbedscategory": words(rng, HOSPITALS, ("<100", "100 - 249", "250 - 499", ">= 500", ""), (2, 2, 2, 1, 1)),
        "teachingstatus": words(rng, HOSPITALS, ("f", "t"), (9, 1)),
        "region": words(rng, HOSPITALS, REGIONS, (3, 3, 2, 1, 1)),
    }
    return rows(shared_schema("eicu").tables["hospital"], HOSPITALS, columns)


def _diagnoses(rng: np.random.Generator, stays: Ints, length: Ints) -> pa.Table:
    """Codes with dots, of both versions in one text as there, and none for some."""
    at = np.repeat(np.arange(len(stays)), rng.poisson(3, len(stays)))
    code = icd_codes(rng, len(at))
    both = tuple(f"{_dotted(old)}, {_dotted(new)}" for old, new in zip(ICD9, ICD10, strict=True))
    columns = {
        "diagnosisid": np.arange(len(at)) + 1,
        "patientunitstayid": stays[at],
        "activeupondischarge": words(rng, len(at), ("True", "False"), (1, 1)),
        "diagnosisoffset": (rng.random(len(at)) * length[at]).astype(np.int64),
        "diagnosisstring": numbered("invented|path|", code),
        "icd9code": text(both, code, rng.random(len(at)) < 0.13),
        "diagnosispriority": words(rng, len(at), ("Primary", "Major", "Other"), (1, 2, 2)),
    }
    return rows(shared_schema("eicu").tables["diagnosis"], len(at), columns)


def _dotted(code: str) -> str:
    return code if len(code) < 4 else f"{code[:3]}.{code[3:]}"


def _labs(rng: np.random.Generator, stays: Ints) -> pa.Table:
    at = np.repeat(np.arange(len(stays)), 4)
    columns = {
        "labid": np.arange(len(at)) + 1,
        "patientunitstayid": stays[at],
        "labresultoffset": rng.integers(-600, 3_000, len(at)),
        "labname": words(rng, len(at), ("potassium", "creatinine", "sodium", "Hgb"), (1, 1, 1, 1)),
        "labresult": pa.array(np.round(rng.gamma(4, 1, len(at)), 2), mask=rng.random(len(at)) < 0.02),
    }
    return rows(shared_schema("eicu").tables["lab"], len(at), columns)


def _medication(rng: np.random.Generator, stays: Ints) -> pa.Table:
    at = np.repeat(np.arange(len(stays)), rng.poisson(2, len(stays)))
    columns = {
        "medicationid": np.arange(len(at)) + 1,
        "patientunitstayid": stays[at],
        "drugorderoffset": rng.integers(-300, 3_000, len(at)),
        "drugstartoffset": integers(rng.integers(-300, 3_000, len(at)), rng.random(len(at)) < 0.1),
        "drugname": numbered("Invented drug ", rng.geometric(0.05, len(at))),
    }
    return rows(shared_schema("eicu").tables["medication"], len(at), columns)


def _repeated(rng: np.random.Generator, stays: Ints, name: str, more: dict[str, object]) -> pa.Table:
    """One row of each stay, with its offset."""
    own = {f"{name}id": np.arange(len(stays)) + 1, f"{name}offset": rng.integers(0, 900, len(stays))}
    return rows(shared_schema("eicu").tables[name], len(stays), {**own, "patientunitstayid": stays, **more})


def _aperiodic(rng: np.random.Generator, stays: Ints) -> pa.Table:
    at = np.repeat(np.arange(len(stays)), 3)
    systolic = rng.normal(121, 17, len(at)).astype(np.int64)
    columns = {
        "vitalaperiodicid": np.arange(len(at)) + 1,
        "patientunitstayid": stays[at],
        "observationoffset": rng.integers(0, 900, len(at)),
        "noninvasivesystolic": systolic,
        "noninvasivediastolic": (systolic * 0.55).astype(np.int64),
    }
    return rows(shared_schema("eicu").tables["vitalaperiodic"], len(at), columns)


def _vitals(rng: np.random.Generator, stays: Ints, length: Ints) -> Iterator[pa.RecordBatch]:
    """One row each five minutes; columns that a stay's monitor does not have are NULL throughout."""
    table, written, most = shared_schema("eicu").tables["vitalperiodic"], 0, min(len(stays), CHARTED_STAYS_MOST)
    for start in range(0, most, STAYS_AT_ONCE):
        chosen = np.arange(start, min(start + STAYS_AT_ONCE, most))
        offset = rng.integers(-5, 10, len(chosen))[:, None] + np.arange(READINGS) * EVERY
        stay, reading = np.nonzero(offset <= length[chosen, None])
        columns: dict[str, object] = {
            "vitalperiodicid": written + np.arange(len(stay)) + 1,
            "patientunitstayid": stays[chosen[stay]],
            "observationoffset": offset[stay, reading],
        }
        for name, mean, spread, share in VITALS:
            has = rng.random(len(chosen)) < np.sqrt(share)
            there = has[stay] & (rng.random(len(stay)) < np.sqrt(share))
            level = mean + rng.normal(0, spread, len(chosen))[stay]
            value = level + rng.normal(0, spread / 2, len(stay))
            columns[name] = pa.array(np.round(value, 1 if name == "temperature" else 0), mask=~there)
        written += len(stay)
        yield batch(table, len(stay), columns)
