"""What it costs on Adult to choose the node by k alone (`search.choose`): node, loss, and what is suppressed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import sqldeid
from benchmarks.must import Tables
from benchmarks.process import Row
from benchmarks.sources import Bench, Task

ASKED: dict[str, dict[str, object]] = {
    "distinct l = 3": {"l_diversity": {"column": "occupation", "l": 3}},
    "t = 0.3": {"t_closeness": {"column": "occupation", "t": 0.3}},
}
LIMITS = (0.02, 0.05)
MOST_BEYOND = 0.95
"""Share that may be suppressed beyond k: enough that every price is seen."""


def choices(bench: Bench) -> Tables:
    """Both ways to choose, for l and t, at k = 5."""
    return {"Choosing the node": [_row(bench, *case, choose) for case in _cases() for choose in ("by-all", "by-k")]}


def _cases() -> list[tuple[str, float]]:
    return [(name, limit) for name in ASKED for limit in LIMITS]


def _row(bench: Bench, name: str, limit: float, choose: str) -> Row:
    privacy = ASKED[name] | ({"criteria_limit": MOST_BEYOND} if choose == "by-k" else {})
    asked = Task("adult", k=5, limit=limit, sensitive="occupation", criteria=privacy)
    with tempfile.TemporaryDirectory(dir=bench.cache) as folder:
        job = asked.job(bench, Path(folder) / "release.duckdb")
        job["tables"]["adult"]["search"]["choose"] = choose  # type: ignore[index]
        release = sqldeid.anonymize(sqldeid.Job.parse(job), bench.database("adult", 0)).releases["adult"]
    beyond = release.search.suppressed_beyond_k or 0
    return {
        "asked": name,
        "suppression limit": limit,
        "choose": choose,
        "levels": " ".join(f"{column}={level}" for column, level in release.node.items()),
        "loss": round(release.loss["loss"], 4),
        "classes": release.classes,
        "suppressed %": round(100 * release.suppressed / release.rows, 2),
        "beyond k %": round(100 * beyond / release.rows, 2),
    }
