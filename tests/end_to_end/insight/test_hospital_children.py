"""A hospital's diagnoses as a child table of its persons, on generated MIMIC-IV and OMOP databases; recounted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid import demo
from sqldeid.job import Job
from tests.support.child_tables import KEY, PSEUDONYM, fewest_who_fit
from tests.support.files import read
from tests.support.sources import qi

K, CLASS = 5, 100
CASES: dict[str, dict[str, Any]] = {
    "mimiciv": {
        "persons": ("mimiciv_hosp.patients", "subject_id", {"gender": qi(), "anchor_age": qi({"bands": [20, 40]})}),
        "items": ("mimiciv_hosp.diagnoses_icd", "icd_code", qi("icd/diagnoses", version="icd_version")),
    },
    "omop": {
        "persons": ("cdm.person", "person_id", {"gender_concept_id": qi(), "year_of_birth": qi({"bands": [20, 40]})}),
        "items": (
            "cdm.condition_occurrence",
            "condition_concept_id",
            qi(
                {
                    "parents": "cdm.concept_ancestor",
                    "child": "descendant_concept_id",
                    "parent": "ancestor_concept_id",
                    "separation": "min_levels_of_separation",
                },
                uncovered="top",  # 0 is OMOP's "no matching concept", and no vocabulary has it
            ),
        ),
    },
}


def job_of(name: str, folder: Path) -> Job:
    people, person, columns = CASES[name]["persons"]
    source, items, column = CASES[name]["items"]
    parent = {
        **{"source": people, "person": person, "columns": {person: PSEUDONYM, **columns}, "privacy": {"k": CLASS}},
        "attacks": False,
    }
    child = {
        **{"source": source, "person": person, "parent": "people", "items": items, "known": 2},
        **{"columns": {items: column}, "privacy": {"k": K, "suppression_limit": 0.3}},
    }
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": parent, "items": child}}, folder=folder)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_whoever_knows_two_diagnoses_finds_five_persons(name: str, tmp_path: Path) -> None:
    made = getattr(demo, name)(tmp_path / "h.duckdb", 1_000)
    (tmp_path / "key").write_text(KEY)
    options, job = sqldeid.Options(key_file=tmp_path / "key"), job_of(name, tmp_path)
    found = sqldeid.anonymize(job, made.database, options=options).releases["items"]
    assert sqldeid.verify(job, made.database, options=options)["items"].compared
    with duckdb.connect(tmp_path / "out.duckdb", read_only=True) as c:
        people, items = c.execute("FROM release.people").df(), c.execute("FROM release.items").df()
    (_, person, columns), (source, item, _) = CASES[name]["persons"], CASES[name]["items"]
    assert people.groupby(list(columns), dropna=False).size().min() >= CLASS
    joined = items.merge(people, on=person, validate="many_to_one")
    assert len(joined) == len(items) == found.rows
    fewest = fewest_who_fit(joined, person, item, list(columns))
    assert fewest == found.fewest >= K
    assert found.loss < 0.5, "more than half of what codes tell is left"
    # no key of the source: it numbers persons by five digits and more
    keys = {str(v) for (v,) in read(made.database, f'SELECT DISTINCT "{person}" FROM {source}') if len(str(v)) >= 5}
    assert not keys & {str(v) for frame in (people, items) for column in frame for v in frame[column]}


CHAPTER_10 = re.compile(r"[A-TV-Z][0-9][0-9AB][0-9A-Z]{0,4}")
CHAPTER_9 = re.compile(r"[0-9]{3,5}|V[0-9]{2,4}|E[0-9]{3,4}")
"""What codes look like, without their dots; the publishers' own description."""


def test_the_hierarchies_read_most_codes(tmp_path: Path) -> None:
    """At least 95 %, counted beside the hierarchies: by the look of ICD codes, and in OMOP's own table."""
    hospital, warehouse = demo.mimiciv(tmp_path / "h.duckdb", 1_000), demo.omop(tmp_path / "o.duckdb", 1_000)
    codes = read(hospital.database, "SELECT DISTINCT icd_code, icd_version FROM mimiciv_hosp.diagnoses_icd")
    fit = [code for code, version in codes if (CHAPTER_10 if version == 10 else CHAPTER_9).fullmatch(code.strip())]
    assert {version for _, version in codes} == {9, 10}
    assert len(fit) >= 0.95 * len(codes) > 80
    text = sqldeid.init(hospital.database, "mimiciv_hosp.diagnoses_icd")
    assert "codes: hierarchy icd/diagnoses reads\n# 100.0 % of its different values" in text
    [(there, covered)] = read(
        warehouse.database,
        """SELECT COUNT(DISTINCT condition_concept_id), COUNT(DISTINCT descendant_concept_id)
           FROM cdm.condition_occurrence
           LEFT JOIN cdm.concept_ancestor ON descendant_concept_id = condition_concept_id""",
    )
    assert covered >= 0.95 * there > 40
