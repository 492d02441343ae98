"""A database in the shape of MIMIC-IV 3: 31 tables of two schemas, dates shifted by a span of each patient's own.

As there: ages above 89 are 91, codes of ICD-9 before a hospital's change and of ICD-10 after it, without dots; patients
without any admission; keys of admissions and stays that say nothing. Empty stay: drgcodes, hcpcsevents, emar and its
detail, omr, pharmacy, poe and its detail, procedures_icd, microbiologyevents, d_hcpcs, d_icd_procedures and, of the
ICU, datetimeevents, ingredientevents, inputevents, procedureevents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.demo.draw import integers, rank_in_group, text, timestamps
from sqldeid.demo.shared import DAY, ICD9, ICD10, batch, completed, dates, icd_codes, numbered, rows, streamed, words
from sqldeid.schemas import shared_schema

GROUPS = ("2008 - 2010", "2011 - 2013", "2014 - 2016", "2017 - 2019", "2020 - 2022")
CHANGED = 2015.75
"""The real year from which codes are of ICD-10."""

UNITS = ("Medical Intensive Care Unit (MICU)", "Surgical Intensive Care Unit (SICU)", "Coronary Care Unit (CCU)")
VITALS: tuple[tuple[int, str, str, float, float], ...] = (
    (220045, "Heart Rate", "bpm", 84, 14),
    (220210, "Respiratory Rate", "insp/min", 19, 4),
)
VITALS += ((220277, "O2 saturation pulseoxymetry", "%", 97, 2), (220179, "Blood Pressure systolic", "mmHg", 121, 17))
LABS = ((50912, "Creatinine", "mg/dL", 1.1, 0.4), (50971, "Potassium", "mEq/L", 4.1, 0.4))
CHARTED_HOURS, STAYS_AT_ONCE, CHARTED_STAYS_MOST = 24, 2_000, 20_000


@dataclass(frozen=True, slots=True)
class _Admitted:
    """Admissions: the place of each one's patient, both keys, begin and end in seconds, the real year, who died."""

    owner: Ints
    subject: Ints
    ids: Ints
    begin: Ints
    end: Ints
    year: Ints
    died: Ints


def mimiciv_rows(patients: int, seed: int) -> dict[tuple[str, str], pa.Table | pa.RecordBatchReader]:
    """All tables by schema and name; `chartevents` in batches. The same seed gives the same rows."""
    rng, later = (np.random.Generator(np.random.PCG64([seed, part])) for part in (0, 1))
    shared = shared_schema("mimiciv")
    t = shared.tables
    ids = (10_000_000 + rng.permutation(patients * 9)[:patients]).astype(np.int64)
    real, anchor = rng.integers(2008, 2023, patients), rng.integers(2110, 2200, patients)
    adm = _admissions(rng, ids, real, anchor)
    made: dict[str, pa.Table | pa.RecordBatchReader] = {
        "patients": rows(t["patients"], patients, _patients(rng, ids, real, anchor, adm)),
        "admissions": rows(t["admissions"], len(adm.ids), _admission_columns(rng, adm)),
        "diagnoses_icd": _diagnoses(rng, adm),
        "transfers": _transfers(rng, adm),
        "services": _services(rng, adm),
        "labevents": _labs(rng, adm),
        "prescriptions": _prescriptions(rng, adm),
        "provider": rows(t["provider"], 90, {"provider_id": numbered("P", np.arange(90) + 10)}),
        "caregiver": rows(t["caregiver"], 200, {"caregiver_id": np.arange(200) + 1_000}),
    }
    stays, columns = _stays(rng, adm)
    made["icustays"] = rows(t["icustays"], len(stays), columns)
    made["outputevents"] = _outputs(rng, adm, stays, columns)
    made["chartevents"] = streamed(t["chartevents"], _charted(later, adm, stays, columns))
    return completed(shared, made | _dictionaries())


def _admissions(rng: np.random.Generator, ids: Ints, real: Ints, anchor: Ints) -> _Admitted:
    """None for a fifth of the patients; the first falls into the year of the anchor, and others follow."""
    number = np.where(rng.random(len(ids)) < 0.2, 0, rng.geometric(0.45, len(ids)))
    owner = np.repeat(np.arange(len(ids)), number)
    rank = rank_in_group(number)
    day = (anchor[owner] - 1970) * 365.2425 + rng.integers(0, 300, len(owner)) + rank * 400
    begin = day.astype(np.int64) * DAY + rng.integers(0, 1_440, len(owner)) * 60
    end = begin + rng.integers(600, 30_000, len(owner)) * 60
    last = rank == np.repeat(number, number) - 1
    died = (last & (rng.random(len(owner)) < 0.06)).astype(np.int64)
    hadm = 20_000_000 + rng.permutation(len(owner) * 9 + 1)[: len(owner)].astype(np.int64)
    return _Admitted(owner, ids[owner], hadm, begin, end, real[owner] + rank, died)


def _patients(rng: np.random.Generator, ids: Ints, real: Ints, anchor: Ints, adm: _Admitted) -> dict[str, object]:
    age = np.clip(rng.normal(58, 20, len(ids)), 18, 99).astype(np.int64)
    death = np.full(len(ids), -1, dtype=np.int64)
    np.maximum.at(death, adm.owner[adm.died == 1], adm.end[adm.died == 1] // DAY)
    return {
        "subject_id": ids,
        "gender": words(rng, len(ids), ("F", "M"), (53, 47)),
        "anchor_age": np.where(age > 89, 91, age),
        "anchor_year": anchor,
        "anchor_year_group": text(GROUPS, (real - 2008) // 3),
        "dod": dates(death, death < 0),
    }


def _admission_columns(rng: np.random.Generator, adm: _Admitted) -> dict[str, object]:
    count = len(adm.ids)
    races = ("WHITE", "BLACK/AFRICAN AMERICAN", "UNKNOWN", "HISPANIC/LATINO - PUERTO RICAN", "ASIAN - CHINESE", "OTHER")
    emergency = rng.random(count) < 0.6
    return {
        "subject_id": adm.subject,
        "hadm_id": adm.ids,
        "admittime": timestamps(adm.begin),
        "dischtime": timestamps(adm.end),
        "deathtime": timestamps(adm.end, adm.died == 0),
        "admission_type": words(
            rng,
            count,
            ("EW EMER.", "EU OBSERVATION", "ELECTIVE", "URGENT", "SURGICAL SAME DAY ADMISSION"),
            (4, 3, 1, 1, 1),
        ),
        "admit_provider_id": numbered("P", rng.integers(10, 100, count)),
        "admission_location": words(
            rng, count, ("EMERGENCY ROOM", "PHYSICIAN REFERRAL", "TRANSFER FROM HOSPITAL"), (6, 3, 1)
        ),
        "discharge_location": words(
            rng, count, ("HOME", "HOME HEALTH CARE", "SKILLED NURSING FACILITY", ""), (4, 2, 2, 3)
        ),
        "insurance": words(rng, count, ("Medicare", "Private", "Medicaid", "Other", ""), (45, 30, 18, 4, 3)),
        "language": words(
            rng, count, ("English", "Spanish", "Russian", "Chinese", "Kabuverdianu", ""), (80, 6, 3, 3, 2, 1)
        ),
        "marital_status": words(rng, count, ("MARRIED", "SINGLE", "WIDOWED", "DIVORCED", ""), (41, 36, 11, 8, 4)),
        "race": words(rng, count, races, (66, 15, 6, 5, 4, 4)),
        "edregtime": timestamps(adm.begin - 18_000, ~emergency),
        "edouttime": timestamps(adm.begin + 3_600, ~emergency),
        "hospital_expire_flag": adm.died,
    }


def _diagnoses(rng: np.random.Generator, adm: _Admitted) -> pa.Table:
    number = rng.integers(1, 18, len(adm.ids))
    at = np.repeat(np.arange(len(adm.ids)), number)
    code, new = icd_codes(rng, len(at)), (adm.year[at] + rng.random(len(adm.ids))[at]) >= CHANGED
    columns = {
        "subject_id": adm.subject[at],
        "hadm_id": adm.ids[at],
        "seq_num": rank_in_group(number) + 1,
        "icd_code": text(ICD9 + ICD10, code + len(ICD9) * new),
        "icd_version": np.where(new, 10, 9),
    }
    return rows(shared_schema("mimiciv").tables["diagnoses_icd"], len(at), columns)


def _transfers(rng: np.random.Generator, adm: _Admitted) -> pa.Table:
    count = len(adm.ids)
    columns = {
        "subject_id": adm.subject,
        "hadm_id": adm.ids,
        "transfer_id": 30_000_000 + rng.permutation(count * 9 + 1)[:count],
        "eventtype": "admit",
        "careunit": words(rng, count, ("Medicine", "Emergency Department", *UNITS), (4, 4, 1, 1, 1)),
        "intime": timestamps(adm.begin),
        "outtime": timestamps(adm.end),
    }
    return rows(shared_schema("mimiciv").tables["transfers"], count, columns)


def _services(rng: np.random.Generator, adm: _Admitted) -> pa.Table:
    columns = {
        "subject_id": adm.subject,
        "hadm_id": adm.ids,
        "transfertime": timestamps(adm.begin + 60),
        "curr_service": words(rng, len(adm.ids), ("MED", "SURG", "CMED", "OBS", "NMED"), (5, 2, 2, 1, 1)),
    }
    return rows(shared_schema("mimiciv").tables["services"], len(adm.ids), columns)


def _labs(rng: np.random.Generator, adm: _Admitted) -> pa.Table:
    at = np.repeat(np.arange(len(adm.ids)), len(LABS))
    kind = np.arange(len(at)) % len(LABS)
    mean, spread = (np.array([lab[i] for lab in LABS]) for i in (3, 4))
    value = np.round(np.abs(rng.normal(mean[kind], spread[kind])), 1)
    none = rng.random(len(at)) < 0.03
    columns = {
        "labevent_id": np.arange(len(at)) + 1,
        "subject_id": adm.subject[at],
        "hadm_id": integers(adm.ids[at], rng.random(len(at)) < 0.2),
        "specimen_id": rng.integers(1, 90_000_000, len(at)),
        "itemid": np.array([lab[0] for lab in LABS])[kind],
        "charttime": timestamps(adm.begin[at] + 7_200),
        "value": text(("___",), np.zeros(len(at), dtype=np.int64), ~none),
        "valuenum": pa.array(value, mask=none),
        "valueuom": text(tuple(lab[2] for lab in LABS), kind),
    }
    return rows(shared_schema("mimiciv").tables["labevents"], len(at), columns)


def _prescriptions(rng: np.random.Generator, adm: _Admitted) -> pa.Table:
    at = np.repeat(np.arange(len(adm.ids)), rng.poisson(3, len(adm.ids)))
    columns = {
        "subject_id": adm.subject[at],
        "hadm_id": adm.ids[at],
        "pharmacy_id": rng.integers(1, 90_000_000, len(at)),
        "starttime": timestamps(adm.begin[at]),
        "stoptime": timestamps(adm.end[at]),
        "drug_type": "MAIN",
        "drug": numbered("Invented drug ", rng.geometric(0.05, len(at))),
    }
    return rows(shared_schema("mimiciv").tables["prescriptions"], len(at), columns)


def _stays(rng: np.random.Generator, adm: _Admitted) -> tuple[Ints, dict[str, object]]:
    """Which admissions had a stay in the ICU, and its columns."""
    at = np.flatnonzero(rng.random(len(adm.ids)) < 0.2)
    begin = adm.begin[at] + 3_600
    end = np.minimum(begin + rng.integers(600, 9_000, len(at)) * 60, np.maximum(adm.end[at], begin + 3_600))
    unit = rng.integers(0, len(UNITS), len(at)).astype(np.int64)
    return at, {
        "subject_id": adm.subject[at],
        "hadm_id": adm.ids[at],
        "stay_id": 30_000_000 + rng.permutation(len(at) * 9 + 1)[: len(at)].astype(np.int64),
        "first_careunit": text(UNITS, unit),
        "last_careunit": text(UNITS, unit),
        "intime": timestamps(begin),
        "outtime": timestamps(end),
        "los": (end - begin) / DAY,
    }


def _outputs(rng: np.random.Generator, adm: _Admitted, stays: Ints, columns: dict[str, object]) -> pa.Table:
    made = {
        **{name: columns[name] for name in ("subject_id", "hadm_id", "stay_id")},
        "charttime": timestamps(adm.begin[stays] + 9_000),
        "itemid": 226559,
        "value": rng.integers(10, 600, len(stays)),
        "valueuom": "mL",
    }
    return rows(shared_schema("mimiciv").tables["outputevents"], len(stays), made)


def _charted(
    rng: np.random.Generator, adm: _Admitted, stays: Ints, columns: dict[str, object]
) -> Iterator[pa.RecordBatch]:
    """Vital signs of each hour of the first day of the first `CHARTED_STAYS_MOST` stays, a tenth of them missing."""
    table, stay_ids = shared_schema("mimiciv").tables["chartevents"], np.asarray(columns["stay_id"])
    most = min(len(stays), CHARTED_STAYS_MOST)
    for start in range(0, most, STAYS_AT_ONCE):
        place = np.arange(start, min(start + STAYS_AT_ONCE, most))
        level = rng.normal(0, 0.7, (len(place), 1, len(VITALS)))
        value = level + rng.normal(0, 0.7, (len(place), CHARTED_HOURS, len(VITALS)))
        stay, hour, kind = np.nonzero(rng.random(value.shape) < 0.9)
        mean, spread = (np.array([v[i] for v in VITALS]) for i in (3, 4))
        number = np.rint(mean[kind] + spread[kind] * value[stay, hour, kind])
        at = stays[place[stay]]
        charted = adm.begin[at] + 3_600 + hour * 3_600 + rng.integers(0, 10, len(at)) * 60
        made = {
            "subject_id": adm.subject[at],
            "hadm_id": adm.ids[at],
            "stay_id": stay_ids[place[stay]],
            "caregiver_id": integers(rng.integers(1_000, 1_200, len(at)), rng.random(len(at)) < 0.1),
            "charttime": timestamps(charted),
            "storetime": timestamps(charted + 300),
            "itemid": np.array([v[0] for v in VITALS])[kind],
            "value": pa.array(number).cast(pa.string()),
            "valuenum": number,
            "valueuom": text(tuple(v[2] for v in VITALS), kind),
            "warning": 0,
        }
        yield batch(table, len(at), made)


def _dictionaries() -> dict[str, pa.Table]:
    t = shared_schema("mimiciv").tables
    old, new = sorted(set(ICD9)), sorted(set(ICD10))
    titles = {
        "icd_code": pa.array(old + new),
        "icd_version": np.repeat([9, 10], [len(old), len(new)]),
        "long_title": numbered("Diagnosis ", np.arange(len(old) + len(new))),
    }
    items = {"itemid": np.array([v[0] for v in VITALS]), "label": pa.array([v[1] for v in VITALS])}
    labs = {"itemid": np.array([lab[0] for lab in LABS]), "label": pa.array([lab[1] for lab in LABS]), "fluid": "Blood"}
    return {
        "d_icd_diagnoses": rows(t["d_icd_diagnoses"], len(old) + len(new), titles),
        "d_items": rows(t["d_items"], len(VITALS), {**items, "linksto": "chartevents"}),
        "d_labitems": rows(t["d_labitems"], len(LABS), labs),
    }
