"""Series that are linked to a table release, where they lie: both releases are those of DuckDB, and checked alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from sqldeid import Options, anonymize, verify
from sqldeid.errors import VerificationError
from sqldeid.job import Job
from tests.end_to_end.engines.test_foreign import told as told_of_table
from tests.end_to_end.engines.test_foreign_series import told as told_of_series
from tests.end_to_end.series.test_series_link import CHOICES, SERIES, STAYS, TABLE, charted, people
from tests.support.foreign import Foreign, bag, foreign, in_duckdb

__all__ = ["foreign"]

KEYS = "aBäC"
LINKED = [
    (table, series) for number, (table, series) in enumerate(CHOICES) if number in (0, 2, 3)
]  # as they are, l-diversity, t-closeness
TABLES = ("people", "vitals")


def tables() -> dict[str, pa.Table]:
    """Persons and their series by keys of text, which a language sorts otherwise than bytes."""
    frames = {"stays": people(range(STAYS), 6), "charted": charted(range(20, STAYS + 20), 5)}
    return {name: keyed(frame) for name, frame in frames.items()}


def keyed(frame: pd.DataFrame) -> pa.Table:
    texts = {name: frame[name].astype(object) for name in ("sex", "died") if name in frame}
    keys = [f"{KEYS[stay % 4]}{stay}" for stay in frame.stay]
    return pa.Table.from_pandas(frame.assign(stay=pd.Series(keys, dtype=object), **texts), preserve_index=False)


def job(schema: str, table: dict[str, Any], series: dict[str, Any]) -> Job:
    asked = {"people": {**TABLE, **table}}
    followed = {"vitals": {**SERIES, "perturb": {"seed": 5}, **series}}
    return Job.parse({"release": {"schema": schema}, "tables": asked, "series": followed})


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


@pytest.mark.parametrize("what", TAMPERED)
def test_releases_that_do_not_belong_together_are_seen(source: Foreign, what: str) -> None:
    wanted = job("told", *LINKED[1])
    anonymize(wanted, source.database, options=Options(replace=True, without_ledger=True))
    rows = {number: (age, sex) for number, age, sex, _ in source.read("told.people")}
    other = next(number for number in sorted(rows) if rows[number] != rows[1])
    source.run(TAMPERED[what].format(other=other))
    with pytest.raises(VerificationError, match=r"failed (its|their) re-check"):
        verify(wanted, source.database)
