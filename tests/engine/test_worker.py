"""Two runs at once: one wins, the other says so; an interruption at the hand-over of a statement ends cleanly."""

from __future__ import annotations

import _thread
import threading
import time
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.publish import places
from tests.support.files import write

COLUMNS = {"g": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}


def job_of(folder: Path, kind: str) -> sqldeid.Job:
    return sqldeid.Job.parse(
        {
            "release": {"into": "out" if kind == "parquet" else "out.duckdb", "as": kind},
            "tables": {"t": {"source": "t", "person": "id", "columns": COLUMNS, "privacy": {"k": 2}}},
        },
        folder=folder,
    )


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write(tmp_path / "db.duckdb", "CREATE TABLE t AS SELECT i AS id, i % 3 AS g FROM range(30) r(i)")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "parquet"])
@pytest.mark.parametrize("links", [True, False])
def test_the_second_of_two_runs_does_not_overwrite_the_first(
    database: Path, kind: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(database.parent, kind)
    if not links:
        monkeypatch.setattr(places.os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no links")))
    started = False

    def meanwhile(release: str, step: str) -> None:
        nonlocal started
        if step == "publishing" and not started:
            started = True
            sqldeid.anonymize(job, database)

    with pytest.raises(sqldeid.JobError, match="exists by now"):
        sqldeid.anonymize(job, database, listener=sqldeid.Listener(step=meanwhile))
    assert sqldeid.verify(job, database)["t"].released == 30
    assert sorted(p.name for p in database.parent.iterdir()) == sorted(
        ["db.duckdb", "out" if kind == "parquet" else "out.duckdb"]
    )


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.002, 0.01])
def test_an_interruption_at_any_moment_leaves_no_statement_running(delay: float) -> None:
    for _ in range(3):
        engine = DuckDBEngine(duckdb.connect(), "memory", "main", own=True)
        timer = threading.Timer(delay, _thread.interrupt_main)
        with pytest.raises((sqldeid.Interrupted, KeyboardInterrupt)):
            timer.start()
            while True:
                engine.query("SELECT sum(i * j) FROM range(3000) a(i), range(3000) b(j)")
        began = time.monotonic()
        engine.close()
        assert time.monotonic() - began < 20
