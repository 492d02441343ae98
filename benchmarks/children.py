"""Child tables at size: a million made persons with twenty million diagnoses of ten thousand codes, two of them known.

python benchmarks/run.py --only child-100k --only child-1m    the whole process, and the SQL that it runs
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.must import GB, MUST, Tables, at_most, line
from benchmarks.process import LAUNCH, RunError, listed_steps
from benchmarks.sources import Bench, toml

CODES = 10_000
EACH = 20
"""Rows of a person."""

MADE = (
    """CREATE TABLE patients AS
       SELECT i * 7 + 3 AS subject_id, CAST(1930 + HASH(i) % 70 AS INTEGER) AS year_of_birth,
              CASE WHEN HASH(i + 7) % 2 = 0 THEN 'F' ELSE 'M' END AS gender
       FROM RANGE({persons}) AS r(i)""",
    """CREATE TABLE diagnoses AS
       SELECT d.place % {persons} * 7 + 3 AS subject_id,
              CHR(CAST(65 + d.code // 500 AS INTEGER)) || LPAD(CAST(d.code % 500 AS VARCHAR), 3, '0') AS code
       FROM (SELECT i AS place,
                    CAST(FLOOR(POW({codes}, (HASH(i + 11) % 1000000) / 1000000.0)) AS BIGINT) * 7919 % {codes} AS code
             FROM RANGE({persons} * {each}) AS r(i)) AS d""",
)
"""Codes as often as one over their rank, independent of each other: more different pairs than hospitals have."""

MEMORY_LIMIT = "1GB"
MOST_MB = 2 * GB


def child(bench: Bench, persons: int, seconds: float) -> Tables:
    """`sqldeid anonymize` with parent and child, and its re-check."""
    database = _database(bench, persons)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=bench.cache) as name:
        folder = Path(name)
        (folder / "job.toml").write_text(toml(_job(folder)), encoding="utf-8")
        (folder / "key").write_text(secrets.token_hex(32), encoding="utf-8")
        (folder / "key").chmod(0o600)
        figures, result = folder / "figures.json", folder / "result.json"
        program = Path(sys.executable).with_name("sqldeid")
        command = [str(program), "anonymize", str(database), "--job", str(folder / "job.toml"), "--verbose"]
        command += ["--key-file", str(folder / "key"), "--json", str(result), "--memory-limit", MEMORY_LIMIT]
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(figures)]
        done = subprocess.run([*launcher, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError(f"exit code {done.returncode}: {done.stderr.strip()}")
        used, found = json.loads(figures.read_text()), json.loads(result.read_text())["releases"]["diagnoses"]
        steps = listed_steps(done.stderr)
    row: dict[str, Any] = {
        "case": f"{persons:,} persons, {EACH} rows each, {CODES:,} codes, known = 2",
        "pairs": found["pairs"],
        "checks": found["checks"],
        "loss": found["loss"],
        "bound": found["bound"],
        "fewest": found["fewest"],
        "process_s": used["seconds"],
        "cpu_s": used["cpu"],
        "peak_mb": round(used["peak"] / 1e6),
        **{f"{step}_s": round(value, 1) for step, value in steps.items() if value >= 1},
    }
    demands = [at_most(row["process_s"], seconds, "s"), at_most(row["peak_mb"], MOST_MB, "MB peak")]
    return {"Child tables": [row], MUST: [line(row["case"], demands, row)]}


def _database(bench: Bench, persons: int) -> Path:
    path = bench.cache / f"children-{persons}.duckdb"
    if path.exists():
        return path
    unfinished = path.with_suffix(f".{os.getpid()}")
    with duckdb.connect(str(unfinished)) as connection:
        for text in MADE:
            connection.execute(text.format(persons=persons, codes=CODES, each=EACH))
    return unfinished.rename(path)


def _job(folder: Path) -> dict[str, Any]:
    patients = {
        "source": "patients",
        "person": "subject_id",
        "columns": {
            "subject_id": {"role": "identifying", "pseudonym": True},
            "year_of_birth": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 20, 40]}},
            "gender": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        },
        "privacy": {"k": 10},
    }
    diagnoses = {
        "source": "diagnoses",
        "person": "subject_id",
        "parent": "patients",
        "items": "code",
        "known": 2,
        "columns": {"code": {"role": "quasi-identifying", "hierarchy": {"mask": [1, 2, 3]}}},
        "privacy": {"k": 5, "suppression_limit": 0.2},
    }
    return {
        "release": {"into": str(folder / "release.duckdb")},
        "tables": {"patients": patients, "diagnoses": diagnoses},
    }
