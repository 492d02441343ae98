"""Patients and diagnoses of the real MIMIC-III demo: every pair of released codes is counted by brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from sqldeid.job import Job
from sqldeid.run import Options, anonymize, verify
from tests.support.sources import IDENTIFYING, INSENSITIVE, qi

K = 3


def test_all_pairs_of_released_codes(tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "mimic3demo"
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    c = duckdb.connect()
    c.execute(f"CREATE TABLE patients AS SELECT subject_id, gender FROM read_csv('{folder / 'PATIENTS.csv'}')")
    c.execute(
        f"""CREATE TABLE diagnoses AS SELECT subject_id, icd9_code
            FROM read_csv('{folder / "DIAGNOSES_ICD.csv"}', types = {{'icd9_code': 'VARCHAR'}})"""
    )
    c.execute("ALTER TABLE patients ADD COLUMN true_id INTEGER; UPDATE patients SET true_id = subject_id")
    key = {"subject_id": {**IDENTIFYING, "pseudonym": True}}
    patients = {
        **{"source": "patients", "person": "subject_id", "attacks": False},
        **{"columns": {**key, "gender": qi(), "true_id": INSENSITIVE}, "privacy": {"k": K}},
    }
    diagnoses = {
        **{"source": "diagnoses", "person": "subject_id", "parent": "patients", "items": "icd9_code", "known": 2},
        **{"columns": {"icd9_code": qi("icd9/diagnoses")}, "privacy": {"k": K, "suppression_limit": 0.1}},
    }
    job = Job.parse({"tables": {"patients": patients, "diagnoses": diagnoses}})
    options = Options(key_file=tmp_path / "key")
    found = anonymize(job, c, options=options).releases["diagnoses"]
    people = c.execute("SELECT subject_id, gender, true_id FROM release.patients").fetchall()
    gender = {pseudonym: sex for pseudonym, sex, _ in people}
    shown: dict[str, set[tuple[str, int]]] = {pseudonym: set() for pseudonym in gender}
    for pseudonym, code, level in c.execute("SELECT * FROM release.diagnoses").fetchall():
        shown[pseudonym].add((code, level))
    counted = Counter[tuple[object, ...]]()
    for pseudonym, codes in shown.items():
        counted.update((gender[pseudonym], code) for code in codes)
        counted.update((gender[pseudonym], *pair) for pair in combinations(sorted(codes), 2))
    assert min(counted.values()) == found.fewest >= K
    assert len(counted) > 200, "pairs of many codes were counted"
    assert found.loss < 0.2, "the codes do not all become one"
    assert verify(job, c, options=options)["diagnoses"].compared
    # the same codes as they are single out most patients
    raw = Counter[tuple[object, ...]]()
    true = dict.fromkeys((person for _, _, person in people), frozenset[str]())
    for person, code in c.execute("SELECT DISTINCT subject_id, icd9_code FROM diagnoses").fetchall():
        true[person] = true[person] | {code}
    for codes in true.values():
        raw.update(combinations(sorted(codes), 2))
    alone = [p for p, codes in true.items() if any(raw[pair] < K for pair in combinations(sorted(codes), 2))]
    assert len(alone) > 80


@pytest.mark.deep
def test_all_pairs_of_released_diagnoses_and_procedures(tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "mimic3demo"
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    c = duckdb.connect()
    c.execute(f"CREATE TABLE patients AS SELECT subject_id, gender FROM read_csv('{folder / 'PATIENTS.csv'}')")
    tables: dict[str, dict[str, object]] = {
        "patients": {
            **{"source": "patients", "person": "subject_id", "attacks": False, "privacy": {"k": K}},
            **{"columns": {"subject_id": {**IDENTIFYING, "pseudonym": True}, "gender": qi()}},
        }
    }
    for name in ("diagnoses", "procedures"):
        file = folder / f"{name.upper()}_ICD.csv"
        c.execute(
            f"""CREATE TABLE {name} AS SELECT subject_id, icd9_code
                FROM read_csv('{file}', types = {{'icd9_code': 'VARCHAR'}})"""
        )
        tables[name] = {
            **{"source": name, "person": "subject_id", "parent": "patients", "items": "icd9_code", "known": 2},
            **{"columns": {"icd9_code": qi(f"icd9/{name}")}, "privacy": {"k": K, "suppression_limit": 0.35}},
        }
    job = Job.parse({"tables": tables})
    options = Options(key_file=tmp_path / "key")
    made = anonymize(job, c, options=options).releases
    gender = dict(c.execute("SELECT subject_id, gender FROM release.patients").fetchall())
    shown: dict[str, set[tuple[str, str, int]]] = {pseudonym: set() for pseudonym in gender}
    for name in ("diagnoses", "procedures"):
        for pseudonym, code, level in c.execute(f"SELECT * FROM release.{name}").fetchall():
            shown[pseudonym].add((name, code, level))
    counted = Counter[tuple[object, ...]]()
    for pseudonym, codes in shown.items():
        counted.update((gender[pseudonym], code) for code in codes)
        counted.update((gender[pseudonym], *pair) for pair in combinations(sorted(codes), 2))
    assert min(counted.values()) == made["procedures"].fewest >= K
    mixed = [found for found in counted if len(found) == 3 and found[1][0] != found[2][0]]  # type: ignore[index]
    assert len(mixed) > 50, "pairs of a diagnosis and a procedure are shown"
    assert made["procedures"].loss < 0.7
    assert all(one.compared for name, one in verify(job, c, options=options).items() if name != "patients")
