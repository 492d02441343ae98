"""A table and the series of the same people, to be released as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

STAYS = 160


TABLE: Mapping[str, Any] = {
    "source": "stays",
    "person": "stay",
    "columns": {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [20, 40]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "died": {"role": "sensitive"},
    },
    "privacy": {"k": 8, "suppression_limit": 0.05},
}


SERIES: Mapping[str, Any] = {
    "source": "charted",
    "person": "stay",
    "time": "minute",
    "time_unit": "minutes",
    "variable": "item",
    "value": "value",
    "variables": {"HR": {"items": [1]}, "Glu": {"items": [2]}},
    "durations": {"k": 6},
    "privacy": {"k": 4},
    "link": "people",
}


def charted(stays: range, seed: int) -> pd.DataFrame:
    """Heart rates by the hour for all, glucose for most."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, float]] = []
    for stay in stays:
        hours = int(rng.choice([4, 6, 6, 9]))
        rows += [(stay, 60 * h, 1, v) for h, v in enumerate(rng.normal(80, 12) + rng.normal(0, 4, hours))]
        if rng.random() < 0.7:
            rows += [(stay, 60 * h + 1, 2, v) for h, v in enumerate(rng.gamma(9, 12, hours))]
    return pd.DataFrame(rows, columns=["stay", "minute", "item", "value"])


def people(stays: range, seed: int) -> pd.DataFrame:
    rng, n = np.random.default_rng(seed), len(stays)
    return pd.DataFrame(
        {
            "stay": list(stays),
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["F", "M"], n),
            "died": rng.choice(["no", "yes", "later"], n, p=[0.6, 0.2, 0.2]),
        }
    )


CHOICES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"privacy": {"k": 3, "suppression_limit": 0.3}}, {"privacy": {"k": 6}, "durations": {"k": 3}, "shape": "wide"}),
    ({"privacy": {"k": 5, "l_diversity": {"column": "died", "l": 2}}}, {"durations": {"k": 4, "method": "source"}}),
    (
        {"privacy": {"k": 12, "t_closeness": {"column": "died", "t": 0.4}}},
        {"privacy": {"k": 3, "heuristic": "diversity"}},
    ),
    (
        {"source": {"query": "SELECT stay, age, sex, died, stay AS person_number FROM stays"}},
        {"privacy": {"k": 4, "heuristic": "diversity", "targets": "source"}},
    ),
]
