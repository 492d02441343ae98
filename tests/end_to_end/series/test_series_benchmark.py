"""The preset `benchmark17` gives the mortality benchmark's own series, cell by cell; it releases on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from sqldeid import Options, anonymize, verify
from sqldeid.engine.opening import open_connection
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.job.series import Series
from sqldeid.series.benchmark import read_benchmark
from sqldeid.series.planning import plan
from tests.support.benchmark_series import PRESET, TEXT, demo, seeded
from tests.support.foreign import Foreign, bag, foreign, in_duckdb
from tests.support.foreign_series import told

__all__ = ["foreign"]


@pytest.fixture(scope="module")
def mimic(shared_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables that the preset reads, in the schema that mimic-code uses."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        for table in ("CHARTEVENTS.csv.gz", "LABEVENTS.csv.gz", "ICUSTAYS.csv", "ADMISSIONS.csv", "PATIENTS.csv"):
            types = TEXT if "EVENTS" in table else {}
            read = connection.read_csv(str(shared_data / "mimic3demo" / table), dtype=types)  # noqa: F841 - SQL reads it
            connection.execute(f"CREATE TABLE mimiciii.{table.split('.')[0]} AS SELECT * FROM read")
        yield connection


@pytest.mark.deep
def test_the_series_are_the_benchmarks_cell_by_cell(mimic: duckdb.DuckDBPyConnection, shared_data: Path) -> None:
    expected = pd.read_csv(
        shared_data / "mortality_benchmark" / "timeseries_long.csv.gz", dtype={"value": str}, keep_default_na=False
    )
    with open_connection(mimic) as engine:
        engine.begin()
        planned = plan("b", Series.model_validate(PRESET), engine, Path())
        variables, instants, persons = read_benchmark(planned, engine)
        found = mimic.execute(
            f"SELECT person AS icustay_id, variable_number, hours, word, value FROM {instants} "
            f"JOIN {persons} USING (person_number)"
        ).df()
    found["variable"] = [variables.names[i] for i in found.variable_number]
    for cells in (expected, found):
        cells["second"] = (cells.hours * 3600).round().astype(int)
    both = expected.merge(found, on=["icustay_id", "variable", "second"], suffixes=("", "_found"))
    assert len(expected) == len(found) == len(both) == 24_496
    assert both.icustay_id.nunique() == 57
    text = both.word.notna()
    assert text.sum() > 10_000
    assert (both.value[text] == both.word[text]).all()
    assert (both.value[~text].astype(float) == both.value_found[~text]).all()


def preset(**more: object) -> dict[str, object]:
    return {"release": {"into": "out.duckdb"}, "series": {"vitals": PRESET | more}}


@pytest.mark.deep
def test_labels_go_with_the_preset(mimic: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """They were dropped without a word; a table of labels that does not exist passed."""
    query = (
        "SELECT icustay_id, CAST(hospital_expire_flag AS INTEGER) AS died "
        "FROM mimiciii.icustays JOIN mimiciii.admissions USING (hadm_id)"
    )
    labels = {"source": {"query": query}, "person": "icustay_id", "column": "died"}
    found = anonymize(Job.parse(preset(labels=labels), folder=tmp_path), mimic).releases["vitals"]
    assert found.utility["persons"] == 57 and len(found.utility["settings"]) == 4
    again = Options(replace=True, without_ledger=True)
    with pytest.raises(JobError, match=r"labels\.source: there is no table or view nowhere"):
        anonymize(Job.parse(preset(labels=labels | {"source": "nowhere"}), folder=tmp_path), mimic, options=again)


@pytest.mark.parametrize(
    "wrong", [{"features": {"Temprature": []}, "perturb": {"method": "projection"}}, {"drop": ["Temprature"]}]
)
def test_a_variable_that_the_preset_does_not_have_is_refused_with_the_nearest(
    mimic: duckdb.DuckDBPyConnection, tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(JobError, match='there is no variable "Temprature"; did you mean "Temperature"'):
        anonymize(Job.parse(preset(**wrong), folder=tmp_path), mimic)


def test_the_preset_releases(mimic: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    job = Job.parse({"release": {"into": "out.duckdb"}, "series": {"vitals": PRESET}}, folder=tmp_path)
    found = anonymize(job, mimic).releases["vitals"]
    assert found.persons == 57 and found.k >= 5
    assert len(found.variables) == 17


@pytest.mark.deep
def test_the_preset_is_the_same_elsewhere(foreign: Foreign, shared_data: Path, tmp_path: Path) -> None:
    tables = demo(shared_data / "mimic3demo")
    for name, rows in tables.items():
        foreign.load(name, rows)
    file = in_duckdb(tmp_path / "mimic.duckdb", tables)
    there, here = (anonymize(seeded(), database).releases["vitals"] for database in (foreign.database, file))
    assert here.persons == 57 and here.released > 40
    with duckdb.connect(str(file)) as c:
        rows = c.execute("FROM preset.vitals").fetchall()
    assert bag(foreign.read("preset.vitals")) == bag(rows)
    assert repr(told(there)) == repr(told(here))
    assert verify(seeded(), foreign.database)["vitals"].to_dict() == verify(seeded(), file)["vitals"].to_dict()
    if foreign.name == "postgres":
        foreign.run('ALTER TABLE labevents RENAME COLUMN itemid TO "ITEMID"')
        with pytest.raises(JobError, match="the preset reads itemid, and labevents has ITEMID; rename it"):
            anonymize(seeded(), foreign.database, options=Options(replace=True, without_ledger=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"person": "subject_id"}, "series.v.person: the preset counts stays"),
        ({"source": "mimiciii.icustays"}, 'series.v.source: mimiciii.icustays has no column "charttime"'),
        ({"time": "charttime"}, "series.v.time: is fixed by the preset"),
        ({"source": {"query": "SELECT 1"}}, "series.v.source: with a preset: the name of the table CHARTEVENTS"),
    ],
)
def test_what_the_preset_fixes_is_refused(
    mimic: duckdb.DuckDBPyConnection, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(JobError) as raised:
        anonymize(
            Job.parse({"release": {"into": "x.duckdb"}, "series": {"v": PRESET | changes}}, folder=tmp_path), mimic
        )
    assert message in raised.value.message
