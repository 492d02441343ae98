"""Records of nobody, whose person key is NULL, are left out of series and events; their number is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.job import Job
from tests.support.charted_series import BASE, charted
from tests.support.events import kind_c, laplace

STEPS = """CREATE TABLE steps AS
             SELECT i AS row_id, i // 6 AS subject_id, i // 6 AS hadm_id, i % 6 AS ticket_id_seq,
                    'c' || (i * i) % 5 AS cpt_cd FROM RANGE(600) AS r(i)"""


def warnings(job: dict[str, Any], *changes: str) -> list[str]:
    with duckdb.connect() as c:
        c.register("frame", charted())
        c.execute("CREATE TABLE charted AS FROM frame")
        c.execute(STEPS)
        for change in changes:
            c.execute(change)
        [release] = sqldeid.anonymize(Job.parse(job), c).releases.values()
        return [w for w in release.warnings if "nobody's" in w or "left out" in w]


def test_series() -> None:
    job = {"series": {"vitals": dict(BASE)}}
    assert warnings(job) == []
    lost = "INSERT INTO charted SELECT NULL, minute, item, value FROM charted WHERE stay = 3 LIMIT {}"
    assert warnings(job, lost.format(1)) == [
        "series.vitals.person: 1 row has no stay: they are nobody's, and not released"
    ]
    told = ["series.vitals.person: 2 rows have no stay: they are nobody's, and not released"]
    assert warnings(job, lost.format(2)) == told
    job["series"]["vitals"]["where"] = "stay IS NOT NULL"
    assert warnings(job, lost.format(2)) == []


def test_series_without_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqldeid.series.prepare.AT_ONCE", 200)
    job = {"series": {"vitals": dict(BASE)}}
    lost = "INSERT INTO charted SELECT stay, NULL, item, value FROM charted WHERE stay = 3 LIMIT {}"
    nobody = "INSERT INTO charted (item) VALUES (1)"
    told = "series.vitals.time: {} no minute, or an infinite one: left out"
    assert warnings(job, lost.format(1)) == [told.format("1 row has")]
    assert warnings(job, lost.format(2)) == [told.format("2 rows have")]
    assert warnings(job, lost.format(2), nobody)[1:] == [told.format("2 rows have")], "rows of nobody are counted once"
    moments = "SELECT * REPLACE (TIMESTAMP '2020-01-01' + minute * INTERVAL 1 MINUTE AS minute) FROM charted"
    dated = {k: v for k, v in BASE.items() if k != "time_unit"} | {"source": "dated"}
    endless = "INSERT INTO dated SELECT stay, TIMESTAMP 'infinity', item, value FROM dated LIMIT 3"
    made = f"CREATE TABLE dated AS {moments}"
    assert warnings({"series": {"vitals": dated}}, made, endless) == [told.format("3 rows have")]


def test_rows_of_a_wide_table_are_counted_once() -> None:
    made = "CREATE TABLE wide AS SELECT stay, minute, value AS hr, value + 1 AS bp FROM charted"
    part = {k: v for k, v in BASE.items() if k not in ("variable", "value", "variables")}
    job = {"series": {"vitals": part | {"source": "wide", "wide": {"hr": "HR", "bp": "BP"}}}}
    lost = "INSERT INTO wide VALUES (NULL, 1, 2, 3), (3, NULL, 2, 3)"
    assert warnings(job, made, lost) == [
        "series.vitals.person: 1 row has no stay: they are nobody's, and not released",
        "series.vitals.time: 1 row has no minute, or an infinite one: left out",
    ]


def test_series_that_are_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqldeid.series.prepare.AT_ONCE", 200)
    lost = "INSERT INTO charted SELECT NULL, minute, item, value FROM charted WHERE stay = 3 LIMIT 2"
    assert len(warnings({"series": {"vitals": dict(BASE)}}, lost)) == 1


@pytest.mark.parametrize("method", ["none", "laplace"])
def test_events(method: str, tmp_path: Path) -> None:
    states = tmp_path / "states.csv"
    states.write_text("cpt_cd\n" + "".join(f"c{i}\n" for i in range(5)))
    privacy = laplace(states, timed=False) if method == "laplace" else {"method": method}
    job = {"events": {"x": kind_c(source="steps", attacks=False, privacy=privacy)}}
    assert warnings(job) == []
    key = job["events"]["x"]["object"]
    lost = f"UPDATE steps SET {key} = NULL WHERE row_id < 12"
    assert warnings(job, lost) == [f"events.x.object: 12 rows have no {key}: they are nobody's, and not used"]
