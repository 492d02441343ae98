"""A view in DuckDB is no other table: a release of it can be compared with one of the table that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support.changing import TABLE

REFUSED = r"tables\.r: the release that is there is not added to: it has other rows of the same tables"
NO_PERSON = {**{name: part for name, part in TABLE.items() if name != "person"}, "rows_are_persons": True}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path, rows = tmp_path / "source.duckdb", tmp_path / "rows.parquet"
    with duckdb.connect(str(path)) as c:
        for statement in (
            "CREATE TABLE people AS SELECT n AS id, CAST(20 + n % 3 AS INTEGER) AS age, 'a' AS ward "
            "FROM range(1, 12) r(n)",
            "CREATE SCHEMA made",
            "CREATE VIEW made.inner_view AS WITH w AS (SELECT * FROM main.people WHERE id <> 7) FROM w",
            "CREATE VIEW most AS SELECT * FROM made.inner_view",
            "CREATE VIEW every AS SELECT * FROM people",
            "CREATE VIEW renamed AS SELECT id AS pid, age, ward FROM people",
            "CREATE VIEW renamed_most AS SELECT * FROM renamed WHERE pid <> 7",
            "CREATE MACRO but(n) AS TABLE SELECT * FROM people WHERE id <> n",
            "CREATE VIEW called AS SELECT * FROM but(7)",
            "CREATE TABLE visits AS SELECT * FROM people WHERE id > 3",
            "CREATE VIEW of_staff AS SELECT v.id AS pid, age, v.ward FROM visits AS v",
            "CREATE VIEW some_visits AS SELECT v.* FROM visits AS v, range(1) AS r(n)",
            f"COPY people TO '{rows}' (FORMAT parquet)",
            f"CREATE VIEW filed AS SELECT * FROM '{rows}'",
            f"CREATE VIEW filed_most AS SELECT * FROM read_parquet('{rows}') WHERE id <> 7",
        ):
            c.execute(statement)
    return path


def released(source: str, name: str, path: Path, person: str = "id", **options: Any) -> None:
    table = {**TABLE, "source": source, "person": person}
    asked = {"release": {"into": str(path.parent / "out.duckdb")}, "tables": {name: table}}
    with duckdb.connect(str(path)) as c:
        sqldeid.anonymize(sqldeid.Job.parse(asked), c, options=sqldeid.Options(replace=True, only=(name,), **options))


@pytest.mark.parametrize(
    ("here", "there"), [("people", "most"), ("most", "people"), ("people", "called"), ("filed", "filed_most")]
)
def test_of_two_jobs_the_second_is_refused(source: Path, here: str, there: str) -> None:
    released(here, "r", source)
    with pytest.raises(JobError, match=REFUSED):
        released(there, "s", source)
    released(there, "s", source, without_ledger=True)


def test_a_key_of_another_name_makes_no_other_persons(source: Path) -> None:
    """Whether the view calls it so in the first run or in the second; all persons, or those of another table, may."""
    released("people", "r", source)
    released("renamed", "t", source, person="pid")
    released("of_staff", "u", source, person="pid")
    with pytest.raises(JobError, match=REFUSED):
        released("renamed_most", "s", source, person="pid")
    released("renamed_most", "s", source, person="pid", without_ledger=True)
    with pytest.raises(JobError, match=REFUSED.replace("r:", "s:")):
        released("people", "q", source)


@pytest.mark.parametrize(("here", "there"), [("people", "every"), ("people", "some_visits"), ("filed", "some_visits")])
def test_the_same_rows_and_those_of_another_table_go_together(source: Path, here: str, there: str) -> None:
    released(here, "r", source)
    released(there, "s", source)


def test_in_one_run_rows_are_told_apart_without_a_person_key(source: Path) -> None:
    asked = {"tables": {name: {"source": table, **NO_PERSON} for name, table in (("r", "people"), ("q", "most"))}}
    with pytest.raises(JobError, match=r"tables\.r: beside tables\.q, .* whoever is given them can subtract"):
        sqldeid.anonymize(sqldeid.Job.parse(asked), source)
