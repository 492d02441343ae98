"""The same table release on Spark: 10 million rows on this machine through a Connect server, and how effort grows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.growth import growing, planned, with_combinations, with_rows
from benchmarks.must import GB, MUST, RUNS, Tables, at_most, line
from benchmarks.process import Row, measure_at
from benchmarks.sources import Bench, Task
from tests.support import spark

GROWTH, PLANNED = "Growth on Spark", "Growth on Spark, carried on"
OWN = {
    "spark__master": "local[2]",
    "spark__driver__memory": "1g",
    "spark__driver__extraJavaOptions": f"{spark.NO_LOG} -XX:+UseParallelGC",  # G1 costs a fifth of the run
    "spark__sql__shuffle__partitions": "8",
    "spark__sql__codegen__wholeStage": None,
    "spark__sql__codegen__factoryMode": None,
}


@dataclass(frozen=True, slots=True)
class Server:
    """A JVM that serves Connect on this machine."""

    session: Any
    url: str

    @property
    def process(self) -> int:
        """Its number."""
        return int(self.session._jvm.java.lang.ProcessHandle.current().pid())

    def peak_mb(self) -> int:
        """The most memory that the JVM held, heap and all."""
        found = Path(f"/proc/{self.process}/status").read_text(encoding="ascii")
        return round(int(found.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6)

    def cpu_s(self) -> float:
        """Seconds of all its threads."""
        nanoseconds = self.session._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()
        return float(nanoseconds) / 1e9


@contextmanager
def server(bench: Bench, database: Path, table: str, **others: str) -> Iterator[Server]:
    """A server with a table of a DuckDB file in its catalogue, its session up; `others` as of `spark.session`."""
    if reason := spark.missing():
        raise RuntimeError(reason)
    with tempfile.TemporaryDirectory(dir=bench.cache) as folder, spark.session(**OWN | others) as session:
        with duckdb.connect(str(database), read_only=True) as source:
            source.execute(f"COPY {table} TO '{folder}/{table}' (FORMAT PARQUET, PER_THREAD_OUTPUT)")
        session.sql(f"CREATE TABLE {table} USING PARQUET LOCATION '{folder}/{table}'")
        session.sql(f"SELECT COUNT(*) FROM {table}").toArrow()
        yield Server(session, f"sc://127.0.0.1:{session.conf.get(spark.PORT)}")


def _measure(bench: Bench, task: Task) -> Row:
    with server(bench, bench.database("adult", task.millions), "adult") as there:
        before = there.cpu_s()
        row = measure_at(task, bench, there.url, there.cpu_s)
        driver = {"driver_mb": there.peak_mb(), "driver_cpu_s": there.cpu_s() - before}
        return {**row, **driver, "data": f"{task.millions} million rows on Spark"}


def spark_ten_million(bench: Bench) -> Tables:
    """Adult with 10 million rows: folded, staged and verified by Spark, searched beside it; only classes move."""
    row = _measure(bench, Task("adult", millions=10))
    demands = [
        at_most(row["process_s"], 60, "s process"),
        at_most(row["driver_mb"], 2 * GB, "MB driver"),
    ]
    return {MUST: [line("10,000,000 rows on Spark, session up", demands, row)], RUNS: [row]}


def spark_growth(bench: Bench) -> Tables:
    """What grows with the rows, and what with the distinct combinations: the figures of docs/explanation/scale.md."""
    tasks = [*with_rows(bench, 1, 3, 10, 30), *with_combinations(bench, 3)]
    with ProcessPoolExecutor(
        1, get_context("spawn"), max_tasks_per_child=1
    ) as one:  # a JVM lives as long as its process
        rows = list(one.map(partial(_grown, bench), tasks))
    return {GROWTH: rows, PLANNED: planned(rows)}


def _grown(bench: Bench, task: Task) -> Row:
    return growing(_measure(bench, task), bench, task)
