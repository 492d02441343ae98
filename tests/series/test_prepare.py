"""Preparing series in SQL equals the same done record by record in plain Python, for both ways to resample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import open_connection
from sqldeid.job.series import Series
from sqldeid.series.planning import plan
from sqldeid.series.prepare import prepare
from tests.support.sources import insert

pytestmark = pytest.mark.duckdb14

VARIABLES = {
    "HR": {"items": ["hr"], "low": 20, "high": 300},
    "BP": {"items": ["invasive", "cuff"], "low": 30, "high": 300},
    "T": {"items": ["temp"], "low": 25, "high": 45, "repair": "fahrenheit"},
    "W": {"items": ["pounds"], "factor": 0.45359237},
}
Record = tuple[int, float, str, float]


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with duckdb.connect() as connection, open_connection(connection) as found:
        found.begin()
        yield found


def records(rng: np.random.Generator) -> list[Record]:
    """Unsorted, with duplicates, equal times, infinities, implausible values, and persons of one record."""
    made = []
    for person in range(int(rng.integers(2, 8))):
        for _ in range(int(rng.integers(1, 40))):
            item = str(rng.choice(["hr", "invasive", "cuff", "temp", "pounds", "unknown"]))
            value = float(rng.choice([rng.uniform(30, 120), 37.0, 98.6, np.inf, -np.inf, np.nan, 1e12, -1.0]))
            made.append((person, float(rng.integers(-3, 30) * 20 + rng.choice([0, 0, 7])), item, round(value, 3)))
    made += made[:3]
    rng.shuffle(made)
    return [(int(p), float(m), str(i), float(v)) for p, m, i, v in made]


def by_hand(rows: list[Record], resample: str, step: float) -> dict[tuple[int, str], dict[int, float]]:
    """(person, variable) → step → value."""
    kept: dict[tuple[int, str, float], tuple[int, float]] = {}
    for person, minute, item, value in rows:
        for name, v in VARIABLES.items():
            if item in v["items"]:
                x = value * v.get("factor", 1)
                x = (x - 32) * 5 / 9 if v.get("repair") and x > 85 else x
                place = -v["items"].index(item)
                if v.get("low", -1e9) <= x <= v.get("high", 1e9):
                    kept[person, name, minute] = max(kept.get((person, name, minute), (-9, 0.0)), (place, x))
    origin: dict[int, float] = {}
    for person, _, minute in kept:
        origin[person] = min(origin.get(person, math.inf), minute)
    points: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for (person, name, minute), (_, x) in sorted(kept.items()):
        points.setdefault((person, name), []).append(((minute - origin[person]) / 60 / step, x))
    if resample == "mean":
        points = {key: means(found) for key, found in points.items()}
    return {key: line(found) for key, found in points.items()}


def means(found: list[tuple[float, float]]) -> list[tuple[float, float]]:
    bins: dict[float, list[float]] = {}
    for at, x in found:
        bins.setdefault(math.floor(at), []).append(x)
    return sorted((at, sum(v) / len(v)) for at, v in bins.items())


def line(found: list[tuple[float, float]]) -> dict[int, float]:
    at, x = zip(*sorted(found), strict=True)
    steps = range(math.ceil(at[0]), math.floor(at[-1]) + 1)
    return {h: float(np.interp(h, at, x)) for h in steps}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("resample", ["mean", "point"])
def test_series_equal_those_made_by_hand(
    engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, seed: int, resample: str
) -> None:
    """All persons at once, and a few records at a time."""
    monkeypatch.setattr("sqldeid.series.prepare.AT_ONCE", (8_000_000, 30)[seed % 2])
    rng = np.random.default_rng(seed)
    rows, step = records(rng), [1, 0.5, 2.5][seed % 3]
    engine.connection.execute("CREATE OR REPLACE TABLE m (stay INTEGER, minute DOUBLE, item VARCHAR, value DOUBLE)")
    insert(engine.connection, "m", rows)
    engine.refresh()
    asked = {
        **{"source": "m", "person": "stay", "time": "minute", "time_unit": "minutes", "variable": "item"},
        **{"value": "value", "variables": VARIABLES, "step_hours": step, "resample": resample},
        **{"durations": {"k": 1}, "privacy": {"k": 1}},
    }
    wanted = {key: found for key, found in by_hand(rows, resample, step).items() if found}
    found = prepare(plan("m", Series.model_validate(asked), engine, Path()), engine)
    got: dict[tuple[int, str], dict[int, float]] = {}
    for person, variable, position, value in engine.connection.execute(
        f"SELECT p.person, s.variable_number, s.position, s.value FROM {found.series} AS s "
        f"JOIN {found.persons} AS p USING (person_number)"
    ).fetchall():
        got.setdefault((person, found.variables.names[variable]), {})[position] = value
    assert got.keys() == wanted.keys()
    for key, series in wanted.items():
        assert got[key] == pytest.approx(series, abs=2e-6), key
    lengths = {p: 1 + max(max(s) for (q, _), s in wanted.items() if q == p) for p, _ in wanted}
    assert sorted(lengths.values()) == sorted(found.length.tolist())


def test_timestamps_cohorts_and_short_series(engine: DuckDBEngine) -> None:
    engine.connection.execute(
        """CREATE OR REPLACE TABLE t AS
           SELECT i % 4 AS stay, TIMESTAMP '2150-01-01' + INTERVAL 30 MINUTE * (i // 4) AS at, 'HR' AS item,
                  CAST(60 + i AS INTEGER) AS value
           FROM RANGE(40) AS r(i) WHERE NOT (i % 4 = 3 AND i > 8);
           CREATE OR REPLACE TABLE stays AS SELECT i AS stay, i // 2 AS patient, -i AS started, 20 * i AS age
           FROM RANGE(6) AS r(i)"""
    )
    engine.refresh()

    def persons(**more: object) -> list[int]:
        asked = {
            **{"source": "t", "person": "stay", "time": "at", "variable": "item", "value": "value"},
            **{"durations": {"k": 1}, "privacy": {"k": 1}, **more},
        }
        found = prepare(plan("t", Series.model_validate(asked), engine, Path()), engine)
        rows = engine.connection.execute(f"SELECT person, person_number FROM {found.persons}").fetchall()
        return sorted(person for person, number in rows if number in found.person_number)

    cohort = {"source": "stays", "person": "stay"}
    assert persons() == [0, 1, 2, 3]
    assert persons(min_steps=5) == [0, 1, 2]
    assert persons(cohort=cohort | {"where": "age >= 18"}) == [1, 2, 3]
    assert persons(cohort=cohort | {"first_of": "patient", "order": "started"}) == [1, 3]
    assert persons(where="stay <> 2", cohort=cohort) == [0, 1, 3]
