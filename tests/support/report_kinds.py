"""Releases of series and events for reports."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

import sqldeid
from tests.support.events import WARD_STATES, kind_t, laplace, transfers
from tests.support.pages import ALERT
from tests.support.sources import insert

PERSON, MINUTE, STAYS = 770_000_000, 880_000_000, 60


"""Far from any count: who sees them sees a person's number, or a time."""


def charted() -> duckdb.DuckDBPyConnection:
    """Heart rates of stays that are 4 to 9 hours long, and one that is much longer; half of them end in death."""
    rng = np.random.default_rng(3)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE charted (stay BIGINT, minute BIGINT, item VARCHAR, value DOUBLE)")
    connection.execute("CREATE TABLE deaths (stay BIGINT, died BOOLEAN)")
    for stay in range(STAYS):
        hours = int(rng.integers(4, 10)) if stay else 40
        rows = [[PERSON + stay, MINUTE + 60 * h, ALERT, 80 + 9 * rng.normal()] for h in range(hours)]
        insert(connection, "charted", rows)
        connection.execute("INSERT INTO deaths VALUES (?, ?)", [PERSON + stay, stay % 2 == 0])
    return connection


def series(method: str) -> sqldeid.Result:
    part = {
        **{"source": "charted", "person": "stay", "time": "minute", "time_unit": "minutes", "variable": "item"},
        **{"value": "value", "variables": {ALERT: {"items": [ALERT]}}, "durations": {"k": 6}, "privacy": {"k": 4}},
        **{"perturb": {"method": method}, "labels": {"source": "deaths", "person": "stay", "column": "died"}},
    }
    return sqldeid.anonymize(sqldeid.Job.parse({"series": {ALERT.replace("/", "|"): part}}), charted())


def events(method: str, folder: Path) -> sqldeid.Result:
    (folder / "wards.txt").write_text("\n".join(WARD_STATES), encoding="utf-8")
    connection = transfers(70)
    connection.execute(f"UPDATE e SET subject_id = subject_id + {PERSON}")
    # At so few objects less than this may, by chance, leave nothing to release, and then there is no chart.
    private = (
        laplace(folder / "wards.txt", epsilon=20.0) if method == "laplace" else {"method": "ratio", "epsilon": 1.0}
    )
    part = kind_t(privacy=private, clusters={"hashes": 10}, gap_hours="auto")
    if method == "laplace":
        part = {k: v for k, v in part.items() if k not in ("clusters", "gap_hours")}
    job = {"events": {ALERT.replace("/", "|"): {**part, "attacks": True}}}
    return sqldeid.anonymize(sqldeid.Job.parse(job, folder=folder), connection)
