"""`sqldeid demo` of whole schemas: every table and column there with its type, keys that meet, the known pitfalls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from sqldeid import demo
from sqldeid.demo import Demo
from sqldeid.errors import JobError
from sqldeid.schemas import shared_schema
from tests.support.files import read

MAKERS = {"omop54": demo.omop, "mimiciv": demo.mimiciv, "eicu": demo.eicu}
EACH = pytest.mark.parametrize("name", MAKERS)
COUNTS = {"omop54": 39, "mimiciv": 31, "eicu": 31}
"""Tables of each schema."""


@EACH
def test_every_table_and_column_is_there_with_its_type(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "d.duckdb", 60)
    assert made.jobs == () and len(made.tables) == COUNTS[name]
    query = "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
    found = {(s, t, c): kind for s, t, c, kind in read(made.database, query)}
    wanted = {(t.schema, t.name, c.name): c.type for t in shared_schema(name).tables.values() for c in t.columns}
    assert found == wanted
    assert [t.rows for t in made.tables if t.rows] and sorted(p.name for p in tmp_path.iterdir()) == ["d.duckdb"]


def hashes(made: Demo) -> dict[str, str]:
    query = "SELECT md5(string_agg(line, '|' ORDER BY line)) FROM (SELECT CAST(t AS VARCHAR) AS line FROM {} AS t)"
    return {t.name: read(made.database, query.format(t.name))[0][0] for t in made.tables if t.rows}


@pytest.mark.deep
@EACH
def test_the_seed_alone_decides(name: str, tmp_path: Path) -> None:
    one, two, other = (hashes(MAKERS[name](tmp_path / f"{i}.duckdb", 40, seed)) for i, seed in enumerate((1, 1, 2)))
    assert one == two
    base = shared_schema(name).base
    assert all(one[t] != other[t] for t in one if t.endswith("." + base))


KEYS = {
    "omop54": ("person_id", "cdm.person", ["visit_occurrence", "condition_occurrence", "measurement", "death", "note"]),
    "mimiciv": ("subject_id", "mimiciv_hosp.patients", ["admissions", "diagnoses_icd", "labevents"]),
    "eicu": ("patientunitstayid", "eicu_crd.patient", ["diagnosis", "vitalperiodic", "lab", "note"]),
}


@pytest.mark.sampled(2)
@EACH
@pytest.mark.parametrize("persons", [1, 150])
def test_children_have_a_parent(name: str, persons: int, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "d.duckdb", persons)
    key, parent, children = KEYS[name]
    people = shared_schema(name).person
    assert read(made.database, f"SELECT COUNT(DISTINCT {people}) FROM {parent}") == [(persons,)]
    repeated = f"SELECT COUNT(*) - COUNT(DISTINCT {key}) FROM {parent}"
    assert read(made.database, repeated) == [(0,)]
    for child in children:
        orphans = f"SELECT COUNT(*) FROM {parent.split('.')[0]}.{child} WHERE {key} NOT IN (SELECT {key} FROM {parent})"
        assert read(made.database, orphans) == [(0,)]


PITFALLS = {
    "omop54": [
        "SELECT COUNT(*) FROM cdm.person WHERE month_of_birth IS NULL",
        "SELECT COUNT(*) FROM cdm.condition_occurrence WHERE condition_concept_id = 0",
        "SELECT COUNT(*) FROM cdm.concept_ancestor WHERE max_levels_of_separation = 2",
    ],
    "mimiciv": [
        "SELECT COUNT(*) FROM mimiciv_hosp.patients WHERE anchor_age = 91",
        "SELECT COUNT(*) FROM mimiciv_hosp.diagnoses_icd WHERE icd_version = 9",
        "SELECT COUNT(*) FROM mimiciv_hosp.diagnoses_icd WHERE icd_version = 10",
        "SELECT COUNT(*) FROM mimiciv_hosp.patients WHERE subject_id NOT IN "
        "(SELECT subject_id FROM mimiciv_hosp.admissions)",
        "SELECT COUNT(*) FROM mimiciv_hosp.labevents WHERE hadm_id IS NULL",
    ],
    "eicu": [
        "SELECT COUNT(*) FROM eicu_crd.patient WHERE age = '> 89'",
        "SELECT COUNT(*) FROM eicu_crd.patient WHERE hospitaladmitoffset < 0",
        "SELECT COUNT(*) - COUNT(DISTINCT uniquepid) FROM eicu_crd.patient",
        "SELECT COUNT(*) FROM eicu_crd.vitalperiodic WHERE cvp IS NULL AND heartrate IS NOT NULL",
    ],
}


@EACH
def test_pitfalls_of_the_real_ones_are_there(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "d.duckdb", 600)
    for query in PITFALLS[name]:
        assert read(made.database, query)[0][0] > 0, query


def test_anchors_lie_in_the_future_and_years_of_admission_follow_them(tmp_path: Path) -> None:
    made = demo.mimiciv(tmp_path / "d.duckdb", 300)
    query = """SELECT MIN(year(admittime) - anchor_year), MIN(anchor_year) FROM mimiciv_hosp.admissions
        JOIN mimiciv_hosp.patients USING (subject_id)"""
    assert read(made.database, query)[0][0] >= 0
    assert read(made.database, query)[0][1] >= 2110


@pytest.mark.parametrize("make", MAKERS.values())
@pytest.mark.parametrize(("persons", "seed"), [(0, 1), (100_001, 1), (10, -1)])
def test_numbers_out_of_range_are_refused(make: Callable[..., Demo], persons: int, seed: int, tmp_path: Path) -> None:
    with pytest.raises(JobError):
        make(tmp_path / "d.duckdb", persons, seed)
    assert not list(tmp_path.iterdir())


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    (tmp_path / "d.duckdb").write_text("mine")
    with pytest.raises(JobError, match="exists already"):
        demo.omop(tmp_path / "d.duckdb", 5)
    assert (tmp_path / "d.duckdb").read_text() == "mine"


def test_tables_that_are_read_by_batches_are_read_by_others(tmp_path: Path) -> None:
    made = demo.eicu(tmp_path / "d.duckdb", 2_600)  # more than one batch of stays
    with duckdb.connect(made.database, read_only=True) as connection:
        keys = connection.execute(
            "SELECT COUNT(*) - COUNT(DISTINCT vitalperiodicid) FROM eicu_crd.vitalperiodic"
        ).fetchall()
    assert keys == [(0,)]
