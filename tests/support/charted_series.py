"""Charted values and the jobs that release them as series."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

BASE: Mapping[str, object] = {
    "source": "charted",
    "person": "stay",
    "time": "minute",
    "time_unit": "minutes",
    "variable": "item",
    "value": "value",
    "variables": {"HR": {"items": [1], "low": 20, "high": 300}, "Glu": {"items": [2]}, "pH x": {"items": [3]}},
    "durations": {"k": 6},
    "privacy": {"k": 3},
}


STAYS = 120


def charted() -> pd.DataFrame:
    """Autocorrelated heart rates for all, glucose for most, a third variable for few; lengths from 1 to 14 hours."""
    rng = np.random.default_rng(5)
    rows = []
    for stay in range(STAYS):
        hours = int(rng.integers(1, 15))
        walk = 80 + 10 * rng.normal() + np.cumsum(rng.normal(0, 3, hours))
        rows += [(stay, h * 60 + int(rng.integers(0, 50)), 1, v) for h, v in enumerate(walk)]
        if rng.random() < 0.7:
            rows += [
                (stay, int(m), 2, v) for m, v in zip(rng.integers(0, hours * 60, 4), rng.gamma(9, 15, 4), strict=True)
            ]
        if rng.random() < 0.03:
            rows.append((stay, 0, 3, 7.4))
    return pd.DataFrame(rows, columns=["stay", "minute", "item", "value"])
