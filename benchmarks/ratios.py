"""Whole runs beside a recorded run of ARX and beside the database's own statements on the same rows.

python benchmarks/run.py --only ratios --only adult-100m

ARX cannot be run everywhere, so its seconds are taken down once (`figures.ARX_SECONDS`) with those of two bare
statements on the same machine: a GROUP BY of nine columns of ten million rows, and a CREATE TABLE AS SELECT of them.
Here these statements are timed again, in turns with the program, and ARX's seconds are scaled by the ratio of their
sums. They write what the program writes: a file that DuckDB 1.0 reads. DuckDB 2 would choose a storage of its own, in
which strings are packed in half the time; then the statement would no longer be the one that was taken down (5.9 s on
two threads, 11.7 s of CPU).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import monotonic

import duckdb

from benchmarks.figures import ARX_BARE, ARX_SECONDS
from benchmarks.must import CRITERIA, GB, MUST, Tables, at_most, line
from benchmarks.process import Row, measure
from benchmarks.sources import Bench, Task

RATIOS = "Whole processes beside ARX and bare statements"
TURNS = 3
STORAGE = "v1.0.0"
"""Storage version of the release's file, as `create_database` has it."""
T_CLOSE = {"t_closeness": {"column": "occupation", "t": 0.3}}


@dataclass(frozen=True, slots=True)
class Beside:
    """A run, ARX's name of it, and the greatest ratio of their times."""

    arx: str
    most: float
    task: Task


@dataclass(slots=True)
class Timed:
    """Seconds of every turn: of the program, and of the bare statements on the same columns."""

    process: list[float] = field(default_factory=list)
    grouped: list[float] = field(default_factory=list)
    created: list[float] = field(default_factory=list)
    peak_mb: int = 0


CASES = (
    Beside("adult 5 %", 0.5, Task("adult")),
    Beside("adult 0 %", 0.5, Task("adult", limit=0.0)),
    Beside("adult 20 %", 0.5, Task("adult", limit=0.2)),
    Beside("adult l 3", 0.5, Task("adult", sensitive="occupation", criteria=CRITERIA["distinct l-diversity"])),
    Beside("adult t 0.3, 5 %", 0.6, Task("adult", sensitive="occupation", criteria=T_CLOSE)),
    Beside("adult t 0.3, 20 %", 0.6, Task("adult", sensitive="occupation", criteria=T_CLOSE, limit=0.2)),
    Beside("adult 1 M", 0.35, Task("adult", millions=1)),
    Beside("adult 10 M", 0.4, Task("adult", millions=10)),
    Beside("wide 9", 0.4, Task("wide", attributes=9)),
    Beside("wide 10", 0.2, Task("wide", attributes=10)),
)


def ratios(bench: Bench) -> Tables:
    """Every case in turns: the program, then the bare statements; the median of the turns counts."""
    cases = CASES[:3] if bench.quick else CASES
    timed = [Timed() for _ in cases]
    large = Timed()
    for _ in range(TURNS):
        for case, each in zip(cases, timed, strict=True):
            _turn(case.task, bench, each)
        _bare(Task("adult", millions=10), bench, large)
    scale = (median(large.grouped) + median(large.created)) / sum(ARX_BARE.values())
    rows = [_row(case, each, scale) for case, each in zip(cases, timed, strict=True)]
    return {RATIOS: rows, MUST: [_line(case, row) for case, row in zip(cases, rows, strict=True)]}


def adult_100m(bench: Bench) -> Tables:
    """A hundred million rows in 1.8 GB."""
    row = measure(Task("adult", millions=100, memory_limit="1500MB"), bench)
    demands = [at_most(row["process_s"], 70, "s process"), at_most(row["peak_mb"], 1.8 * GB, "MB peak")]
    return {MUST: [line(f"{row['rows']:,} rows, memory_limit 1500MB", demands, row)]}


def _turn(task: Task, bench: Bench, timed: Timed) -> None:
    """The program once, then the bare statements on what it reads."""
    row = measure(replace(task, repeats=1), bench)
    timed.process.append(row["process_s"])
    timed.peak_mb = max(timed.peak_mb, row["peak_mb"])
    _bare(task, bench, timed)


def _bare(task: Task, bench: Bench, timed: Timed) -> None:
    """What the database needs to group these columns, and to write them to a new file."""
    names = ", ".join(f'"{c}"' for c in bench.columns(task.data)[: task.attributes or None])
    source = bench.database(task.data, task.millions)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as folder, duckdb.connect() as connection:
        connection.execute(f"ATTACH '{source}' AS kept (READ_ONLY)")
        connection.execute(f"ATTACH '{Path(folder) / 'bare.duckdb'}' AS made (STORAGE_VERSION '{STORAGE}')")
        table = f"kept.{task.data}"
        timed.grouped.append(
            _seconds(connection, f"SELECT count(*) FROM (SELECT {names}, count(*) FROM {table} GROUP BY ALL)")
        )
        timed.created.append(
            _seconds(connection, f"CREATE TABLE made.t AS SELECT {names} FROM {table}; CHECKPOINT made")
        )


def _seconds(connection: duckdb.DuckDBPyConnection, statements: str) -> float:
    started = monotonic()
    connection.execute(statements).fetchall()
    return monotonic() - started


def _row(case: Beside, timed: Timed, scale: float) -> Row:
    process, bare = median(timed.process), median(timed.grouped) + median(timed.created)
    recorded = ARX_SECONDS[case.arx]
    return {
        "case": case.arx,
        "process_s": process,
        "peak_mb": timed.peak_mb,
        "ARX recorded_s": recorded,
        "ARX scaled_s": recorded * scale,
        "of ARX": process / (recorded * scale),
        "at most": case.most,
        "GROUP BY_s": median(timed.grouped),
        "CREATE TABLE_s": median(timed.created),
        "of both": process / bare,
        "holds": process <= case.most * recorded * scale,
    }


def _line(case: Beside, row: Row) -> Row:
    measured = at_most(row["of ARX"], case.most, "× ARX's time, scaled")
    return line(f"whole process: {case.arx}", [measured], row)
