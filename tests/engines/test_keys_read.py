"""A key that a mode does not use is refused: each mode is run, and what nobody read of its job must not pass.

Reading is watched at the models themselves. A key that a mode reads by its default counts as read; one that nobody
reads is set to a valid value, and the job must then be refused by that key.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic import BaseModel

import sqldeid
from sqldeid.errors import JobError
from sqldeid.job import Job, parts
from sqldeid.job import events as events_part
from sqldeid.job import series as series_part
from sqldeid.job import stack as stack_part

QI = {"role": "quasi-identifying"}
AGE = {"age": QI | {"hierarchy": {"bands": [10, 20]}}}
SEX = {"sex": QI | {"hierarchy": "adult/sex"}}
MEDIAN = {"age": QI | {"hierarchy": {"median": "range"}}}
DRAWN = {"beta": 0.5, "epsilon": 2.0, "delta": 0.4}
LAPLACE = {
    "epsilon": 1.0,
    "states": "s.txt",
    "other": "OTHER",
    "time_range": ["2020-01-01", "2021-01-01"],
    "gap_bins_hours": [1, 6],
    "length_bins": [1, 2, 4],
    "events_max": 8,
}


def table(columns: dict[str, Any], stack: dict[str, Any] | None = None, **search: Any) -> dict[str, Any]:
    part = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 3}, "search": search}
    return {"tables": {"r": part | ({"stack": {"s": stack}} if stack else {})}}


def series(**perturb: Any) -> dict[str, Any]:
    return {
        "series": {
            "r": {
                "source": "m",
                "person": "id",
                "time": "seen",
                "variable": "v",
                "value": "val",
                "variables": {n: {"items": [n], "low": 0, "high": 20} for n in ("HR", "BP")},
                "durations": {"k": 3},
                "privacy": {"k": 3},
                "perturb": perturb,
            }
        }
    }


def events(**privacy: Any) -> dict[str, Any]:
    return {
        "events": {
            "r": {"source": "m", "object": "id", "time": "seen", "order": "j", "state": ["v"], "privacy": privacy}
        }
    }


MODES: dict[str, dict[str, Any]] = {
    **{m: table(AGE, method=m) for m in ("frontier", "best-first", "ola", "datafly", "igreedy")},
    "inverse-ola": table(AGE, method="inverse-ola", max_loss=0.9),
    "epsilon-safe": table(SEX, method="epsilon-safe", epsilon_safe=DRAWN),
    "mondrian": table(MEDIAN, method="mondrian"),
    "shared": series(),
    "projection": series(method="projection"),
    "source": series(method="source", iterations=3),
    "genetic": series(method="genetic", most_iterations=5),
    "ratio": events(method="ratio", epsilon=0.65),
    "none": events(method="none"),
    "laplace": events(method="laplace", **LAPLACE),
}
SAMPLES: dict[tuple[str, str], Any] = {
    ("Search", "loss"): "prec",
    ("Search", "choose"): "by-k",
    ("Search", "heuristic"): "range",
    ("Search", "weights"): {"age": 2.0},
    ("Search", "time_limit"): 5,
    ("Search", "checks_limit"): 5,
    ("Search", "epsilon_safe"): DRAWN,
    ("Search", "max_loss"): 0.5,
    ("Column", "uncovered"): "prefix",
    ("Column", "version"): "age",
    ("Column", "to"): "month",
    ("Column", "top_code"): 50,
    ("Privacy", "suppression_limit"): 0.1,
    ("Privacy", "criteria_limit"): 0.1,
    ("Privacy", "suppression"): "blank",
    ("Privacy", "m_concealing"): {"m": 0.5, "known": {"age": 0.1}},
    ("Table", "rows_are_persons"): True,
    ("Table", "rows"): "many",
    ("Table", "text"): True,
    ("HierarchyRule", "bands"): [1],
    ("HierarchyRule", "edges"): [[1]],
    ("HierarchyRule", "tails"): True,
    ("HierarchyRule", "mask"): [1],
    ("HierarchyRule", "keep_first"): [1],
    ("HierarchyRule", "dates"): ["month"],
    ("HierarchyRule", "suppress"): True,
    ("HierarchyRule", "grid"): 5,
    ("Events", "gap_hours"): 5,
    ("Events", "end"): "duration",
    ("Events", "clusters"): {"share": 0.2},
    **{("EventsPrivacy", name): value for name, value in LAPLACE.items()},
}
"""A valid value of each key that some mode does not read; a key that is not here fails the test that meets it."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "s.txt").write_text("HR\nBP\n")
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(20 + (i * 7) % 40 AS INTEGER) AS age, "
            "['Female', 'Male'][1 + i % 2] AS sex FROM RANGE(120) AS r(i)"
        )
        c.execute(
            "CREATE TABLE m AS SELECT id, TIMESTAMP '2020-01-01' + j * INTERVAL '30 minutes' AS seen, "
            "['HR', 'BP'][1 + j % 2] AS v, CAST(j * 1.5 + id % 4 AS DOUBLE) AS val, j FROM people, RANGE(12) AS q(j)"
        )
    return tmp_path / "db.duckdb"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, str]]]:
    """What is read of a job's parts from now on."""
    found: set[tuple[str, str]] = set()
    plain = BaseModel.__getattribute__

    def watched(self: BaseModel, name: str) -> Any:
        if name in type(self).__pydantic_fields__:
            found.add((type(self).__name__, name))
        return plain(self, name)

    monkeypatch.setattr(BaseModel, "__getattribute__", watched)
    yield found


def models() -> dict[str, type[BaseModel]]:
    modules = (parts, series_part, events_part, stack_part)
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel
    }


def place(model: str, mode: str) -> tuple[str, ...]:
    """Where in the job of a mode the part that a model reads stands."""
    section = next(iter(MODES[mode]))
    column = next(iter(MODES[mode][section]["r"].get("columns", {"": 0})))
    inside = {
        "Search": ("search",),
        "Column": ("columns", column),
        "Privacy": ("privacy",),
        "Table": (),
        "HierarchyRule": ("columns", column, "hierarchy"),
        "Events": (),
        "EventsPrivacy": ("privacy",),
    }[model]
    return (section, "r", *inside)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_does_not_read_it_refuses(mode: str, database: Path, read: set[tuple[str, str]]) -> None:
    job = Job.parse({"release": {"into": "o.duckdb"}, **MODES[mode]}, folder=database.parent)
    read.clear()
    sqldeid.anonymize(job, database)
    sqldeid.verify(job, database)
    there, seen = models(), set(read)
    touched = sorted({model for model, _ in seen} & set(there))
    unread = [(model, field) for model in touched for field in there[model].model_fields if (model, field) not in seen]
    accepted = []
    for model, field in unread:
        changed = deepcopy(MODES[mode])
        here: Any = changed
        for step in place(model, mode):
            here = here[step]
        if not isinstance(here, dict) or field in here:
            continue  # a hierarchy that is a name has no keys; what the mode states is read from the whole at once
        here[field] = SAMPLES[model, field]
        try:
            Job.parse({"release": {"into": "o.duckdb"}, **changed}, folder=database.parent)
        except JobError:
            continue
        accepted.append((model, field))
    assert accepted == []
