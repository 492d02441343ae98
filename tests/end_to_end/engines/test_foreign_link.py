"""Series that are linked to a table release, where they lie: both releases are those of DuckDB, and checked alike."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqldeid import Options, anonymize, verify
from sqldeid.errors import VerificationError
from tests.support.foreign import Foreign, bag, foreign, in_duckdb
from tests.support.foreign_series import told as told_of_series
from tests.support.foreign_tables import told as told_of_table
from tests.support.linked_foreign import LINKED, job, tables

__all__ = ["foreign"]

TABLES = ("people", "vitals")


@pytest.fixture(scope="module")
def source(foreign: Foreign) -> Foreign:
    for name, rows in tables().items():
        foreign.load(name, rows)
        if foreign.name == "postgres":
            foreign.run(f'ALTER TABLE {name} ALTER COLUMN stay TYPE TEXT COLLATE "und-x-icu"')
    return foreign


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_duckdb(tmp_path_factory.mktemp("linked") / "s.duckdb", tables())


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(LINKED)))
def test_both_releases_are_those_of_duckdb(source: Foreign, local: Path, number: int) -> None:
    schema = f"linked_{number}"
    wanted = job(schema, *LINKED[number])
    there, here = (anonymize(wanted, database).releases for database in (source.database, local))
    assert here["vitals"].released > 20
    with duckdb.connect(str(local)) as c:
        for name in TABLES:
            assert bag(source.read(f"{schema}.{name}")) == bag(c.execute(f"FROM {schema}.{name}").fetchall())
    assert told_of_table(there["people"]) == told_of_table(here["people"])
    assert repr(told_of_series(there["vitals"])) == repr(told_of_series(here["vitals"]))
    checked = [verify(wanted, database) for database in (source.database, local)]
    assert checked[0]["people"] == checked[1]["people"]
    assert checked[0]["vitals"].to_dict() == checked[1]["vitals"].to_dict()


TAMPERED = {
    "a series without a row": "DELETE FROM told.people WHERE person_number = 3",
    "a number twice": "UPDATE told.people SET person_number = 4 WHERE person_number = 3",
    "another class": "UPDATE told.people SET sex = CASE sex WHEN 'F' THEN 'M' ELSE 'F' END WHERE person_number = 3",
    "rows exchanged between classes": "UPDATE told.people SET person_number = CASE person_number WHEN 1 THEN {other} "
    "ELSE 1 END WHERE person_number IN (1, {other})",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", TAMPERED)
def test_releases_that_do_not_belong_together_are_seen(source: Foreign, what: str) -> None:
    wanted = job("told", *LINKED[1])
    anonymize(wanted, source.database, options=Options(replace=True, without_ledger=True))
    rows = {number: (age, sex) for number, age, sex, _ in source.read("told.people")}
    other = next(number for number in sorted(rows) if rows[number] != rows[1])
    source.run(TAMPERED[what].format(other=other))
    with pytest.raises(VerificationError, match=r"failed (its|their) re-check"):
        verify(wanted, source.database)
