"""`init` on the tables that strangers have: OMOP, eICU, MIMIC-IV, the Challenge 2012, and names in other languages."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid

ROWS = 240
TABLES = {
    "person": """CREATE TABLE person AS SELECT i + 1 AS person_id, [8507, 8532][1 + i % 2] AS gender_concept_id,
        1930 + i * 7 % 80 AS year_of_birth, 1 + i % 12 AS month_of_birth, 1 + i % 28 AS day_of_birth,
        TIMESTAMP '1930-01-01' + TO_DAYS(CAST(i * 31 AS INT)) AS birth_datetime,
        [8527, 8516, 8515, 0][1 + i % 4] AS race_concept_id, [38003563, 38003564][1 + i % 2] AS ethnicity_concept_id,
        i % 40 AS location_id, i % 11 AS provider_id, i % 5 AS care_site_id,
        'S-' || (7 * i) % 240 AS person_source_value, ['M', 'F'][1 + i % 2] AS gender_source_value,
        0 AS gender_source_concept_id, ['white', 'black', 'asian', 'other'][1 + i % 4] AS race_source_value
        FROM RANGE({rows}) AS r(i)""",
    "patient": """CREATE TABLE patient AS
        SELECT 141168 + i AS patientunitstayid, 128919 + i // 2 AS patienthealthsystemstayid,
        ['Female', 'Male'][1 + i % 2] AS gender, CASE WHEN i % 17 = 0 THEN '> 89' WHEN i % 50 = 1 THEN '' ELSE
        CAST(20 + i * 7 % 70 AS VARCHAR) END AS age, ['Caucasian', 'African American', 'Asian',
        ''][1 + i % 4] AS ethnicity,
        59 + i % 9 AS hospitalid, 90 + i % 12 AS wardid, ['Sepsis, pulmonary', 'CABG alone',
        ''][1 + i % 3] AS apacheadmissiondx,
        150.0 + i % 45 AS admissionheight, LPAD(CAST(i % 24 AS VARCHAR), 2, '0') || ':15:00' AS hospitaladmittime24,
        -(i * 37 % 9000) AS hospitaladmitoffset, ['Floor', 'Emergency Department'][1 + i % 2] AS hospitaladmitsource,
        2014 + i % 2 AS hospitaldischargeyear, i * 53 % 9000 AS hospitaldischargeoffset,
        ['Home', 'Death', 'Skilled Nursing Facility'][1 + i % 3] AS hospitaldischargelocation,
        ['Alive', 'Expired'][1 + i % 2] AS hospitaldischargestatus, ['MICU', 'SICU'][1 + i % 2] AS unittype,
        1 + i % 2 AS unitvisitnumber, 50.0 + i % 60 AS admissionweight,
        ['Home', 'Death'][1 + i % 2] AS unitdischargelocation, ['Alive', 'Expired'][1 + i % 2] AS unitdischargestatus,
        LPAD(CAST(2 + i % 3 AS VARCHAR), 3, '0') || '-' || 10000 + i // 3 AS uniquepid FROM RANGE({rows}) AS r(i)""",
    "patients": """CREATE TABLE patients AS SELECT 10000032 + i * 13 AS subject_id, ['F', 'M'][1 + i % 2] AS gender,
        18 + i * 7 % 74 AS anchor_age, 2110 + i * 3 % 90 AS anchor_year,
        ['2008 - 2010', '2011 - 2013', '2014 - 2016'][1 + i % 3] AS anchor_year_group,
        CASE WHEN i % 3 = 0 THEN DATE '2130-01-01' + CAST(i * 40 AS INT) END AS dod FROM RANGE({rows}) AS r(i)""",
    "admissions": """CREATE TABLE admissions AS SELECT 10000032 + i // 2 AS subject_id, 20000019 + i AS hadm_id,
        TIMESTAMP '2110-01-01' + TO_HOURS(CAST(i * 77 AS INT)) AS admittime,
        TIMESTAMP '2110-01-04' + TO_HOURS(CAST(i * 77 AS INT)) AS dischtime,
        CASE WHEN i % 9 = 0 THEN TIMESTAMP '2110-01-04' + TO_HOURS(CAST(i * 77 AS INT)) END AS deathtime,
        ['URGENT', 'EW EMER.'][1 + i % 2] AS admission_type, 'P' || i % 30 AS admit_provider_id,
        ['EMERGENCY ROOM', 'PHYSICIAN REFERRAL'][1 + i % 2] AS admission_location,
        ['HOME', 'DIED', 'HOSPICE'][1 + i % 3] AS discharge_location, ['Other', 'Medicaid'][1 + i % 2] AS insurance,
        ['ENGLISH', '?'][1 + i % 2] AS language, ['WIDOWED', 'SINGLE'][1 + i % 2] AS marital_status,
        ['WHITE', 'BLACK/CAPE VERDEAN'][1 + i % 2] AS race,
        TIMESTAMP '2110-01-01' + TO_HOURS(CAST(i AS INT)) AS edregtime,
        CASE WHEN i % 9 = 0 THEN 1 ELSE 0 END AS hospital_expire_flag FROM RANGE({rows}) AS r(i)""",
    "descriptors": """CREATE TABLE descriptors AS
        SELECT 132539 + i AS "RecordID", 15 + i * 7 % 76 AS "Age", i % 2 AS "Gender",
        CASE WHEN i % 2 = 0 THEN -1.0 ELSE 150.0 + i % 40 END AS "Height", 1 + i % 4 AS "ICUType",
        50.0 + i % 70 AS "Weight",
        i % 15 AS "SAPS-I", i % 11 AS "SOFA", 1 + i * 3 % 60 AS "Length_of_stay", i % 15 - 1 AS "Survival",
        CASE WHEN i % 7 = 0 THEN 1 ELSE 0 END AS "In-hospital_death" FROM RANGE({rows}) AS r(i)""",
}
IDENTIFYING, QUASI, SENSITIVE, LEFT_OUT = "identifying", "quasi-identifying", "sensitive", None
EXPECTED: dict[str, dict[str, str | None]] = {
    "person": {
        "person_id": IDENTIFYING,
        "gender_concept_id": QUASI,
        "year_of_birth": QUASI,
        "month_of_birth": LEFT_OUT,
        "day_of_birth": LEFT_OUT,
        "birth_datetime": LEFT_OUT,
        "race_concept_id": QUASI,
        "ethnicity_concept_id": QUASI,
        "provider_id": IDENTIFYING,
        "person_source_value": IDENTIFYING,
        "gender_source_value": QUASI,
        "race_source_value": QUASI,
    },
    "patient": {
        "patientunitstayid": IDENTIFYING,
        "patienthealthsystemstayid": IDENTIFYING,
        "uniquepid": IDENTIFYING,
        "gender": QUASI,
        "age": QUASI,
        "ethnicity": QUASI,
        "apacheadmissiondx": SENSITIVE,
        "hospitaldischargelocation": SENSITIVE,
        "hospitaldischargestatus": SENSITIVE,
        "unitdischargelocation": SENSITIVE,
        "unitdischargestatus": SENSITIVE,
    },
    "patients": {
        "subject_id": IDENTIFYING,
        "gender": QUASI,
        "anchor_age": QUASI,
        "anchor_year": QUASI,
        "dod": IDENTIFYING,
    },
    "admissions": {
        "subject_id": IDENTIFYING,
        "hadm_id": IDENTIFYING,
        "deathtime": IDENTIFYING,
        "admit_provider_id": IDENTIFYING,
        "discharge_location": SENSITIVE,
        "hospital_expire_flag": SENSITIVE,
        "marital_status": QUASI,
        "race": QUASI,
    },
    "descriptors": {
        "RecordID": IDENTIFYING,
        "Age": QUASI,
        "Gender": QUASI,
        "In-hospital_death": SENSITIVE,
        "Survival": SENSITIVE,
        "SAPS-I": SENSITIVE,
        "SOFA": SENSITIVE,
    },
}


def drafted(folder: Path, name: str, sql: str) -> tuple[str, dict[str, Any], Path]:
    source = folder / f"{name}.duckdb"
    with duckdb.connect(str(source)) as c:
        c.execute(sql)
    text = sqldeid.init(source)
    return text, tomllib.loads(text)["tables"][name], source


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rows", [40, ROWS])
def test_roles_on_strangers_tables(tmp_path: Path, name: str, rows: int) -> None:
    _, table, _ = drafted(tmp_path, name, TABLES[name].format(rows=rows))
    roles = {column: table["columns"].get(column, {}).get("role") for column in EXPECTED[name]}
    assert roles == EXPECTED[name]
    assert all("shift" not in c for n, c in table["columns"].items() if "death" in n.lower() or n == "dod")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TABLES)
def test_such_a_job_runs(tmp_path: Path, name: str) -> None:
    text, _, source = drafted(tmp_path, name, TABLES[name].format(rows=ROWS))
    file = tmp_path / "job.toml"
    file.write_text(text, encoding="utf-8")
    made = sqldeid.Job.load(file)
    [found] = sqldeid.anonymize(made, source).releases.values()
    assert found.released > 0.9 * found.rows and sqldeid.verify(made, source)


@pytest.mark.deep
def test_hierarchies_on_strangers_tables(tmp_path: Path) -> None:
    _, person, _ = drafted(tmp_path, "person", TABLES["person"].format(rows=ROWS))
    assert person["person"] == "person_id" and person["columns"]["year_of_birth"]["hierarchy"] == {"bands": [5, 10, 20]}
    assert "bands" not in str(person["columns"]["gender_concept_id"]["hierarchy"])
    assert person["columns"]["race_concept_id"]["hierarchy"] == {"suppress": True}
    _, patient, _ = drafted(tmp_path, "patient", TABLES["patient"].format(rows=ROWS))
    assert patient["columns"]["age"]["hierarchy"] == "age/text" and patient.get("person") != "patientunitstayid"
    _, patients, _ = drafted(tmp_path, "patients", TABLES["patients"].format(rows=ROWS))
    assert patients["columns"]["anchor_age"]["top_code"] == 90
    [harbor] = [f for f in sqldeid.safe_harbor(tmp_path / "patient.duckdb") if f.column == "uniquepid"]
    assert harbor.letter == "R"


DEATHS = """dod DOD_HOSP dod_ssn deathtime DeathDate date_of_death death_datetime deceased_on dateofdeath expired_at
    Todesdatum Todestag sterbe_datum Sterbezeitpunkt verstorben_am date_deces décès_le fecha_defuncion fecha_muerte
    fallecimiento data_obito óbito data_morte overlijdensdatum dödsdatum dødsdato data_zgonu kuolinpäivä
    exitus_am dtdeath DTHDTC dth_dt DTOBITO mortality_date sterfdatum passed_away obituary_date""".split()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "VARCHAR", "TIMESTAMPTZ"])
def test_a_date_of_death_is_never_released_shifted(tmp_path: Path, type_: str) -> None:
    columns = ", ".join(f"CAST(DATE '2020-01-01' + CAST(i * 3 AS INT) AS {type_}) AS \"{name}\"" for name in DEATHS)
    sql = f"CREATE TABLE t AS SELECT i AS patient_id, ['f', 'm'][1 + i % 2] AS sex, {columns} FROM RANGE(90) AS r(i)"
    _, table, _ = drafted(tmp_path, "t", sql)
    assert {n: table["columns"].get(n, {}).get("role") for n in DEATHS} == dict.fromkeys(DEATHS, IDENTIFYING)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name",
    """Diagnose Hauptdiagnose Diagnosen diagnóstico diagnosi Erkrankung icd10 dx admit_dx discharge_disposition
    Entlassungsart discharge_location verstorben died dead_flag maladie Medikament""".split(),
)
def test_what_nobody_should_learn(tmp_path: Path, name: str) -> None:
    sql = f"""CREATE TABLE t AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex, 'x' || i % 4 AS "{name}"
        FROM RANGE(90) AS r(i)"""
    _, table, _ = drafted(tmp_path, "t", sql)
    assert table["columns"][name]["role"] == SENSITIVE


@pytest.mark.parametrize(
    "name", ["Geburtsjahr", "birth_year", "YOB", "annee_naissance", "year_of_birth", "geboortejaar"]
)
def test_years_of_birth_in_other_tongues(tmp_path: Path, name: str) -> None:
    born = f'1940 + i % 60 AS "{name}", 1 + i % 28 AS "Geburtstag"'
    sql = f"CREATE TABLE t AS SELECT i AS id, {born} FROM RANGE(120) AS r(i)"
    _, table, _ = drafted(tmp_path, "t", sql)
    assert table["columns"][name]["hierarchy"] == {"bands": [5, 10, 20]} and "Geburtstag" not in table["columns"]
