"""`init` knows a long table of measurements, and offers its release as time series in comments that run as they are."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.job import Job
from sqldeid.series.result import SeriesRelease

OFFERED = "# [series."


def taken_in(text: str) -> str:
    """The job with the offered lines in the place of its table."""
    head, _, rest = text.partition("[tables.")
    lines = rest[rest.index(OFFERED) :].rstrip("\n").split("\n")
    assert all(line.startswith("# ") for line in lines)
    return head + "\n".join(line.removeprefix("# ") for line in lines)


def written(path: Path, columns: str, table: str = "vital signs") -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f'CREATE TABLE "{table}" AS SELECT {columns} FROM RANGE(6_000) AS r(i)')
    return path


MEASURED = {
    "a timestamp": "TIMESTAMP '2030-01-01' + to_hours(i // 300) AS charttime, 'v' || i % 3 AS parameter",
    "minutes": "60 * (i // 300) AS observationoffset, 'v' || i % 3 AS labname",
    "hours": "CAST(i // 300 AS DOUBLE) AS hours, i % 3 AS itemid",
}


@pytest.mark.parametrize("how", MEASURED)
def test_what_is_offered_runs_as_it_is(tmp_path: Path, how: str) -> None:
    columns = f"i // 3 % 100 AS patient_id, {MEASURED[how]}, CAST(60 + hash(i) % 40 AS DOUBLE) AS value"
    source = written(tmp_path / "s.duckdb", columns)
    text = taken_in(sqldeid.init(source))
    asked = tomllib.loads(text)["series"]["vital signs"]
    assert asked.get("time_unit") == (how if how in ("minutes", "hours") else None)
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    job = Job.load(tmp_path / "job.toml")
    released = sqldeid.anonymize(job, source).releases["vital signs"]
    assert isinstance(released, SeriesRelease) and released.persons >= 95
    sqldeid.verify(job, source)


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\n[tables.x]", "'''", "\\", " # x", "\x1b[31m"])
def test_a_name_may_hold_what_ends_a_line_a_text_or_a_comment(tmp_path: Path, end: str) -> None:
    columns = {"patient_id ": "i // 3 % 100", "hours ": "i // 300", "item ": "'v' || i % 3", "value ": "60 + i % 40"}
    asked = ", ".join(f'{of} AS "{name}{end}"' for name, of in columns.items())
    source = written(tmp_path / "s.duckdb", asked, f"select {end}")
    (tmp_path / "job.toml").write_text(taken_in(sqldeid.init(source)), encoding="utf-8", newline="")
    job = Job.load(tmp_path / "job.toml")
    sqldeid.anonymize(job, source)
    sqldeid.verify(job, source)


@pytest.mark.parametrize(
    "columns",
    [
        "i // 3 % 100 AS patient_id, 'v' || i % 3 AS parameter, 60 + i % 40 AS value",  # no time
        "i // 3 % 100 AS patient_id, i // 300 AS hours, 60 + i % 40 AS value",  # no variable
        "i // 3 % 100 AS patient_id, i // 300 AS hours, 'v' || i AS parameter, 60 + i % 40 AS value",  # one a row
        "i // 3 % 100 AS patient_id, i // 300 AS hours, 'v' || i % 3 AS parameter, 'w' || i % 9 AS value",  # text
        "i AS patient_id, i // 300 AS hours, 'v' || i % 3 AS parameter, 60 + i % 40 AS value",  # a row a person
        "i // 3 % 100 AS patient_id, i // 300 AS test_minutes, 60 + i % 40 AS value",  # one column for two
    ],
)
def test_other_tables_are_not_taken_for_measurements(tmp_path: Path, columns: str) -> None:
    assert OFFERED not in sqldeid.init(written(tmp_path / "s.duckdb", columns))


def test_more_items_than_a_job_reads_get_a_map(tmp_path: Path) -> None:
    columns = "i // 3 % 100 AS subject_id, i // 300 AS hours, i % 600 AS itemid, i % 7 AS value, i / 10 AS valuenum"
    asked = tomllib.loads(taken_in(sqldeid.init(written(tmp_path / "s.duckdb", columns))))["series"]["vital signs"]
    assert (asked["variables"], asked["value"], asked["person"]) == ("mimic3/vitals", "valuenum", "subject_id")


@pytest.mark.deep
def test_real_measurements_are_released_as_offered(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "physionet2012" / "set-a.parquet"
    (tmp_path / "job.toml").write_text(taken_in(sqldeid.init(source)), encoding="utf-8")
    released = sqldeid.anonymize(Job.load(tmp_path / "job.toml"), source).releases["set-a"]
    assert isinstance(released, SeriesRelease) and released.persons > 3_900
