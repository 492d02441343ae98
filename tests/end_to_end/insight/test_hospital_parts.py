"""`sqldeid init --part`: diagnoses and vital signs of shared schemas, released without an edit, and recounted."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import sqldeid
from sqldeid import demo
from sqldeid.errors import JobError
from sqldeid.schemas import PARTS, SCHEMAS, shared_schema
from tests.support.child_tables import KEY, fewest_who_fit
from tests.support.cli import run
from tests.support.files import read

MAKERS: dict[str, Callable[..., Any]] = {
    "omop54": demo.omop,
    "mimiciv": demo.mimiciv,
    "mimiciii": demo.mimic,
    "eicu": demo.eicu,
}
EACH = [(name, part) for name in SCHEMAS for part in shared_schema(name).parts]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(KEY)
    return tmp_path / "key"


def released(database: Path, text: str, folder: Path, **more: Any) -> dict[str, pd.DataFrame]:
    """The releases of a job by name, after `anonymize` and `verify`."""
    (folder / "part.toml").write_text(text, encoding="utf-8")
    job = sqldeid.Job.load(folder / "part.toml")
    options = sqldeid.Options(key_file=folder / "key", **more)
    sqldeid.anonymize(job, database, options=options)
    sqldeid.verify(job, database, options=options)
    with duckdb.connect(folder / str(job.release.into), read_only=True) as connection:
        names = [*job.tables, *job.series]
        return {name: connection.execute(f"SELECT * FROM release.{name}").df() for name in names}


def keys_of(database: Path, name: str) -> set[str]:
    """Keys of persons and stays, of which those of five digits stand for nothing else."""
    shared = shared_schema(name)
    found: set[str] = set()
    there = {n for (n,) in read(database, "SELECT table_name FROM information_schema.tables")}
    for table in shared.tables.values():
        for c in table.columns if table.name in there else ():
            if c.decision == "identifying" and c.why.startswith("key"):
                values = read(database, f'SELECT DISTINCT CAST("{c.name}" AS VARCHAR) FROM {table.schema}.{table.name}')
                found |= {v for (v,) in values if v is not None and len(v) >= 5}
    return found


def test_every_schema_has_diagnoses() -> None:
    assert {part for _, part in EACH} == set(PARTS)
    assert {name for name, part in EACH if part == "diagnoses"} == set(SCHEMAS)


@pytest.mark.deep
@pytest.mark.parametrize("name", SCHEMAS)
def test_diagnoses_are_released_without_an_edit(name: str, tmp_path: Path, key: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 1_000)
    text = sqldeid.init(made.database, preset=name, part="diagnoses")
    shared, tables = shared_schema(name), released(made.database, text, tmp_path)
    parent, items = tables[shared.release], tables["diagnoses"]
    asked = tomllib.loads(text)["tables"]
    by = [n for n, c in asked[shared.release]["columns"].items() if c["role"] == "quasi-identifying"]
    assert parent.groupby(by, dropna=False).size().min() >= asked[shared.release]["privacy"]["k"] >= 50
    joined = items.merge(parent, on=shared.person, validate="many_to_one")
    assert len(joined) == len(items) > 500
    item = asked["diagnoses"]["items"]
    assert fewest_who_fit(joined, shared.person, item, by) >= 5
    assert items[item].nunique() > 5, "not all codes have become one"
    shown = {str(v) for frame in tables.values() for column in frame for v in frame[column]}
    assert not keys_of(made.database, name) & shown


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name, part in EACH if part == "vitals"])
def test_vital_signs_are_released_without_an_edit(name: str, tmp_path: Path, key: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 1_000)
    text = sqldeid.init(made.database, preset=name, part="vitals")
    rows = released(made.database, text, tmp_path)["vitals"]
    assert set(rows) == {"person_number", "step", "variable", "value"}
    assert rows["variable"].nunique() >= 3
    steps = rows.groupby("person_number")["step"].max()
    assert len(steps) > 150 and steps.value_counts().min() >= 20
    (person,) = {shared_schema(name).person}
    [(persons,)] = read(made.database, f"SELECT COUNT(DISTINCT {person}) FROM {base_of(name)}")
    assert len(steps) <= persons, "a person has one series, whatever the stays"


def base_of(name: str) -> str:
    shared = shared_schema(name)
    return f"{shared.tables[shared.base].schema}.{shared.base}"


@pytest.mark.deep
@pytest.mark.parametrize(("name", "part"), EACH)
def test_upper_case_and_another_schema(name: str, part: str, tmp_path: Path, key: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 300)
    loud, shared = tmp_path / "loud.duckdb", shared_schema(name)
    there = {(s, t) for s, t in read(made.database, "SELECT table_schema, table_name FROM information_schema.tables")}
    with duckdb.connect(loud) as connection:
        connection.execute(f"ATTACH '{made.database}' AS s (READ_ONLY)")
        connection.execute('CREATE SCHEMA "Our Data"')
        for table in shared.tables.values():
            if (table.schema, table.name) in there:
                columns = ", ".join(
                    f'"{c}" AS "{c.upper()}"'
                    for (c,) in connection.execute(
                        "SELECT column_name FROM duckdb_columns() WHERE schema_name = ? AND table_name = ? "
                        "AND database_name = 's' ORDER BY column_index",
                        [table.schema, table.name],
                    ).fetchall()
                )
                target = f'"Our Data"."{table.name.upper()}"'
                connection.execute(f"CREATE TABLE {target} AS SELECT {columns} FROM s.{table.schema}.{table.name}")
    text = sqldeid.init(loud, "our data", preset=name, part=part)
    assert all(len(rows) > 100 for rows in released(loud, text, tmp_path).values())


def test_a_person_has_one_series_that_of_the_first_stay(tmp_path: Path, key: Path) -> None:
    """Else who has two stays would be counted as two persons, or the gap between them would be a length."""
    made = demo.eicu(tmp_path / "h.duckdb", 300)
    text = sqldeid.init(made.database, preset="eicu", part="vitals")
    source = tomllib.loads(text)["series"]["vitals"]["source"]["query"]
    [(stays, persons)] = read(
        made.database,
        """SELECT COUNT(DISTINCT patientunitstayid), COUNT(DISTINCT uniquepid)
            FROM eicu_crd.patient JOIN eicu_crd.vitalperiodic USING (patientunitstayid)""",
    )
    [(taken, least)] = read(
        made.database,
        f"""SELECT COUNT(*), COUNT(DISTINCT uniquepid)
            FROM (SELECT DISTINCT uniquepid, observationoffset FROM ({source}))""",
    )
    [(rows,)] = read(made.database, f"SELECT COUNT(*) FROM ({source})")
    assert stays > persons == least
    assert rows == taken, "no two rows of a person at one time: they are of one stay"


def test_jobs_of_several_schemas_and_parts_stand_in_one_folder(tmp_path: Path) -> None:
    """Each writes to a file of its own: else the second finds the first one's release, and would replace it."""
    files = []
    for name, make in {"omop54": demo.omop, "mimiciv": demo.mimiciv, "eicu": demo.eicu}.items():
        made = make(tmp_path / f"{name}.duckdb", 300)
        for part in ("persons", *shared_schema(name).parts):
            files.append(tomllib.loads(sqldeid.init(made.database, preset=name, part=part))["release"]["into"])
    assert len(set(files)) == len(files)
    assert {"eicu_patients_release.duckdb", "mimiciv_vitals_release.duckdb"} < set(files)


def test_presets_and_small_databases_change_the_numbers(tmp_path: Path) -> None:
    made = demo.omop(tmp_path / "h.duckdb", 120)
    text = sqldeid.init(made.database, preset=["omop54", "cms-11"], part="diagnoses")
    asked = tomllib.loads(text)["tables"]
    assert (asked["persons"]["privacy"]["k"], asked["diagnoses"]["privacy"]["k"]) == (20, 11)
    harbor = tomllib.loads(sqldeid.init(made.database, preset=["omop54", "hipaa-safe-harbor"], part="diagnoses"))
    assert "year_of_birth" not in harbor["tables"]["persons"]["columns"]
    assert sqldeid.init(made.database, preset="omop54", part="persons") == sqldeid.init(made.database)
    small = demo.eicu(tmp_path / "small.duckdb", 20)
    asked = tomllib.loads(sqldeid.init(small.database, preset=["eicu", "cms-11"], part="diagnoses"))["tables"]
    assert asked["patients"]["privacy"]["k"] == 11


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    made = demo.omop(tmp_path / "h.duckdb", 30)
    with pytest.raises(JobError, match=r"OMOP CDM 5\.4 has no part vitals; parts: persons, diagnoses"):
        sqldeid.init(made.database, part="vitals")
    with duckdb.connect(made.database) as connection:
        connection.execute("ALTER TABLE cdm.condition_occurrence DROP COLUMN condition_concept_id")
    with pytest.raises(JobError, match="table condition_occurrence with condition_concept_id, which the database"):
        sqldeid.init(made.database, part="diagnoses")
    with duckdb.connect(made.database) as connection:
        connection.execute("DROP TABLE cdm.concept_ancestor")
        connection.execute("ALTER TABLE cdm.condition_occurrence ADD COLUMN condition_concept_id INTEGER")
    with pytest.raises(JobError, match="table concept_ancestor, which the database does not have"):
        sqldeid.init(made.database, part="diagnoses")
    plain = demo.adult(tmp_path / "a.duckdb", 50)
    with pytest.raises(JobError, match="part: goes with a schema"):
        sqldeid.init(plain.database, part="diagnoses")
    with pytest.raises(JobError, match="part: goes with a schema"):
        sqldeid.init(made.database, "cdm.person", part="diagnoses")


def test_the_command_tells_how_a_key_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = demo.eicu(tmp_path / "h.duckdb", 60)
    ran = run(capsys, "init", made.database, "--part", "diagnoses", "-o", tmp_path / "j.toml")
    assert ran.code == 0
    assert "openssl rand -hex 32 > key" in ran.out and "--key-file key" in ran.out and "not both" in ran.out
    ran = run(capsys, "init", made.database, "--part", "vitals", "-o", tmp_path / "v.toml")
    assert ran.code == 0
    assert "--key-file" not in ran.out and "Empty now" not in ran.out


def test_what_comes_next_is_said_beside_a_job_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = demo.eicu(tmp_path / "h.duckdb", 60)
    ran = run(capsys, "init", made.database, "--preset", "eicu", "--part", "diagnoses")
    assert tomllib.loads(ran.out)["tables"]["diagnoses"]["parent"] == "patients"
    said = ran.err.split()
    assert "openssl rand -hex 32 > key" in " ".join(said) and said.count("anonymize") == 2 and "job.toml" in said
    assert run(capsys, "init", made.database, "-q").err == ""


@pytest.mark.parametrize(
    ("part", "table"), [("diagnoses", "diagnoses_icd"), ("vitals", "icustays"), ("persons", "patients")]
)
def test_an_empty_source_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str, table: str) -> None:
    made = demo.mimiciv(tmp_path / "h.duckdb", 60)
    with duckdb.connect(made.database) as connection:
        (schema,) = connection.execute(
            "SELECT table_schema FROM information_schema.tables WHERE table_name = ?", [table]
        ).fetchone()
        connection.execute(f"DELETE FROM {schema}.{table}")
    ran = run(capsys, "init", made.database, "--preset", "mimiciv", "--part", part, "-o", tmp_path / "j.toml")
    assert ran.code == 0 and f"Empty now: {table}. Until it has rows" in " ".join(ran.out.split())


@pytest.mark.deep
def test_the_real_mimic_iii_demo(shared_data: Path, tmp_path: Path, key: Path) -> None:
    path = tmp_path / "real.duckdb"
    with duckdb.connect(path) as connection:
        for table in ("PATIENTS", "ADMISSIONS", "ICUSTAYS", "DIAGNOSES_ICD", "CHARTEVENTS"):
            (file,) = (shared_data / "mimic3demo").glob(f"{table}.csv*")
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_csv('{file}', sample_size = -1)")
    text = sqldeid.init(path, preset="mimiciii", part="diagnoses")
    assert tomllib.loads(text)["tables"]["patients"]["privacy"]["k"] == 20
    tables = released(path, text, tmp_path)
    joined = tables["diagnoses"].merge(tables["patients"], on="subject_id", validate="many_to_one")
    by = [n for n in ("age", "gender") if n in tables["patients"]]
    assert fewest_who_fit(joined, "subject_id", "icd9_code", by) >= 5
    rows = released(path, sqldeid.init(path, preset="mimiciii", part="vitals"), tmp_path)["vitals"]
    assert rows.empty or rows.groupby("person_number")["step"].max().value_counts().min() >= 20
