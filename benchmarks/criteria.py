"""How many nodes of Adult are checked under a criterion, beside k alone (k = 5), and how long the search takes.

python benchmarks/run.py --only criteria       the 30,162 rows
python benchmarks/run.py --only criteria-1m    a million rows, resampled
python benchmarks/run.py --only loss-checks    k = 5 alone, by each loss
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

import sqldeid
from benchmarks.must import Tables
from benchmarks.process import Row
from benchmarks.sources import Bench, Task

LIMITS = (0.0, 0.02, 0.05, 0.2)
SHARE = 0.1
"""The part of the rows that is drawn as a study; all rows are its population."""
LOSSES = (
    "loss",
    "prec",
    "height",
    "entropy",
    "normalised_entropy",
    "ambiguity",
    "payout",
    "dm_star",
    "class_size",
)
STUDY = "CREATE TABLE study AS SELECT *, 5 + id % 11 AS weight FROM adult WHERE hash(id) % 10 = 0"

Privacy = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked beside k alone of one table: entries of `privacy`, by name."""

    title: str
    asked: Mapping[str, Privacy]
    source: str = "adult"
    sensitive: str = ""


def settings(bench: Bench, population: int) -> list[Setting]:
    """All criteria, each beside k alone on the same columns and rows.

    Parameters
    ----------
    population
        Rows of the table that a study is drawn from.
    """
    along = {"distance": "hierarchical", "hierarchy": bench.hierarchy("adult", "occupation")}
    close = {"column": "occupation", "t": 0.3}
    table = {"population": {"table": "adult"}}
    drawn = {"size": population, "fraction": SHARE + 0.01}
    sensitive = {
        "t = 0.3, equal": {"t_closeness": close},
        "t = 0.3, hierarchical": {"t_closeness": {**close, **along}},
        "t = 0.2, hierarchical": {"t_closeness": {**close, **along, "t": 0.2}},
    }
    alone = {
        "average_risk = 0.02": {"average_risk": 0.02},
        "at_risk, threshold 0.09, share 0.05": {"at_risk": {"threshold": 0.09, "share": 0.05}},
        "game, payout 300, cost 4, k = 76": {"k": 76, "game": {"payout": 300.0, "cost": 4.0}},
        "k = 76 alone": {"k": 76},
    }
    study = {
        "k_map = 20 by table": {"k_map": 20, **table},
        "k_map = 100 by table": {"k_map": 100, **table},
        "k_map = 100, k = 2": {"k": 2, "k_map": 100, **table},
        "k_map = 100 by weights": {"k_map": 100, "population": {"weights": "weight"}},
        "k_map = 50, Poisson": {"k_map": 50, "population": {**drawn, "estimate": "poisson"}},
        "k_map = 50, zero-truncated Poisson": {"k_map": 50, "population": drawn},
        "journalist's game, k_map = 76": {
            "k_map": 76,
            **table,
            "game": {"payout": 300.0, "cost": 4.0, "attacker": "journalist"},
        },
        "delta_presence, most 0.3": {"delta_presence": {"most": 0.3}, **table},
        "delta_presence, 0.02 to 0.2": {"delta_presence": {"least": 0.02, "most": 0.2}, **table},
    }
    return [
        Setting("eight columns, occupation sensitive", sensitive, sensitive="occupation"),
        Setting("nine columns", alone),
        Setting("a tenth of the rows, nine columns", study, source="study"),
    ]


def checks(bench: Bench, millions: int = 0) -> Tables:
    """A table for each setting, with a row for each demand and the checks at each limit."""
    path = bench.database("adult", millions)
    with duckdb.connect(str(path)) as connection:
        if not connection.execute("FROM duckdb_tables() WHERE table_name = 'study'").fetchall():
            connection.execute(STUDY)
        [population] = connection.execute("SELECT count(*) FROM adult").fetchone() or [0]
    return {
        f"Checks of criteria: {one.title}": _rows(bench, path, one, millions) for one in settings(bench, population)
    }


def losses(bench: Bench) -> Tables:
    """The checks by k alone, for each loss and limit; the table of docs/losses.md."""
    path, rows = bench.database("adult", 0), []
    for limit in LIMITS:
        found = {loss: _searched(bench, path, Setting("", {}), {}, limit, 0, loss).search for loss in LOSSES}
        rows.append({"limit": f"{limit:.0%}", **{loss: one.checks for loss, one in found.items()}})
        if not all(one.optimal for one in found.values()):
            raise RuntimeError("a search did not prove its optimum")
    return {"Checks by loss": rows}


def _rows(bench: Bench, path: Path, setting: Setting, millions: int) -> list[Row]:
    alone = {limit: _searched(bench, path, setting, {}, limit, millions) for limit in LIMITS}
    rows = [_row("k = 5 alone", alone, alone)]
    for name, privacy in setting.asked.items():
        found = {limit: _searched(bench, path, setting, privacy, limit, millions) for limit in LIMITS}
        rows.append(_row(name, found, alone))
    return rows


def _row(name: str, found: Mapping[float, sqldeid.TableRelease], alone: Mapping[float, sqldeid.TableRelease]) -> Row:
    counts = {limit: one.search.checks for limit, one in found.items()}
    most = max(counts[limit] / alone[limit].search.checks for limit in LIMITS)
    losses = {f"loss {limit:.0%}": round(one.loss["loss"], 4) for limit, one in found.items()}
    return {"asked": name, **{f"{limit:.0%}": n for limit, n in counts.items()}, "most ratio": round(most, 2), **losses}


def _searched(
    bench: Bench, path: Path, setting: Setting, privacy: Privacy, limit: float, millions: int, loss: str = "loss"
) -> sqldeid.TableRelease:
    task = Task("adult", millions, k=5, limit=limit, loss=loss, sensitive=setting.sensitive, criteria=privacy)
    with tempfile.TemporaryDirectory(dir=bench.cache) as folder:
        job = task.job(bench, Path(folder) / "release.duckdb")
        job["tables"]["adult"]["source"] = setting.source  # type: ignore[index]
        return sqldeid.anonymize(sqldeid.Job.parse(job), path).releases["adult"]
