"""A run where the data lies, by its phases: what grows with the rows, and what with their distinct combinations.

The figures of docs/explanation/scale.md come from these rows.
"""

from __future__ import annotations

import math

import duckdb

from benchmarks.process import Row
from benchmarks.sources import Bench, Task

PHASES = {"fold": "folding the source", "write": "writing the release", "verify": "verifying what was written"}
"""What the source engine does, as a run names its steps."""
BILLION, CORES = 1000, 64
"""Millions of rows, and cores of the cluster, for which the plan is made."""
WITH_COMBINATIONS = (5, 7)
"""Of how many of Adult's columns the combinations are few, and not so few; of all nine they are many."""


def with_rows(bench: Bench, *millions: int) -> list[Task]:
    """The same job on more and more rows."""
    return [Task("adult", millions=m) for m in (millions[:1] if bench.quick else millions)]


def with_combinations(bench: Bench, millions: int) -> list[Task]:
    """As many rows, of fewer columns: of all of them `with_rows` has it."""
    return [] if bench.quick else [Task("adult", millions=millions, attributes=n) for n in WITH_COMBINATIONS]


def growing(row: Row, bench: Bench, task: Task) -> Row:
    """Seconds and the engine's CPU seconds by phase, seconds of the search, and what went over the wire."""
    phases: Row = {}
    for name, step in PHASES.items():
        phases |= {f"{name}_s": row["steps"][step], f"{name}_cpu_s": row["engine_cpu"][step]}
    return {
        "million_rows": task.millions,
        "columns": row["attributes"],
        "combinations": _combinations(bench, task),
        **phases,
        "search_s": row["search_s"],
        "process_s": row["process_s"],
        "moved_rows": row["moved"]["rows"],
        "moved_mb": row["moved"]["bytes"] / 1e6,
        "peak_mb": row["peak_mb"],
        **({"driver_mb": row["driver_mb"]} if "driver_mb" in row else {}),
        "steps": row["steps"],
        "engine_cpu": row["engine_cpu"],
    }


def planned(rows: list[Row]) -> list[Row]:
    """The largest two runs of all columns, carried on to 10^9 rows; none of fewer runs.

    Assumes that CPU seconds go on growing with the rows as they did from the one to the other; that combinations grow
    with the power of the rows that they grew with there (they grow more slowly, since they are finite in number); that
    bytes and the seconds of the search grow with the combinations.
    """
    widest = max(row["columns"] for row in rows)
    found = sorted((row for row in rows if row["columns"] == widest), key=lambda row: float(row["million_rows"]))[-2:]
    if len(found) < 2:
        return []
    small, large = found
    power = _logarithm(large, small, "combinations") / _logarithm(large, small, "million_rows")
    more = (BILLION / large["million_rows"]) ** power
    step = (BILLION - large["million_rows"]) / (large["million_rows"] - small["million_rows"])
    cpu = {f"{n}_cpu_s": large[f"{n}_cpu_s"] + step * (large[f"{n}_cpu_s"] - small[f"{n}_cpu_s"]) for n in PHASES}
    return [
        {
            "million_rows": BILLION,
            "power": power,
            "combinations": round(large["combinations"] * more),
            **cpu,
            "cores": CORES,
            "engine_s": sum(cpu.values()) / CORES,
            "search_s": large["search_s"] * more,
            "moved_mb": large["moved_mb"] * more,
        }
    ]


def _logarithm(large: Row, small: Row, key: str) -> float:
    return math.log(large[key] / small[key])


def _combinations(bench: Bench, task: Task) -> int:
    names = bench.columns(task.data)
    columns = ", ".join(f'"{name}"' for name in names[: task.attributes or len(names)])
    with duckdb.connect(str(bench.database(task.data, task.millions)), read_only=True) as source:
        found = source.execute(f"SELECT COUNT(*) FROM (SELECT DISTINCT {columns} FROM {task.data})").fetchone()
    return int(found[0]) if found else 0
