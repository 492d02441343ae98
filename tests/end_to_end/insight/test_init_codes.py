"""`init` knows columns of codes: it says which hierarchy reads them and how many, and takes it where it may."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.job import Job


@pytest.fixture
def source(tmp_path: Path, shared_data: Path) -> Path:
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as c:
        for table, file in (("diagnoses_icd", "DIAGNOSES_ICD"), ("procedures_icd", "PROCEDURES_ICD")):
            of = shared_data / "mimic3demo" / f"{file}.csv"
            c.execute(f"CREATE TABLE {table} AS FROM read_csv('{of}', types = {{'icd9_code': 'VARCHAR'}})")
        c.execute("""CREATE TABLE dotted AS SELECT * REPLACE (CASE WHEN LENGTH(icd9_code) < 4 OR icd9_code LIKE 'E%'
            THEN icd9_code ELSE icd9_code[:3] || '.' || icd9_code[4:] END AS icd9_code) FROM diagnoses_icd""")
        c.execute("""CREATE TABLE mixed AS SELECT i AS subject_id, 9 + i % 2 AS icd_version,
            CASE WHEN i % 2 = 0 THEN ['4280', 'V4581', 'E8710'][1 + i % 3]
                 ELSE ['I50.9', 'e1165', 'Z7901', 'E871'][1 + i % 4] END AS icd_code,
            ['DE', 'FRA', 'United States', NULL][1 + i % 4] AS country,
            CASE WHEN i % 50 = 7 THEN 'none' ELSE 'A10BA0' || i % 9 END AS atc_code,
            'word' || i % 7 AS diagnosis FROM RANGE(450) AS r(i)""")
    return path


@pytest.mark.parametrize(
    ("table", "hierarchy"),
    [("diagnoses_icd", "icd9/diagnoses"), ("dotted", "icd9/diagnoses"), ("procedures_icd", "icd9/procedures")],
)
def test_the_real_codes_are_known_and_nearly_all_are_read(source: Path, table: str, hierarchy: str) -> None:
    said = " ".join(line.lstrip("# ") for line in sqldeid.init(source, table).splitlines())
    found = re.search(rf"hierarchy {hierarchy} reads ([0-9.]+) % of its different values", said)
    assert found is not None and float(found[1]) >= 95


def test_what_it_proposes_of_codes_runs(source: Path) -> None:
    text = sqldeid.init(source, "mixed")
    said = " ".join(line.lstrip("# ") for line in text.splitlines())
    columns = tomllib.loads(text)["tables"]["mixed"]["columns"]
    assert "hierarchy icd/diagnoses reads 100.0 %" in said
    assert columns["country"] == {"role": "quasi-identifying", "hierarchy": "world/country"}
    assert columns["atc_code"]["hierarchy"] != "atc/substances", "one of ten values is none, more than may be"
    assert "word" not in said.replace("words", ""), "no value is told, and text is no code"
    file = source.parent / "j.toml"
    file.write_text(text.replace('icd_code = { role = "sensitive" }', MIXED).replace(DIVERSE, "#"))
    made = sqldeid.anonymize(Job.load(file), source).releases["mixed"]
    assert made.released and "icd_code" in made.node


MIXED = 'icd_code = { role = "quasi-identifying", hierarchy = "icd/diagnoses", version = "icd_version" }'
DIVERSE = "l_diversity = {"


def test_numbers_that_stand_for_things_are_not_put_into_bands(shared_data: Path) -> None:
    """Items 70011 and 70012 are two kinds of sample, with no more in common than any others."""
    text = sqldeid.init(shared_data / "mimic3demo" / "MICROBIOLOGYEVENTS.csv")
    columns = tomllib.loads(text)["tables"]["MICROBIOLOGYEVENTS"]["columns"]
    for name in ("spec_itemid", "org_itemid", "ab_itemid"):
        assert columns[name] == {"role": "quasi-identifying", "hierarchy": {"suppress": True}}, name
