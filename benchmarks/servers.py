"""The same table release where the data lies: 1 million rows in a throw-away Postgres, beside the same in DuckDB."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.growth import growing, with_rows
from benchmarks.must import MUST, RUNS, Tables, at_most, line
from benchmarks.process import measure, measure_at
from benchmarks.sources import Bench, Task
from tests.support import postgres

GROWTH = "Growth in Postgres"
LOADED = "COPY adult FROM STDIN (FORMAT CSV)"


def postgres_million(bench: Bench) -> Tables:
    """Adult with 1 million rows: loaded, folded, searched, staged, verified and committed by a server."""
    task = replace(Task("adult"), millions=1, repeats=1)
    here = measure(task, bench)
    programs = postgres.binaries()
    if programs is None:
        raise RuntimeError(postgres.MISSING)
    with postgres.cluster(programs) as address:
        _load(bench.database("adult", 1), address)
        host = dict(part.split("=") for part in address.split())["host"]
        there = measure_at(task, bench, f"postgresql://sqldeid@/postgres?host={host}")
    demands = [at_most(there["process_s"], 30, "s process")]
    rows = [{**here, "data": "1 million rows in DuckDB"}, {**there, "data": "1 million rows in Postgres"}]
    return {MUST: [line("1,000,000 rows in Postgres", demands, there)], RUNS: rows}


def postgres_growth(bench: Bench) -> Tables:
    """What grows with the rows in a server (docs/explanation/scale.md)."""
    rows = []
    for task in with_rows(bench, 1, 3):
        with loaded(bench, task.millions) as (address, used):
            rows.append(growing(measure_at(task, bench, address, used), bench, task))
    return {GROWTH: rows}


@contextmanager
def loaded(bench: Bench, millions: int) -> Iterator[tuple[str, Callable[[], float]]]:
    """A server with Adult: its URL, and what tells the CPU seconds that it has used."""
    programs = postgres.binaries()
    if programs is None:
        raise RuntimeError(postgres.MISSING)
    with postgres.server(programs) as there:
        _load(bench.database("adult", millions), there.address)
        process = int((there.data / "postmaster.pid").read_text().split()[0])
        yield f"postgresql://sqldeid@/postgres?host={there.folder}", partial(_cpu_s, process)


def _cpu_s(server: int) -> float:
    """CPU seconds of a server's processes (Linux): its own, those of its children, and of the children that ended."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
    ticks = sum(_ticks(server, 4)) + sum(sum(_ticks(int(child), 2)) for child in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(process: int, fields: int) -> list[int]:
    """utime and stime of a process; with four fields those of its children that ended, too."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # it has just ended, and is counted with its parent
        return []
    return [int(x) for x in text.rpartition(")")[2].split()[11 : 11 + fields]]


def _load(source: Path, address: str) -> None:
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        with duckdb.connect(str(source), read_only=True) as connection:
            columns = connection.execute("DESCRIBE adult").fetchall()
            connection.execute(f"COPY adult TO '{path}' (HEADER false)")
        made = ", ".join(f'"{name}" {"BIGINT" if "INT" in kind else "TEXT"}' for name, kind, *_ in columns)
        with psycopg.connect(address, autocommit=True) as server:
            server.execute(f"CREATE TABLE adult ({made})".encode())
            with path.open("rb") as file, server.cursor() as cursor, cursor.copy(LOADED.encode()) as copy:
                while part := file.read(1 << 20):
                    copy.write(part)
            server.execute("ANALYZE adult")
