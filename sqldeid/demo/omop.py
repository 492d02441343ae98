"""A database in the shape of OMOP CDM 5.4: 39 tables with the real names and types, and a small invented vocabulary.

Concepts of persons and visits bear OMOP's own numbers; all clinical ones are invented, from 2,000,000,000 on, the range
that OMOP leaves to each site. Empty stay: visit_detail, device_exposure, note_nlp, specimen, fact_relationship,
payer_plan_period, cost, the eras, episodes, metadata, cohorts, synonyms, maps and drug strengths.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.demo.draw import integers, text, timestamps
from sqldeid.demo.shared import DAY, ICD10, completed, dates, icd_codes, numbered, rows, streamed, words
from sqldeid.demo.shared import batch as make_batch
from sqldeid.schemas import shared_schema

SITE = 2_000_000_000
CONDITIONS, DRUGS, PROCEDURES, MEASURES = SITE + 1_000, SITE + 2_000, SITE + 3_000, SITE + 4_000
GROUPS = SITE + 9_000
TODAY = 19_700
"""Days since 1970 of the last visit."""

EHR = 32_817
MEASURED = (("Heart rate, invented", 80, 14), ("Body temperature, invented", 37, 1), ("Glucose, invented", 6, 2))
PERSONS_AT_ONCE = 2_000


def omop_rows(persons: int, seed: int) -> dict[tuple[str, str], pa.Table | pa.RecordBatchReader]:
    """All tables by schema and name; `measurement` in batches. The same seed gives the same rows."""
    rng, later = (np.random.Generator(np.random.PCG64([seed, part])) for part in (0, 1))
    shared = shared_schema("omop54")
    t = shared.tables
    ids = (rng.permutation(persons * 3)[:persons] + 1_000).astype(np.int64)
    born = _births(rng, persons)
    owner, visit, begin = _visits(rng, ids, born)
    made: dict[str, pa.Table | pa.RecordBatchReader] = {
        "person": rows(t["person"], persons, _persons(rng, ids, born)),
        "visit_occurrence": rows(t["visit_occurrence"], len(visit), _stays(rng, ids[owner], visit, begin)),
        "observation_period": rows(t["observation_period"], persons, _periods(ids, owner, begin)),
        "death": _deaths(rng, ids, owner, begin),
    }
    for name, key, first, kinds in (
        ("condition_occurrence", "condition", CONDITIONS, len(ICD10)),
        ("drug_exposure", "drug", DRUGS, 60),
        ("procedure_occurrence", "procedure", PROCEDURES, 40),
    ):
        made[name] = _events(rng, name, key, (first, kinds), ids[owner], visit, begin)
    made["observation"] = _observations(rng, ids[owner], visit, begin)
    made["note"] = _notes(rng, ids[owner], visit, begin)
    made |= _places(rng) | _vocabulary()
    measured = _measured(later, ids[owner], visit, begin)
    made["measurement"] = streamed(t["measurement"], measured)
    return completed(shared, made)


def _births(rng: np.random.Generator, persons: int) -> Ints:
    """Days since 1970 of births: all ages to 99, the old more often than the young."""
    age = np.clip(rng.normal(52, 24, persons), 0, 99)
    return (TODAY - 3_000 - age * 365.25).astype(np.int64)


def _visits(rng: np.random.Generator, ids: Ints, born: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each visit its person's place, its key and its day; everybody has one at least."""
    owner = np.repeat(np.arange(len(ids)), 1 + rng.poisson(2.5, len(ids)))
    begin = np.maximum(TODAY - rng.integers(0, 2_900, len(owner)), born[owner])
    return owner, 50_000 + rng.permutation(len(owner)).astype(np.int64), begin


def _persons(rng: np.random.Generator, ids: Ints, born: Ints) -> dict[str, object]:
    count = len(ids)
    day = born.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    none = rng.random(count) < 0.2
    female = (rng.random(count) < 0.52).astype(np.int64)
    race = rng.choice(4, count, p=[0.66, 0.17, 0.07, 0.1]).astype(np.int64)
    return {
        "person_id": ids,
        "gender_concept_id": np.array([8507, 8532])[female],
        "year_of_birth": day.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month_of_birth": integers(month.astype(np.int64) % 12 + 1, none),
        "day_of_birth": integers((day - month.astype("datetime64[D]")).astype(np.int64) + 1, none),
        "birth_datetime": timestamps(born * DAY, none),
        "race_concept_id": np.array([8527, 8516, 8515, 0])[race],
        "ethnicity_concept_id": np.array([38003564, 38003563])[(rng.random(count) < 0.12).astype(np.int64)],
        "location_id": rng.integers(1, 40, count),
        "care_site_id": rng.integers(1, 8, count),
        "person_source_value": numbered("MRN-", ids * 7 + 13),
        "gender_source_value": text(("M", "F"), female),
        "race_source_value": text(("white", "black", "asian", "unknown"), race),
    }


def _stays(rng: np.random.Generator, person: Ints, visit: Ints, begin: Ints) -> dict[str, object]:
    kind = rng.choice(3, len(visit), p=[0.25, 0.6, 0.15])
    end = begin + (kind == 0) * rng.integers(1, 15, len(visit))
    minute = rng.integers(0, DAY // 60, len(visit)) * 60
    return {
        "visit_occurrence_id": visit,
        "person_id": person,
        "visit_concept_id": np.array([9201, 9202, 9203])[kind],
        "visit_start_date": dates(begin),
        "visit_start_datetime": timestamps(begin * DAY + minute),
        "visit_end_date": dates(end),
        "visit_end_datetime": timestamps(end * DAY + DAY - 60),
        "visit_type_concept_id": EHR,
        "provider_id": integers(rng.integers(1, 60, len(visit)), rng.random(len(visit)) < 0.3),
        "care_site_id": rng.integers(1, 8, len(visit)),
        "visit_source_value": text(("inpatient", "outpatient", "ER"), kind.astype(np.int64)),
    }


def _periods(ids: Ints, owner: Ints, begin: Ints) -> dict[str, object]:
    first, last = np.full(len(ids), TODAY), np.zeros(len(ids), dtype=np.int64)
    np.minimum.at(first, owner, begin)
    np.maximum.at(last, owner, begin)
    return {
        "observation_period_id": np.arange(len(ids)) + 1,
        "person_id": ids,
        "observation_period_start_date": dates(first),
        "observation_period_end_date": dates(last),
        "period_type_concept_id": EHR,
    }


def _deaths(rng: np.random.Generator, ids: Ints, owner: Ints, begin: Ints) -> pa.Table:
    last = np.zeros(len(ids), dtype=np.int64)
    np.maximum.at(last, owner, begin)
    dead = np.flatnonzero(rng.random(len(ids)) < 0.09)
    day = last[dead] + rng.integers(0, 60, len(dead))
    table = shared_schema("omop54").tables["death"]
    columns = {"person_id": ids[dead], "death_date": dates(day), "death_type_concept_id": EHR}
    return rows(table, len(dead), columns)


def _events(
    rng: np.random.Generator, name: str, key: str, kinds: tuple[int, int], person: Ints, visit: Ints, begin: Ints
) -> pa.Table:
    """Conditions, drugs or procedures: some of each visit, with NULL in what sites often leave out."""
    at = np.repeat(np.arange(len(visit)), rng.poisson(2.2, len(visit)))
    count, (first, most) = len(at), kinds
    code = icd_codes(rng, count) if key == "condition" else np.minimum(rng.geometric(0.08, count), most) - 1
    day = begin[at] + rng.integers(0, 4, count)
    start = {"condition": "condition_start", "drug": "drug_exposure_start", "procedure": "procedure"}[key]
    columns: dict[str, object] = {
        f"{name}_id" if key != "drug" else "drug_exposure_id": np.arange(count) + 1,
        "person_id": person[at],
        f"{key}_concept_id": np.where(rng.random(count) < 0.02, 0, first + code),
        f"{start}_date": dates(day),
        f"{start}_datetime": timestamps(day * DAY, rng.random(count) < 0.5),
        f"{key}_type_concept_id": EHR,
        "visit_occurrence_id": integers(visit[at], rng.random(count) < 0.05),
    }
    if key == "condition":
        dotted = tuple(c if len(c) < 4 else f"{c[:3]}.{c[3:]}" for c in ICD10)
        columns["condition_source_value"] = text(dotted, code)
    if key == "drug":
        columns["drug_exposure_end_date"] = dates(day + rng.integers(0, 30, count))
    return rows(shared_schema("omop54").tables[name], count, columns)


def _observations(rng: np.random.Generator, person: Ints, visit: Ints, begin: Ints) -> pa.Table:
    at = np.flatnonzero(rng.random(len(visit)) < 0.3)
    columns = {
        "observation_id": np.arange(len(at)) + 1,
        "person_id": person[at],
        "observation_concept_id": SITE + 5_000 + rng.integers(0, 5, len(at)),
        "observation_date": dates(begin[at]),
        "observation_type_concept_id": EHR,
        "value_as_string": words(rng, len(at), ("never smoked", "smokes", "smoked", ""), (5, 2, 2, 1)),
        "visit_occurrence_id": visit[at],
    }
    return rows(shared_schema("omop54").tables["observation"], len(at), columns)


def _notes(rng: np.random.Generator, person: Ints, visit: Ints, begin: Ints) -> pa.Table:
    at = np.flatnonzero(rng.random(len(visit)) < 0.1)
    columns = {
        "note_id": np.arange(len(at)) + 1,
        "person_id": person[at],
        "note_date": dates(begin[at]),
        "note_type_concept_id": EHR,
        "note_class_concept_id": 0,
        "note_text": numbered("An invented note about patient MRN-", person[at] * 7 + 13),
        "encoding_concept_id": 0,
        "language_concept_id": 0,
        "visit_occurrence_id": visit[at],
    }
    return rows(shared_schema("omop54").tables["note"], len(at), columns)


def _measured(rng: np.random.Generator, person: Ints, visit: Ints, begin: Ints) -> Iterator[pa.RecordBatch]:
    """Three measurements of each visit, some without a value or unit."""
    table, written = shared_schema("omop54").tables["measurement"], 0
    for start in range(0, len(visit), PERSONS_AT_ONCE):
        at = np.repeat(np.arange(start, min(start + PERSONS_AT_ONCE, len(visit))), len(MEASURED))
        count = len(at)
        kind = np.arange(count) % len(MEASURED)
        _, mean, spread = (np.array(c) for c in zip(*MEASURED, strict=True))
        value = np.round(rng.normal(mean[kind], spread[kind]), 1)
        columns = {
            "measurement_id": written + np.arange(count) + 1,
            "person_id": person[at],
            "measurement_concept_id": MEASURES + kind,
            "measurement_date": dates(begin[at]),
            "measurement_datetime": timestamps(begin[at] * DAY + rng.integers(0, 1_440, count) * 60),
            "measurement_type_concept_id": EHR,
            "value_as_number": pa.array(value, mask=rng.random(count) < 0.03),
            "unit_concept_id": 0,
            "unit_source_value": words(rng, count, ("bpm", "°C", "mmol/L", ""), (1, 1, 1, 1)),
            "visit_occurrence_id": visit[at],
        }
        written += count
        yield make_batch(table, count, columns)


def _places(rng: np.random.Generator) -> dict[str, pa.Table]:
    t = shared_schema("omop54").tables
    place, site, who = np.arange(39) + 1, np.arange(7) + 1, np.arange(59) + 1
    return {
        "location": rows(
            t["location"],
            39,
            {
                "location_id": place,
                "city": numbered("Invented Town ", place),
                "state": "XX",
                "zip": numbered("0", 1_000 + place * 17),
            },
        ),
        "care_site": rows(t["care_site"], 7, {"care_site_id": site, "care_site_name": numbered("Ward ", site)}),
        "provider": rows(
            t["provider"],
            59,
            {
                "provider_id": who,
                "provider_name": numbered("Dr Invented ", who),
                "year_of_birth": rng.integers(1955, 1995, 59),
            },
        ),
    }


def _vocabulary() -> dict[str, pa.Table]:
    """Invented concepts in a tree of three levels: all, ten groups a domain, and the concepts themselves."""
    t = shared_schema("omop54").tables
    ids, names, domains, above = [], [], [], []
    for place, (domain, first, count) in enumerate(
        (("Condition", CONDITIONS, len(ICD10)), ("Drug", DRUGS, 60), ("Procedure", PROCEDURES, 40))
    ):
        top = GROUPS + 100 * place
        for number in range(11 + count):
            own = top + number if number < 11 else first + number - 11
            kind = "of all" if number == 0 else "group" if number < 11 else "concept"
            ids.append(own)
            names.append(f"Invented {domain.lower()} {kind} {number}")
            domains.append(domain)
            group = () if number < 11 else (top + 1 + (number - 11) % 10,)
            above += [(own, own, 0), *((g, own, 1) for g in group)]
            above += [(top, own, 2 if number > 10 else 1)] if number else []
    for number, (name, _, _) in enumerate(MEASURED):
        ids.append(MEASURES + number)
        names.append(name)
        domains.append("Measurement")
        above.append((MEASURES + number, MEASURES + number, 0))
    upper, lower, apart = (np.array(c) for c in zip(*above, strict=True))
    concepts = {
        "concept_id": np.array(ids),
        "concept_name": pa.array(names),
        "domain_id": pa.array(domains),
        "vocabulary_id": "Invented",
        "concept_class_id": "Invented",
        "standard_concept": "S",
        "concept_code": numbered("X", np.array(ids) - SITE),
        "valid_start_date": dates(np.zeros(len(ids), dtype=np.int64)),
        "valid_end_date": dates(np.full(len(ids), 47_481)),
    }
    ancestors = {
        "ancestor_concept_id": upper,
        "descendant_concept_id": lower,
        "min_levels_of_separation": apart,
        "max_levels_of_separation": apart,
    }
    kinds = ("Condition", "Drug", "Procedure", "Measurement")
    return {
        "concept": rows(t["concept"], len(ids), concepts),
        "concept_ancestor": rows(t["concept_ancestor"], len(above), ancestors),
        "vocabulary": rows(t["vocabulary"], 1, {"vocabulary_id": "Invented", "vocabulary_name": "Invented concepts"}),
        "domain": rows(t["domain"], 4, {"domain_id": pa.array(kinds), "domain_name": pa.array(kinds)}),
        "cdm_source": rows(t["cdm_source"], 1, {"cdm_source_name": "Invented hospital", "cdm_version": "5.4"}),
    }
