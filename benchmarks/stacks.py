"""One row per person out of fifty million child rows: made patients, their admissions, and events in no order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from benchmarks.must import GB, MUST, RUNS, Tables, at_most, line
from benchmarks.process import measure
from benchmarks.sources import Bench

PATIENTS, ADMISSIONS, EVENTS = 100_000, 5, 100
"""Admissions per patient, events per admission."""

MADE = (
    f"""CREATE TABLE patients AS
        SELECT i AS subject_id, CAST(1920 + HASH(i) % 80 AS INTEGER) AS year_of_birth,
               CASE WHEN HASH(i + 7) % 2 = 0 THEN 'F' ELSE 'M' END AS gender
        FROM RANGE({PATIENTS}) AS r(i)""",
    f"""CREATE TABLE admissions AS
        SELECT i // {ADMISSIONS} AS subject_id, i AS hadm_id,
               TIMESTAMP '2100-01-01' + TO_DAYS(CAST(i % {ADMISSIONS} * 300 + HASH(i) % 200 AS INTEGER)) AS admittime
        FROM RANGE({PATIENTS * ADMISSIONS}) AS r(i)""",
    f"""CREATE TABLE events AS
        SELECT place // {EVENTS} AS hadm_id, place % {EVENTS} AS seq_num,
               LPAD(CAST(HASH(place) % 40 * 97 AS VARCHAR), 4, '0') AS code
        FROM (SELECT i * 15485863 % {PATIENTS * ADMISSIONS * EVENTS} AS place
              FROM RANGE({PATIENTS * ADMISSIONS * EVENTS}) AS r(i))""",
)
"""A prime that divides no number of rows scatters them."""


@dataclass(frozen=True, slots=True)
class StackTask:
    """What is asked: a stack beside two columns. It has what `measure` asks of a task."""

    stack: Mapping[str, object]
    data: str = "stack"
    millions: int = 0
    k: int = 5
    limit: float = 0.05
    criteria: Mapping[str, object] = field(default_factory=dict)
    time_limit: float | None = None
    memory_limit: str = "1.5GB"
    repeats: int = 1

    def job(self, bench: Bench, into: Path | None = None) -> dict[str, object]:
        """The job, as its file would have it."""
        columns = {
            "year_of_birth": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
            "gender": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        }
        qi = {"role": "quasi-identifying", "hierarchy": {"mask": [1, 2, 3]}}
        table = {
            "source": "patients",
            "person": "subject_id",
            "columns": columns,
            "stack": {"event": {"from": "events", "on": "subject_id", "value": "code", **self.stack, **qi}},
            "privacy": {"k": self.k, "suppression_limit": self.limit},
        }
        return {"release": {"into": str(into)} if into is not None else {}, "tables": {self.data: table}}


ALL = {"through": "admissions", "through_on": "hadm_id", "order": ["admittime", "seq_num"], "first": 3}
FIRST = {"through": "admissions", "through_on": "hadm_id", "order": "seq_num", "items": [1, 5]}
PICK = {"pick": "first", "pick_order": "admittime", "pick_then": "hadm_id"}


def stacks(bench: Bench) -> Tables:
    """Stack and anonymise: of all admissions, and of the first."""
    _make(bench.cache / "stack.duckdb")
    lines, runs = [], []
    for words, stack in (("first 3 of all admissions", ALL), ("1st and 5th of the first admission", FIRST | PICK)):
        row = measure(StackTask(stack), bench)  # type: ignore[arg-type]  # it has what a task is asked for
        demands = [at_most(row["peak_mb"], 2 * GB, "MB peak"), at_most(row["process_s"], 180, "s process")]
        lines.append(line(f"{PATIENTS * ADMISSIONS * EVENTS:,} child rows, {words}", demands, row))
        runs.append({**row, "data": f"stack: {words}"})
    return {MUST: lines, RUNS: runs}


def _make(path: Path) -> None:
    if path.exists():
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    with duckdb.connect(str(unfinished)) as connection:
        for statement in MADE:
            connection.execute(statement)
    unfinished.rename(path)
