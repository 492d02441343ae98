"""Dates that give away the secret shift of others: a stranger's attack finds every shift; such releases are refused.

The attack joins two tables, as whoever is given both does. That it succeeds is shown on releases of which the job says
that nobody is given both (`never_with`), or the holder that nobody was ever given the first (`--without-ledger`).
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.run import Options, anonymize
from tests.support.files import write
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

PERSONS, SHARED = 60, 3
"""Of a ward there are `SHARED` persons, who all came on one day, and were seen by the laboratory on it."""
SOURCE = f"""CREATE TABLE stays AS
    SELECT i AS id, i // {SHARED} AS ward,
           CAST(DATE '2019-03-01' + CAST(i // {SHARED} * 11 AS INTEGER) AS DATE) AS came,
           TIMESTAMP '2019-03-01 00:00:00' + INTERVAL ((i // {SHARED}) * 11) DAY + INTERVAL (i * 7) MINUTE AS lab,
           TIMESTAMP '2019-03-05 12:00:00' + INTERVAL (i * 17) DAY AS gone, i AS true_row
    FROM RANGE({PERSONS}) AS r(i)"""
SHIFT = {**INSENSITIVE, "shift": "person"}
SHIFTED = {"id": IDENTIFYING, "ward": qi(), "lab": SHIFT, "gone": {**SENSITIVE, "shift": "person"}}
DATES = qi({"dates": ["month", "year"]})
DAY = "CAST(told AS DATE)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    write(path, SOURCE)
    return path


def shifted(**columns: object) -> dict[str, object]:
    """A release with shifted dates; `true_row` lets the test tell whose row it is."""
    return release({**SHIFTED, "true_row": INSENSITIVE, **columns}, source="stays", k=SHARED, person="id")


def telling(role: dict[str, object], value: str = "came", method: str = "frontier") -> dict[str, object]:
    """A release of the same persons, in which the day on which k of a ward came is told."""
    columns = {"id": IDENTIFYING, "ward": qi(), "told": role}
    query = {"query": f"SELECT id, ward, {value} AS told FROM stays"}
    return release(columns, source=query, k=SHARED, person="id", search={"method": method})


def attack(source: Path, day: str = DAY, told: str = "release.telling", moved: str = "release.shifted") -> int:
    """How many persons' true discharges come out, where a stranger reads by `day` when all of a ward came."""
    with duckdb.connect(str(source)) as c:
        days = dict(c.execute(f"SELECT ward, MAX({day}) FROM {told} GROUP BY ward").fetchall())
        rows = c.execute(f"SELECT ward, CAST(lab AS DATE), gone, true_row FROM {moved}").fetchall()
        truth = dict(c.execute("SELECT true_row, gone FROM stays").fetchall())
    return sum(gone - (lab - days[ward]) == truth[row] for ward, lab, gone, row in rows)


TELLING = {
    "insensitive": (telling(INSENSITIVE), DAY),
    "sensitive": (telling(SENSITIVE), DAY),
    "quasi-identifying, shared by k": (telling(DATES), DAY),
    "a moment, shared by k": (telling(DATES, "CAST(came AS TIMESTAMP)"), DAY),
    "by local recoding": (telling(DATES, method="local"), DAY),
    "median of a class": (telling(qi({"aggregate": "median"})), DAY),
    "mean of a class": (telling(qi({"aggregate": "mean"})), DAY),
    "mode of a class": (telling(qi({"aggregate": "mode"})), DAY),
    "in a list": (telling(INSENSITIVE, "[came]"), "told[1]"),
    "in a struct": (telling(INSENSITIVE, "{'seen': came}"), "told.seen"),
    "in a map": (telling(INSENSITIVE, "MAP {'a': CAST(came AS TIMESTAMP)}"), "CAST(told['a'] AS DATE)"),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", TELLING)
def test_what_tells_the_day_gives_every_shift_away(kind: str, source: Path) -> None:
    part, day = TELLING[kind]
    anonymize(job({}, shifted=shifted(), telling={**part, "never_with": ["shifted"]}), source)
    assert attack(source, day) == PERSONS
    with pytest.raises(JobError) as refused:
        anonymize(job({"schema": "both"}, shifted=shifted(), telling=part), source)
    assert refused.value.key == "tables.telling.columns.told" and "tables.shifted.columns.lab" in refused.value.message
    assert "source query" in refused.value.message and "2019" not in refused.value.message.replace("2020", "")
    with duckdb.connect(str(source)) as c:
        assert c.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'both'").fetchall() == [(0,)]


@pytest.mark.parametrize("told", ["insensitive", "quasi-identifying, shared by k"])
@pytest.mark.parametrize("first", ["telling", "shifted"])
def test_two_runs_are_refused_as_one_is(told: str, first: str, source: Path) -> None:
    """The second goes where the first is; nobody else can know of both."""
    parts = {"shifted": shifted(), "telling": TELLING[told][0]}
    second = next(name for name in parts if name != first)
    anonymize(job({}, **{first: parts[first]}), source)
    again = job({}, **{second: parts[second]})
    with pytest.raises(JobError, match=r"tables\.(telling|shifted)\.columns\.") as refused:
        anonymize(again, source)
    assert refused.value.key.startswith(f"tables.{second}.columns.")
    anonymize(again, source, options=Options(without_ledger=True))
    assert attack(source) == PERSONS


def test_a_release_that_is_replaced_was_perhaps_given_out(source: Path) -> None:
    true = shifted(lab=INSENSITIVE, gone=SENSITIVE)
    anonymize(job({}, shifted=true), source)
    with pytest.raises(JobError, match="without-ledger") as refused:
        anonymize(job({}, shifted=shifted()), source, options=Options(replace=True))
    assert refused.value.key == "tables.shifted.columns.lab"
    anonymize(job({}, shifted=shifted()), source, options=Options(replace=True, without_ledger=True))
    anonymize(job({}, shifted=shifted()), source, options=Options(replace=True))  # shifted both times
    with pytest.raises(JobError, match="without-ledger"):
        anonymize(job({}, shifted=true), source, options=Options(replace=True))


def test_other_persons_and_who_is_given_both(source: Path) -> None:
    """Neither the dates of others, nor what nobody is given beside it, tell a shift."""
    write(source, "CREATE TABLE staff AS SELECT id AS nurse, came AS told, ward FROM stays")
    columns = {"nurse": IDENTIFYING, "ward": qi(), "told": INSENSITIVE}
    others = release(columns, source="staff", k=SHARED, person="nurse")
    anonymize(job({}, shifted=shifted(), telling=others), source)
    anonymize(job({"schema": "one"}, telling=others), source)
    anonymize(job({"schema": "one"}, shifted=shifted()), source)
    apart = {"shifted": shifted(), "telling": {**telling(DATES), "never_with": ["shifted"]}}
    for name in apart:
        anonymize(job({"schema": "two"}, **apart), source, options=Options(only=(name,)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("role", [DATES, qi({"dates": ["day"]}), qi("days.csv"), qi()])
def test_a_date_that_k_share_beside_shifted_ones_is_refused(
    role: dict[str, object], method: str, source: Path, tmp_path: Path
) -> None:
    days = [f"2019-{m:02d}-{d:02d};2019-{m:02d};*" for m in range(3, 11) for d in range(1, 32)]
    (tmp_path / "days.csv").write_text("\n".join(days))
    with pytest.raises(JobError, match="finer than years beside lab") as refused:
        anonymize(_within(role, method, tmp_path), source)
    assert refused.value.key == "tables.shifted.columns.came"


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_its_year_is_told(method: str, source: Path, tmp_path: Path) -> None:
    """Where nobody shares a day, k persons share the year: half of the shifts are left."""
    write(source, "UPDATE stays SET came = DATE '2019-01-01' + CAST(id * 6 AS INTEGER), ward = 0")
    made = anonymize(_within(qi({"dates": ["year"]}), method, tmp_path), source).releases["shifted"]
    assert any("columns.came: is a date that is generalised but not shifted" in w for w in made.warnings)
    with duckdb.connect(str(source)) as c:
        assert c.execute("SELECT DISTINCT came FROM release.shifted").fetchall() == [("2019",)]


def _within(role: dict[str, object], method: str, folder: Path) -> Job:
    columns = {"id": IDENTIFYING, "ward": qi(), "came": role, "lab": SHIFT}
    part = release(columns, source="stays", k=SHARED, person="id", search={"method": method})
    return job({}, folder, shifted=part)


@pytest.mark.parametrize("statistic", ["median", "mean", "mode", "interval"])
@pytest.mark.parametrize("grid", ["day", "week"])
def test_a_statistic_of_dates_beside_shifted_ones_is_refused(statistic: str, grid: str, source: Path) -> None:
    with pytest.raises(JobError, match="as a statistic of its class beside lab"):
        anonymize(_within(qi({"aggregate": statistic, "grid": grid}), "frontier", source.parent), source)


def test_ranges_of_mondrian_are_refused_beside_shifted_dates(source: Path) -> None:
    columns = {"id": IDENTIFYING, "came": qi({"median": "range"})}
    parts = release(columns, source="stays", k=SHARED, person="id", search={"method": "mondrian"})
    with pytest.raises(JobError) as refused:
        anonymize(job({}, shifted=shifted(), parts=parts), source)
    assert refused.value.key == "tables.parts.columns.came"
