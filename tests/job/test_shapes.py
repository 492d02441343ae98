"""Every key of jobs of every kind, with a value of every wrong shape: a job or a `JobError`, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job

COLUMNS = {
    "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}, "top_code": 90},
    "born": {"role": "quasi-identifying", "hierarchy": {"dates": ["month", "year"]}, "uncovered": "top"},
    "code": {"role": "quasi-identifying", "hierarchy": {"edges": [[1, 2], [1]], "tails": True}},
    "ill": {"role": "sensitive"},
    "seen": {"role": "insensitive", "shift": "person"},
    "stay": {"role": "identifying", "pseudonym": True},
}
STACK = {
    "from": "p",
    "on": ["id"],
    "value": "code",
    "order": "n",
    "first": 2,
    "role": "sensitive",
    "through": "a",
    "through_on": "h",
    "pick": "first",
    "pick_order": "t",
}
TABLE = {
    "source": {"query": "SELECT 1"},
    "person": "id",
    "where": "x > 1",
    "columns": COLUMNS,
    "stack": {"s": STACK},
    "privacy": {
        "k": 5,
        "suppression_limit": 0.1,
        "suppression": "drop",
        "l_diversity": [{"column": "ill", "l": 2, "kind": "recursive", "c": 2}],
        "t_closeness": {"column": "ill", "t": 0.3, "distance": "ordered", "order": ["a"]},
        "m_concealing": {"m": 0.2, "known": {"ill": 0.05}},
    },
    "search": {"method": "frontier", "loss": "loss", "weights": {"age": 2.0}, "time_limit": 60},
}
SERIES = {
    "source": "c",
    "person": "id",
    "time": "t",
    "time_unit": "minutes",
    "variable": "v",
    "value": "x",
    "variables": {"HR": {"items": [1, 2], "low": 20, "high": 300}},
    "drop": ["HR"],
    "cohort": {"source": "p", "person": "id", "first_of": "q", "order": "t"},
    "durations": {"k": 5},
    "features": {"HR": ["mean"], "s": "sum(value)"},
    "privacy": {"k": 5},
    "perturb": {"method": "genetic", "weight": 10},
    "labels": {"source": "l", "person": "id", "column": "d"},
    "disagreement": {"distance": "dtw"},
    "link": "people",
    "round": {"HR": 1.0},
}
EVENTS = {
    "source": "t",
    "object": "id",
    "time": "at",
    "order": ["n"],
    "state": ["w"],
    "gap_hours": "auto",
    "end": "state",
    "clusters": {"share": 0.15},
    "factors": ["weekday", "hour"],
    "privacy": {"method": "ratio", "epsilon": 0.65},
    "generate": {"objects": 10},
}
LAPLACE = {
    "source": "t",
    "object": "id",
    "time": "at",
    "state": ["w"],
    "privacy": {
        "method": "laplace",
        "epsilon": 1.0,
        "states": "s.txt",
        "other": "O",
        "groups": {"sex": ["F", "M"]},
        "time_range": ["2100-01-01", "2200-01-01"],
        "gap_bins_hours": [1, 6],
        "length_bins": [1, 2],
        "events_max": 8,
    },
}
JOB: dict[str, Any] = {
    "release": {"into": "o.duckdb", "schema": "r", "as": "table"},
    "tables": {
        "people": TABLE,
        "drawn": {
            "source": "p",
            "person": "id",
            "link": "people",
            "columns": {"age": {"role": "quasi-identifying", "hierarchy": "adult/age"}},
            "privacy": {"k": 5},
            "search": {
                "method": "epsilon-safe",
                "epsilon_safe": {"beta": 0.2, "epsilon": 1.0, "delta": 0.1},
            },
        },
    },
    "series": {
        "vitals": SERIES,
        "bench": {
            "preset": "benchmark17",
            "source": "c",
            "person": "i",
            **{k: {"k": 5} for k in ("durations", "privacy")},
        },
    },
    "events": {"moves": EVENTS, "private": LAPLACE},
}
WRONG: list[Any] = [
    None, 7, -1, 0.5, True, "x", "", [], ["p"], [{"x": 1}], [[1]], [None], [1, "a"], {}, {"x": 1}, {"x": ["p"]},
    {"x": {"y": {}}}, {"": []}, {"k": {}}, [["a"], {"b": []}], {"people": {}}, {"role": []},
]  # fmt: skip


def places(node: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from places(value, (*path, key))
    if isinstance(node, list):
        for i, value in enumerate(node):
            yield from places(value, (*path, i))


def replaced(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    job = deepcopy(JOB)
    here: Any = job
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return job


@pytest.mark.sampled(1)
@pytest.mark.parametrize("section", JOB)
def test_a_wrong_shape_anywhere_is_refused_by_its_key(section: str) -> None:
    for path in places(JOB[section], (section,)):
        for value in WRONG:
            try:
                Job.parse(replaced(path, value))
            except JobError as error:
                assert error.key, (path, value)


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("series", "vitals", "link"), ["p"], "series.vitals.link"),
        (("series", "vitals", "link"), {}, "series.vitals.link"),
        (("series", "vitals", "drop"), [{"x": 1}], "series.vitals.drop"),
        (("tables", "people", "search", "method"), ["frontier"], "tables.people.search.method"),
        (("tables", "people", "link"), [["p"]], "tables.people.link"),
        (("release", "as"), {"x": 1}, "release.as"),
    ],
)
def test_it_is_the_type_that_is_told(path: tuple[str, ...], value: object, key: str) -> None:
    with pytest.raises(JobError) as raised:
        Job.parse(replaced(path, value))
    told = [line for line in raised.value.message.splitlines() if f" {key}:" in line]
    assert len(told) == 1
    assert "must be" in told[0]
