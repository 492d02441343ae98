"""An interruption at the hand-over of a statement ends cleanly."""

from __future__ import annotations

import _thread
import threading
import time

import duckdb
import pytest

import sqldeid
from sqldeid.engine.duckdb import DuckDBEngine


@pytest.mark.duckdb14
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
