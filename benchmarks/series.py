"""Series: a whole run on 4,000 stays, and preparations: a generated chartevents of 100 million rows, and a wide table.

python benchmarks/run.py --only series --only series-100m --only series-wide
"""

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
from sqldeid.engine.settings import Settings
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

COLUMNS = {"heartrate": "HR", "sao2": "SaO2", "respiration": "RR", "systemicsystolic": "SBP", "systemicmean": "MAP"}
CHARTED_WIDE = """CREATE TABLE vitalperiodic AS
    SELECT CAST(100000 + i % {stays} AS INTEGER) AS patientunitstayid,
           CAST(i // {stays} * 5 + HASH(i + 1) % 3 AS INTEGER) AS observationoffset,
           {columns}
    FROM RANGE({rows}) AS r(i)"""
"""Rows of all stays in turn, every five minutes as in eICU; half of what each column measures is there."""

UNPIVOTED = """CREATE TABLE long AS
    SELECT patientunitstayid, observationoffset, name AS variable, value
    FROM (UNPIVOT vitalperiodic ON {columns} INTO NAME name VALUE value)"""
"""The same values, a row for each."""

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
    used = _timed(bench, f"time_prepare({str(path)!r})")
    row = {
        "case": f"prepare {ROWS:,} rows",
        "process_s": used["seconds"],
        "cpu_s": used["cpu"],
        "peak_mb": used["peak_mb"],
        "persons": used["persons"],
    }
    demands = [at_most(row["process_s"], 300, "s"), at_most(row["peak_mb"], 2 * GB, "MB")]
    return {MUST: [line("series, prepare 100 M rows", demands, row)], "Series": [row]}


def time_prepare(path: str) -> dict[str, Any]:
    """Prepare the generated chartevents with the shipped map."""
    asked = {
        **{"source": "chartevents", "person": "icustay_id", "time": "charttime", "variable": "itemid"},
        **{"value": "valuenum", "variables": "mimic3/vitals", "durations": {"k": 50}, "privacy": {"k": 5}},
    }
    return _prepared(path, asked)


def _prepared(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Seconds, and persons."""
    with reading(path, Path(path), Settings(memory_limit=MEMORY_LIMIT)) as engine:
        planned = plan("vitals", Series.model_validate(asked), engine, Path())
        started = monotonic()
        found = prepare(planned, engine)
        return {"seconds": monotonic() - started, "persons": len(found.person_number)}


def prepare_wide(bench: Bench) -> Tables:
    """Prepare 100 million rows of five vital signs each, in turns with the same values in long form."""
    path = bench.cache / "vitalperiodic.duckdb"
    if not path.exists():
        columns = ", ".join(
            f"CASE WHEN HASH(i + {at}) % 2 = 0 THEN CAST(40 + HASH(i + {at + 1}) % 80 AS DOUBLE) END AS {name}"
            for at, name in zip(range(10, 100, 10), COLUMNS, strict=False)
        )
        unfinished = path.with_suffix(".unfinished")
        with duckdb.connect(str(unfinished), config={"memory_limit": MEMORY_LIMIT}) as connection:
            connection.execute(CHARTED_WIDE.format(rows=ROWS, stays=STAYS, columns=columns))
            connection.execute(UNPIVOTED.format(columns=", ".join(COLUMNS)))
        unfinished.rename(path)
    wide, long = (_timed(bench, f"time_form({str(path)!r}, {form!r})") for form in ("wide", "long"))
    row = {
        "case": f"prepare {ROWS:,} wide rows of {len(COLUMNS)} columns, half of them NULL",
        "process_s": wide["seconds"],
        "long_s": long["seconds"],
        "ratio": round(wide["seconds"] / long["seconds"], 2),
        "cpu_ratio": round(wide["cpu"] / long["cpu"], 2),
        "peak_mb": wide["peak_mb"],
        "persons": wide["persons"],
    }
    demands = [at_most(row["ratio"], 1.3, "of the long form's time"), at_most(row["peak_mb"], 2 * GB, "MB")]
    return {MUST: [line("series, prepare 100 M wide rows", demands, row)], "Series": [row]}


def _timed(bench: Bench, call: str) -> dict[str, Any]:
    """What a function of this module finds in a process of its own, and what that uses."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        figures, found = Path(name) / "figures.json", Path(name) / "found.json"
        code = f"import json; from benchmarks.series import *; json.dump({call}, open({str(found)!r}, 'w'))"
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures), sys.executable, "-c", code]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(launcher, capture_output=True, text=True, check=False, cwd=root)
        if done.returncode:
            raise RunError(done.stderr.strip()[-2000:])
        used, there = json.loads(figures.read_text()), json.loads(found.read_text())
    return {**there, "cpu": used["cpu"], "peak_mb": round(used["peak"] / 1e6)}


def time_form(path: str, form: str) -> dict[str, Any]:
    """Prepare the vital signs in one of both forms."""
    variables = {variable: {"items": [name], "low": 0, "high": 1000} for name, variable in COLUMNS.items()}
    asked: dict[str, Any] = {"person": "patientunitstayid", "time": "observationoffset", "time_unit": "minutes"}
    if form == "wide":
        asked |= {"source": "vitalperiodic", "wide": {name: name for name in COLUMNS}}
    else:
        asked |= {"source": "long", "variable": "variable", "value": "value"}
    return _prepared(path, {**asked, "variables": variables, "durations": {"k": 50}, "privacy": {"k": 5}})
