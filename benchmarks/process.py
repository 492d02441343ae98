"""Whole runs of the program, each in a process of its own: effort, time by step, and peak memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.sources import Bench, Task, toml

Row = dict[str, Any]

LAUNCH = Path(__file__).with_name("launch.py")
_STEP = re.compile(r"^\s*(\d+\.\d+) s  [^:]+: ([a-z ]+)$", re.MULTILINE)
_FOLD, _SEARCH = "folding the source", "searching the lattice"


class RunError(RuntimeError):
    """A run that ended with an error."""


def measure(task: Task, bench: Bench) -> Row:
    """Run `sqldeid anonymize` on a task; the row of the run with the median time."""
    database = bench.database(task.data, task.millions)
    rows = sorted((_once(task, bench, database) for _ in range(task.repeats)), key=lambda row: row["process_s"])
    return rows[len(rows) // 2]


def measure_at(task: Task, bench: Bench, database: str, meter: Callable[[], float] | None = None) -> Row:
    """Run it once on another engine's database, which takes the release, too.

    Parameters
    ----------
    meter
        Gives the CPU seconds that the engine has used so far; the row then has those of each step (`engine_cpu`).
    """
    return _once(task, bench, database, meter)


def _once(task: Task, bench: Bench, database: Path | str, meter: Callable[[], float] | None = None) -> Row:
    result, figures, said, used = finished(task, bench, database, meter)
    found = _row(task, result, figures, listed_steps(said))
    return found if meter is None else {**found, "engine_cpu": used}


def finished(
    task: Task, bench: Bench, database: Path | str, meter: Callable[[], float] | None = None
) -> tuple[dict[str, Any], dict[str, float], str, dict[str, float]]:
    """Run it to its end: the program's JSON, what the process took, what it said, what the meter showed by step."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        folder = Path(name)
        into = folder / "release.duckdb" if isinstance(database, Path) else None
        (folder / "job.toml").write_text(toml(task.job(bench, into)), encoding="utf-8")
        figures, result = folder / "figures.json", folder / "result.json"
        program = Path(sys.executable).with_name("sqldeid")
        command = [str(program), "anonymize", str(database), "--job", str(folder / "job.toml")]
        command += ["--json", str(result), "--verbose"]
        command += ["--memory-limit", task.memory_limit] if task.memory_limit else []
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures)]
        said, used = _listen([*launcher, *command], meter)
        return json.loads(result.read_text()), json.loads(figures.read_text()), said, used


def _listen(command: list[str], meter: Callable[[], float] | None) -> tuple[str, dict[str, float]]:
    """Run it to its end: what it said of its steps, and what the meter showed from each to the next."""
    said, marks = "", list[tuple[float, str]]()
    # An installed program has its bytecode; without, each start would compile it anew for a fifth of a second.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env) as child:
        for text in child.stderr or ():
            said += text
            if meter is not None and (step := _STEP.match(text)):
                marks.append((meter(), step[2]))
    if child.returncode:
        raise RunError(f"exit code {child.returncode}: {said.strip()}")
    return said, {step: after - at for (at, step), (after, _) in pairwise(marks)}


def listed_steps(text: str) -> dict[str, float]:
    """Seconds from the start of each step to the start of the next."""
    found = [(float(at), step) for at, step in _STEP.findall(text)]
    return {step: after - at for (at, step), (after, _) in pairwise(found)}


def _row(task: Task, result: dict[str, Any], figures: dict[str, float], steps: dict[str, float]) -> Row:
    release = result["releases"][task.data]
    search = release["search"]
    return {
        "data": task.data,
        "rows": release["rows"],
        "attributes": len(release["node"]),
        "k": task.k,
        "limit": task.limit,
        "criteria": ", ".join(task.criteria),
        "loss": search["loss"],
        "method": search["method"],
        "lattice": search["lattice_size"],
        "checks": search["checks"],
        "statements": search["statements"],
        "fold_s": steps[_FOLD],
        "search_s": search["seconds"],
        "process_s": figures["seconds"],
        "peak_mb": round(figures["peak"] / 1e6),
        "value": release["loss"][search["loss"]],
        "optimal": search["optimal"],
        "gap": search["gap"],
        "suppressed": release["suppressed"],
        "node": list(release["node"].values()),
        "time_limit": task.time_limit,
        "memory_limit": task.memory_limit,
        "cpu_s": figures["cpu"],
        "steps": steps,
        "moved": release["moved"],
    }
