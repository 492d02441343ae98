"""A date that no shift, cut or difference can take is refused by name: table, column, key of the job, and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid import Job, JobError, anonymize, verify
from tests.support.foreign import InPostgres, in_postgres
from tests.support.sources import INSENSITIVE, job, qi, release

SHIFT = {**INSENSITIVE, "shift": "person"}
FAR = {
    "DATE": {"duckdb": "5881580-07-09", "postgres": "5874897-12-31"},
    "TIMESTAMP": {"duckdb": "294247-01-10 04:00:54", "postgres": "294276-12-31 12:00:00"},
}
HOW = {"shifted": SHIFT, "shifted and cut": {**SHIFT, "to": "month"}}
USUAL = "CASE WHEN day BETWEEN '0001-01-01' AND '9999-12-31' THEN day END AS day"


def rows(engine: str, kind: str) -> str:
    """Persons of whom half have a date that is the last of its type, so that one is surely shifted beyond it."""
    made = "GENERATE_SERIES(0, 99) AS r(i)" if engine == "postgres" else "RANGE(100) AS r(i)"
    return (
        f"CREATE TABLE stays AS SELECT i AS id, CAST(i % 4 AS INTEGER) AS age, CAST(CASE i % 2 WHEN 1 THEN "
        f"'{FAR[kind][engine]}' ELSE '2020-01-02' END AS {kind}) AS day, CAST('2020-01-03' AS {kind}) AS over "
        f"FROM {made}"
    )


def wanted(how: str, source: Any = "stays") -> Job:
    columns = {"age": qi({"bands": [10]}), "day": HOW[how], "over": SHIFT}
    return job(stays=release(columns, source=source, k=3, person="id"))


def refused(asked: Job, database: Any) -> JobError:
    with pytest.raises(JobError) as raised:
        anonymize(asked, database)
    assert not any(value in raised.value.message for far in FAR.values() for value in far.values())
    return raised.value


def mended(how: str, database: Any) -> None:
    """What the message advises."""
    asked = wanted(how, {"query": f"SELECT id, age, {USUAL}, over FROM stays"})
    anonymize(asked, database)
    assert verify(asked, database)["stays"].released == 100


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as database:
        yield database


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", FAR)
def test_a_table(kind: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(rows("duckdb", kind))
    error = refused(wanted(how), path)
    assert error.key == "tables.stays.columns.day"
    assert "one of day, over" in error.message and USUAL in error.message
    mended(how, path)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", FAR)
def test_a_table_on_postgres(kind: str, how: str, server: InPostgres) -> None:
    server.run(rows("postgres", kind))
    error = refused(wanted(how), server.database)
    assert error.key == "tables.stays.columns.day" and USUAL in error.message
    mended(how, server.database)


def test_a_date_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(rows("duckdb", "DATE"))
    columns = {"age": qi({"bands": [10]}), "day": {**INSENSITIVE, "to": "month"}}
    error = refused(job(stays=release(columns, source="stays", k=3, person="id")), path)
    assert error.key == "tables.stays.columns.day" and "day has a date" in error.message


SERIES = {"source": "charted", "person": "id", "time": "at", "variable": "item", "value": "value"}
CHARTED = (
    "CREATE TABLE charted AS SELECT i % 20 AS id, CAST(CASE i WHEN 7 THEN '{far}' ELSE '2020-01-02 03:00:00' END AS "
    "TIMESTAMP) + i / 20 * INTERVAL '1 hour' AS at, 1 AS item, CAST(60 + i % 9 AS FLOAT8) AS value FROM {made}"
)


def charted() -> Job:
    part = {**SERIES, "variables": {"HR": {"items": [1]}}, "durations": {"k": 3}, "privacy": {"k": 3}}
    return Job.parse({"series": {"vitals": part}})


def test_series(tmp_path: Path) -> None:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        made = "RANGE(400) AS r(i)"
        c.execute(CHARTED.replace("i / 20", "i // 20").format(far="290308-12-22 (BC) 00:00:00", made=made))
    error = refused(charted(), path)
    assert error.key == "series.vitals.time"
    assert "at has a date or time" in error.message and "BETWEEN '0001-01-01' AND '9999-12-31'" in error.message


def test_series_on_postgres(server: InPostgres) -> None:
    server.run(CHARTED.format(far="4713-01-01 00:00:00 BC", made="GENERATE_SERIES(0, 399) AS r(i)"))
    assert refused(charted(), server.database).key == "series.vitals.time"


EVENTS = {"source": "moves", "object": "id", "time": "at", "state": "ward", "gap_hours": 48, "attacks": False}


@pytest.mark.parametrize("far", ["294276-12-31 12:00:00", "4713-01-01 00:00:00 BC", "infinity"])
def test_events_leave_them_out_and_say_so(far: str, server: InPostgres) -> None:
    server.run(
        f"CREATE TABLE moves AS SELECT i / 5 AS id, CASE i WHEN 7 THEN CAST('{far}' AS TIMESTAMP) ELSE TIMESTAMP "
        "'2020-01-01' + i * INTERVAL '1 hour' END AS at, 'w' || i % 3 AS ward FROM GENERATE_SERIES(0, 499) AS r(i)"
    )
    made = anonymize(Job.parse({"events": {"x": {**EVENTS, "privacy": {"method": "none"}}}}), server.database)
    assert any("1 row is left out" in text for text in made.releases["x"].warnings)
