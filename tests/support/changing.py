"""Releases of a source that changes between two runs: a table, Mondrian's columns of it, and series."""

from __future__ import annotations

from typing import Any

TABLE: dict[str, Any] = {
    "person": "id",
    "columns": {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10]}},
        "ward": {"role": "sensitive"},
    },
    "privacy": {"k": 2, "suppression_limit": 0.9},
}
CUT = {"age": {"role": "quasi-identifying", "hierarchy": {"median": "range"}}, "ward": {"role": "sensitive"}}
MONDRIAN: dict[str, Any] = {**TABLE, "columns": CUT, "search": {"method": "mondrian"}, "privacy": {"k": 2}}
SERIES: dict[str, Any] = {
    "person": "id",
    "time": "hour",
    "time_unit": "hours",
    "variable": "item",
    "value": "value",
    "variables": {"HR": {"items": ["HR"]}},
    "durations": {"k": 4},
    "privacy": {"k": 4},
}
