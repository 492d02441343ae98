"""`sqldeid init --preset` of a whole schema: every column is decided, and what is written runs, verifies, holds k."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import sqldeid
from sqldeid import demo
from sqldeid.errors import JobError
from sqldeid.schemas import SCHEMAS, shared_schema
from tests.support.cli import run
from tests.support.files import read

pytestmark = pytest.mark.duckdb14

MAKERS = {"omop54": demo.omop, "mimiciv": demo.mimiciv, "eicu": demo.eicu}
EACH = pytest.mark.parametrize("name", MAKERS)
DECISIONS = {"identifying", "free-text", "quasi-identifying", "sensitive", "dropped"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_has_a_decision_and_a_reason(name: str) -> None:
    shared = shared_schema(name)
    used = {(c.of, c.column) for c in shared.columns}
    for table in shared.tables.values():
        assert table.why and table.columns
        assert len({c.name for c in table.columns}) == len(table.columns)
        for c in table.columns:
            assert c.decision in DECISIONS and c.why
            kept = c.decision in ("quasi-identifying", "sensitive")
            assert not kept or (table.name, c.name) in used, f"{table.name}.{c.name} would be released, and is not"
    for c in shared.columns:
        decided = shared.decision(c)
        assert decided.decision in ("quasi-identifying", "sensitive")
        assert (decided.decision == "quasi-identifying") == ("hierarchy" in c.keys)


def released(database: Path, text: str, folder: Path) -> tuple[str, pd.DataFrame]:
    """The job's only release: its name, and its rows after `anonymize` and `verify`."""
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    job = sqldeid.Job.load(path)
    sqldeid.anonymize(job, database)
    sqldeid.verify(job, database)
    (name,) = job.tables
    with duckdb.connect(folder / str(job.release.into), read_only=True) as connection:
        return name, connection.execute(f"SELECT * FROM release.{name}").df()


def quasi(text: str) -> list[str]:
    (table,) = tomllib.loads(text)["tables"].values()
    return [n for n, c in table["columns"].items() if c["role"] == "quasi-identifying"]


@pytest.mark.sampled(1)
@EACH
def test_init_anonymize_verify_without_an_edit(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 1_000)
    text = sqldeid.init(made.database, preset=name)
    assert text == sqldeid.init(made.database), "is found unasked"
    _, rows = released(made.database, text, tmp_path)
    classes = rows.groupby(quasi(text), dropna=False).size()
    assert classes.min() >= 5 and len(rows) >= 950
    shared = shared_schema(name)
    for table in shared.tables.values():  # all decisions stand in the job
        for c in table.columns:
            assert c.name in text


@pytest.mark.deep
@EACH
def test_no_key_date_or_name_of_the_source_is_released(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 300)
    _, rows = released(made.database, sqldeid.init(made.database, preset=name), tmp_path)
    there = {str(v) for column in rows for v in rows[column]}
    shared = shared_schema(name)
    allowed = {c.column for c in shared.columns if not c.there}
    for table in shared.tables.values():
        for c in table.columns:
            canary = c.decision in ("identifying", "free-text") or c.type in ("DATE", "TIMESTAMP")
            if not canary or c.name in allowed or table.why.startswith("vocabulary"):
                continue
            values = read(
                made.database, f'SELECT DISTINCT CAST("{c.name}" AS VARCHAR) FROM {table.schema}.{table.name}'
            )
            # Small numbers (a ward 3, a flag 1) stand for anything; long ones and texts are the canaries.
            found = {v for (v,) in values if v is not None and len(v) >= 5} & there
            assert not found, f"{table.name}.{c.name}"
    assert not any(pd.api.types.is_datetime64_any_dtype(rows[column]) for column in rows)


def test_a_schema_and_a_threshold_go_together(tmp_path: Path) -> None:
    made = demo.omop(tmp_path / "h.duckdb", 400)
    text = sqldeid.init(made.database, preset=["omop54", "cms-11"])
    assert "k = 11 " in text
    _, rows = released(made.database, text, tmp_path)
    assert rows.groupby(quasi(text), dropna=False).size().min() >= 11
    harbor = sqldeid.init(made.database, preset=["hipaa-safe-harbor", "omop54"])
    assert "year_of_birth" not in quasi(harbor) and "gender_concept_id" in quasi(harbor)
    for wrong in (["omop54", "eicu"], ["cms-11", "risk-0.09"], ["omop"]):
        with pytest.raises(JobError):
            sqldeid.init(made.database, preset=wrong)


def changed(path: Path, *statements: str) -> Path:
    with duckdb.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_what_the_preset_does_not_know_is_left_out(tmp_path: Path) -> None:
    made = demo.omop(tmp_path / "h.duckdb", 300)
    changed(
        made.database,
        "ALTER TABLE cdm.person ADD COLUMN \"select\" VARCHAR DEFAULT 'CANARY'",
        "CREATE TABLE cdm.phone_book AS SELECT person_id, 'CANARY' AS phone FROM cdm.person",
        "DROP TABLE cdm.death",
    )
    text = sqldeid.init(made.database, preset="omop54")
    assert "select" in text and "cdm.phone_book" in text and "Not in this database: death" in text
    _, rows = released(made.database, text, tmp_path)
    assert "died" not in rows and "CANARY" not in rows.to_csv()


@pytest.mark.sampled(1)
@EACH
def test_upper_case_and_another_schema(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](tmp_path / "h.duckdb", 300)
    loud = tmp_path / "loud.duckdb"
    with duckdb.connect(loud) as connection:
        connection.execute(f"ATTACH '{made.database}' AS s (READ_ONLY)")
        connection.execute('CREATE SCHEMA "Our Data"')
        for table in shared_schema(name).tables.values():
            columns = ", ".join(f'"{c.name}" AS "{c.name.upper()}"' for c in table.columns)
            connection.execute(
                f'CREATE TABLE "Our Data"."{table.name.upper()}" AS SELECT {columns} FROM s.{table.schema}.{table.name}'
            )
    text = sqldeid.init(loud, "our data", preset=name)
    _, rows = released(loud, text, tmp_path)
    assert rows.groupby(quasi(text), dropna=False).size().min() >= 5


@pytest.mark.deep
def test_a_schema_that_is_there_twice_must_be_named(tmp_path: Path) -> None:
    made = demo.omop(tmp_path / "h.duckdb", 50)
    changed(made.database, "CREATE SCHEMA other", "CREATE TABLE other.person AS SELECT * FROM cdm.person")
    assert '"cdm"."person"' in sqldeid.init(made.database, preset="omop54")  # the one with all tables
    changed(made.database, "CREATE SCHEMA third")
    for table in shared_schema("omop54").tables:
        changed(made.database, f"CREATE TABLE third.{table} AS SELECT * FROM cdm.{table}")
    with pytest.raises(JobError, match="there twice"):
        sqldeid.init(made.database, preset="omop54")
    assert '"third"."person"' in sqldeid.init(made.database, "third", preset="omop54")


def test_a_database_that_is_not_of_the_schema_is_refused(tmp_path: Path) -> None:
    made = demo.eicu(tmp_path / "h.duckdb", 20)
    with pytest.raises(JobError, match="no table person"):
        sqldeid.init(made.database, preset="omop54")


def test_init_prints_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = demo.eicu(tmp_path / "h.duckdb", 60)
    ran = run(capsys, "init", made.database, "--preset", "eicu", "--preset", "cms-11", "-o", tmp_path / "j.toml")
    assert ran.code == 0
    assert "vitalperiodic" in ran.out and "Reason:" in ran.out and "k = 11" in (tmp_path / "j.toml").read_text()
    assert re.search(r"change what is wrong, then:\s+sqldeid anonymize \S+ --job", ran.out)


def test_the_real_mimic_iii_demo(shared_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "real.duckdb"
    with duckdb.connect(path) as connection:
        for table in ("PATIENTS", "ADMISSIONS", "ICUSTAYS", "TRANSFERS", "DIAGNOSES_ICD", "SERVICES"):
            (file,) = (shared_data / "mimic3demo").glob(f"{table}.csv*")
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_csv('{file}')")
    text = sqldeid.init(path, preset="mimiciii")
    assert text == sqldeid.init(path)
    _, rows = released(path, text, tmp_path)
    assert rows.groupby(quasi(text), dropna=False).size().min() >= 5 and len(rows) >= 95
