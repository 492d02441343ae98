"""The preset `benchmark17` gives the mortality benchmark's own series, cell by cell, from SQL; and it releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from sqldeid import anonymize
from sqldeid.engine.opening import open_connection
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.job.series import Series
from sqldeid.series.benchmark import read_benchmark
from sqldeid.series.plan import plan

TEXT = {"value": "VARCHAR", "valueuom": "VARCHAR"}
PRESET = {
    "preset": "benchmark17",
    "source": "mimiciii.chartevents",
    "person": "icustay_id",
    "durations": {"k": 10},
    "privacy": {"k": 5},
}


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


def test_the_preset_releases(mimic: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    job = Job.parse({"release": {"into": "out.duckdb"}, "series": {"vitals": PRESET}}, folder=tmp_path)
    found = anonymize(job, mimic).releases["vitals"]
    assert found.persons == 57 and found.k >= 5
    assert len(found.variables) == 17


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
