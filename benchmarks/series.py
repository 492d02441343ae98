"""Series: a whole run on 4,000 stays, and the preparation of a generated chartevents of 100 million rows."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import duckdb

from benchmarks.must import GB, MUST, at_most, line
from benchmarks.process import LAUNCH, RunError
from benchmarks.sources import Bench, toml
from sqldeid.engine.opening import Settings
from sqldeid.job.series import Series
from sqldeid.run import reading
from sqldeid.series.planning import plan
from sqldeid.series.prepare import prepare

Tables = dict[str, list[dict[str, Any]]]

ROWS, STAYS = 100_000_000, 61_000
MEMORY_LIMIT = "1200MB"
CHARTED = """CREATE TABLE chartevents AS
    SELECT CAST(200000 + i % {stays} AS INTEGER) AS icustay_id,
           CAST([211, 220045, 51, 455, 8368, 8441, 646, 807, 618, 676, 581, 1, 2, 3, 742, 113, 762, 550, 551, 552]
                [1 + CAST(HASH(i) % 20 AS INTEGER)] AS INTEGER) AS itemid,
           TIMESTAMP '2150-01-01'
               + INTERVAL 1 MINUTE * CAST(i // {stays} * 4 + HASH(i + 1) % 7 AS INTEGER) AS charttime,
           CAST(40 + HASH(i + 2) % 80 AS DOUBLE) AS valuenum
    FROM RANGE({rows}) AS r(i)"""
"""Rows of all stays in turn, about every 4 minutes; half of the items are mapped, one in twenty is a heart rate."""

VITALS = {
    "HR": {"items": ["HR"], "low": 20, "high": 300},
    "SBP": {"items": ["SysABP", "NISysABP"], "low": 30, "high": 300},
    "DBP": {"items": ["DiasABP", "NIDiasABP"], "low": 10, "high": 200},
    "SaO2": {"items": ["SaO2"], "low": 40, "high": 100},
    "Glucose": {"items": ["Glucose"], "low": 10, "high": 2000},
}
JOB = {
    **{"source": "set_a", "person": "recordid", "time": "minute", "time_unit": "minutes", "variable": "parameter"},
    **{"value": "value", "variables": VITALS, "durations": {"k": 50}},
    **{"privacy": {"k": 5, "nulls": "null-aware"}, "perturb": {"method": "projection"}},
}


def whole_run(bench: Bench) -> Tables:
    """`sqldeid anonymize` with exact projection (attacks included) on the Challenge 2012 stays."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        folder = Path(name)
        with duckdb.connect(str(folder / "stays.duckdb")) as connection:
            file = bench.data / "physionet2012" / "set-a.parquet"
            connection.execute(f"CREATE TABLE set_a AS SELECT * FROM '{file}'")
        job = {"release": {"into": str(folder / "release.duckdb")}, "series": {"vitals": JOB}}
        (folder / "job.toml").write_text(toml(job), encoding="utf-8")
        figures, result = folder / "figures.json", folder / "result.json"
        program = Path(sys.executable).with_name("sqldeid")
        command = [str(program), "anonymize", str(folder / "stays.duckdb"), "--job", str(folder / "job.toml")]
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures)]
        done = subprocess.run([*launcher, *command, "--json", str(result)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError(f"exit code {done.returncode}: {done.stderr.strip()}")
        used, found = json.loads(figures.read_text()), json.loads(result.read_text())["releases"]["vitals"]
    row = {
        "case": "physionet2012, five variables",
        "process_s": used["seconds"],
        "cpu_s": used["cpu"],
        "peak_mb": round(used["peak"] / 1e6),
        "persons": found["released"],
        "records": found["records"],
        "classes": found["classes"],
        "distortion": found["distortion"],
        **{f"{step}_s": seconds for step, seconds in found["seconds"].items()},
    }
    demands = [at_most(row["process_s"], 15, "s"), at_most(row["peak_mb"], GB, "MB")]
    return {MUST: [line("series, 4,000 stays", demands, row)], "Series": [row]}


def prepare_large(bench: Bench) -> Tables:
    """Prepare 100 million rows under a memory limit; the rows are generated first, which is not counted."""
    path = bench.cache / "chartevents.duckdb"
    if not path.exists():
        with duckdb.connect(str(path), config={"memory_limit": MEMORY_LIMIT}) as connection:
            connection.execute(CHARTED.format(rows=ROWS, stays=STAYS))
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        figures, seconds = Path(name) / "figures.json", Path(name) / "seconds.json"
        code = f"from benchmarks.series import time_prepare; time_prepare({str(path)!r}, {str(seconds)!r})"
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures), sys.executable, "-c", code]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(launcher, capture_output=True, text=True, check=False, cwd=root)
        if done.returncode:
            raise RunError(done.stderr.strip()[-2000:])
        used, found = json.loads(figures.read_text()), json.loads(seconds.read_text())
    row = {
        "case": f"prepare {ROWS:,} rows",
        "process_s": found["seconds"],
        "cpu_s": used["cpu"],
        "peak_mb": round(used["peak"] / 1e6),
        "persons": found["persons"],
    }
    demands = [at_most(row["process_s"], 300, "s"), at_most(row["peak_mb"], 2 * GB, "MB")]
    return {MUST: [line("series, prepare 100 M rows", demands, row)], "Series": [row]}


def time_prepare(path: str, file: str) -> None:
    """Prepare the generated chartevents with the shipped map; seconds and persons to a file."""
    asked = {
        **{"source": "chartevents", "person": "icustay_id", "time": "charttime", "variable": "itemid"},
        **{"value": "valuenum", "variables": "mimic3/vitals", "durations": {"k": 50}, "privacy": {"k": 5}},
    }
    with reading(path, Path(path), Settings(memory_limit=MEMORY_LIMIT)) as engine:
        planned = plan("vitals", Series.model_validate(asked), engine, Path())
        started = monotonic()
        found = prepare(planned, engine)
        seconds = monotonic() - started
    Path(file).write_text(json.dumps({"seconds": seconds, "persons": len(found.person_number)}), encoding="utf-8")
