"""How many nodes of Adult are checked under a criterion, beside k alone: eight columns, occupation sensitive, k = 5."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import sqldeid
from benchmarks.must import Tables
from benchmarks.process import Row
from benchmarks.sources import Bench, Task

LIMITS = (0.0, 0.02, 0.05, 0.2)


def asked(bench: Bench) -> Mapping[str, dict[str, object]]:
    """What is asked, by name."""
    along = {"distance": "hierarchical", "hierarchy": bench.hierarchy("adult", "occupation")}
    close = {"column": "occupation", "t": 0.3}
    return {
        "k alone": {},
        "t = 0.3, equal": {"t_closeness": close},
        "t = 0.3, hierarchical": {"t_closeness": {**close, **along}},
        "t = 0.2, hierarchical": {"t_closeness": {**close, **along, "t": 0.2}},
    }


def checks(bench: Bench) -> Tables:
    """A row for each demand and limit."""
    every = asked(bench)
    alone = {limit: _checks(bench, {}, limit) for limit in LIMITS}
    return {"Checks of criteria": [_row(bench, name, privacy, alone) for name, privacy in every.items()]}


def _row(bench: Bench, name: str, privacy: dict[str, object], alone: dict[float, int]) -> Row:
    found = {limit: _checks(bench, privacy, limit) for limit in LIMITS}
    most = max(found[limit] / alone[limit] for limit in LIMITS)
    return {"asked": name, **{f"{limit:.0%}": n for limit, n in found.items()}, "most ratio": round(most, 2)}


def _checks(bench: Bench, privacy: dict[str, object], limit: float) -> int:
    task = Task("adult", k=5, limit=limit, sensitive="occupation", criteria=privacy)
    with tempfile.TemporaryDirectory(dir=bench.cache) as folder:
        job = sqldeid.Job.parse(task.job(bench, Path(folder) / "release.duckdb"))
        return sqldeid.anonymize(job, bench.database("adult", 0)).releases["adult"].search.checks
