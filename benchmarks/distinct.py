"""More distinct combinations than there is memory for: 32 million people, hardly two of them alike, in one process.

Dates of birth, five-digit places, lengths of stay and two short columns, all seeded: the fold leaves nearly as many
classes as there are rows.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import duckdb

from benchmarks import clusters
from benchmarks.must import GB, MUST, RUNS, Demand, Tables, at_most, line, proven
from benchmarks.process import measure, measure_at
from benchmarks.sources import MILLION, Bench
from sqldeid.engine.opening import Settings
from sqldeid.run.foreign import open_engine
from sqldeid.sql import render
from tests.support import postgres, spark

ROWS, LEAST = 32 * MILLION, 30 * MILLION
MADE = f"""
CREATE TABLE people AS
SELECT i AS id,
       DATE '1930-01-01' + CAST(FLOOR(33000 * SQRT(HASH(i * 8 + 1) / 18446744073709551616.0)) AS INTEGER) AS born,
       LPAD(CAST(CAST(FLOOR(33333 * POWER(HASH(i * 8 + 2) / 18446744073709551616.0, 2)) AS INTEGER) * 3 AS VARCHAR),
            5, '0') AS zip,
       CASE WHEN HASH(i * 8 + 3) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
       CAST(FLOOR(100 * POWER(HASH(i * 8 + 4) / 18446744073709551616.0, 3)) AS INTEGER) AS stay,
       'status ' || HASH(i * 8 + 5) % 5 AS status
FROM RANGE({ROWS}) AS r(i)"""
DISTINCT = "SELECT COUNT(*) FROM (SELECT DISTINCT born, zip, sex, stay, status FROM people)"
SUPPRESS = {"suppress": True}
HIERARCHIES: dict[str, object] = {
    "born": {"dates": ["month", "year", "decade"]},
    "zip": {"keep_first": [4, 3, 2, 1]},
    "sex": SUPPRESS,
    "stay": {"bands": [5, 10, 20]},
    "status": SUPPRESS,
}


@dataclass(frozen=True, slots=True)
class DistinctTask:
    """What is asked of these people. It has what `measure` asks of a task."""

    data: str = "people"
    millions: int = 0
    k: int = 5
    limit: float = 0.05
    criteria: Mapping[str, object] = field(default_factory=dict)
    time_limit: float | None = None
    memory_limit: str = "1GB"
    repeats: int = 1

    def job(self, bench: Bench, into: Path | None = None) -> dict[str, object]:
        """The job, as its file would have it: five quasi-identifiers, 600 nodes."""
        table = {
            "source": "people",
            "person": "id",
            "columns": {c: {"role": "quasi-identifying", "hierarchy": h} for c, h in HIERARCHIES.items()},
            "privacy": {"k": self.k, "suppression_limit": self.limit},
        }
        release = {"schema": "release"} if into is None else {"into": str(into)}
        return {"release": release, "tables": {"people": table}}


def distinct_30m(bench: Bench) -> Tables:
    """Folded, searched, written and verified with 1 GB for DuckDB: so many classes are rolled up first, and spill."""
    classes = _classes(bench)
    row = measure(DistinctTask(), bench)  # type: ignore[arg-type]
    demands = [
        Demand(f"≥ {LEAST:,} combinations", f"{classes:,} combinations", classes >= LEAST),
        at_most(row["peak_mb"], 4 * GB, "MB"),
        proven(row),
    ]
    row = {**row, "data": f"{classes:,} distinct combinations"}
    return {MUST: [line(f"{ROWS:,} people, hardly two alike", demands, row)], RUNS: [row]}


def distinct_30m_spark(bench: Bench) -> Tables:
    """The same people on Spark, with a heap of 1 GB: what is too much to travel is rolled up there."""
    classes = _classes(bench)
    with clusters.server(bench, bench.cache / "people.duckdb", "people") as there:
        row = measure_at(DistinctTask(), bench, there.url, there.cpu_s)  # type: ignore[arg-type]
        together = row["peak_mb"] + there.peak_mb()
    demands = [
        Demand(f"≥ {LEAST:,} combinations", f"{classes:,} combinations", classes >= LEAST),
        at_most(together, 4 * GB, "MB with Spark's driver"),
        proven(row),
    ]
    row = {**row, "data": f"{classes:,} distinct combinations, on Spark"}
    return {MUST: [line(f"{ROWS:,} people on Spark, hardly two alike", demands, row)], RUNS: [row]}


def _classes(bench: Bench) -> int:
    """Distinct combinations of the people, who are made where they are not there yet."""
    path = bench.cache / "people.duckdb"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}")
        with duckdb.connect(str(unfinished)) as connection:
            connection.execute(MADE)
        unfinished.rename(path)
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute(f"SET memory_limit = '2GB'; SET temp_directory = '{bench.cache}/spill'")
        [(classes,)] = connection.execute(DISTINCT).fetchall()
    return int(classes)


CARRIED = f"""CREATE TABLE made AS
    SELECT i * 977 AS w0, CAST(1 AS BIGINT) AS n FROM generate_series(CAST(1 AS BIGINT), {LEAST}) AS g(i)"""
ON_SPARK = f"CREATE TABLE made USING PARQUET AS SELECT id * 977 AS w0, CAST(1 AS BIGINT) AS n FROM RANGE({LEAST})"
SMALL = {**clusters.OWN, "spark__driver__maxResultSize": "128m"}
"""A session of 1 GB that gives out 128 MB at once: a quarter of these classes."""


def distinct_postgres(bench: Bench) -> Tables:
    """As many classes, from a table in Postgres to a workbench that may take 1 GB; the peak is of this process."""
    import psycopg

    programs = postgres.binaries()
    if programs is None:
        raise RuntimeError(postgres.MISSING)
    with postgres.cluster(programs) as address:
        with psycopg.connect(address, autocommit=True) as server:
            server.execute(CARRIED.encode())
        host = dict(part.split("=") for part in address.split())["host"]
        return _carry(bench, f"postgresql://sqldeid@/postgres?host={host}", "Postgres")


def distinct_spark(bench: Bench) -> Tables:
    """The same from a session of Spark in this machine; the peak is of the Python process."""
    if reason := spark.missing():
        raise RuntimeError(reason)
    with spark.session(**SMALL) as session:
        session.sql(ON_SPARK)
        return _carry(bench, session, "Spark, which gives out 128 MB at once")


def _carry(bench: Bench, database: object, name: str) -> Tables:
    with ExitStack() as stack:
        engine = open_engine(database, Settings(memory_limit="1GB", temp_dir=bench.cache), stack)
        engine.begin()
        started = monotonic()
        brought = engine.to_bench(engine.resolve(("made",)))
        seconds = monotonic() - started
        rows = int(engine.bench.query(render("engine/count_rows", table=brought)).column("rows")[0].as_py())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    row = {"process_s": seconds, "peak_mb": round(peak / 1e6)}
    demands = [Demand(f"{LEAST:,} classes", f"{rows:,} classes", rows == LEAST), at_most(row["peak_mb"], 4 * GB, "MB")]
    return {MUST: [line(f"to the workbench from {name}", demands, row)]}
