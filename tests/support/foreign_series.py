"""Series that every engine holds, jobs of them, and what is told of a release."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from sqldeid.job import Job

WHO = 'st"ay; --'


STAYS = 90


def charted() -> pa.Table:
    """Text keys that a language sorts otherwise than bytes, both kinds of times, ties, NULLs, and what is no number."""
    rng = np.random.default_rng(7)
    rows: list[tuple[object, ...]] = []
    for stay in range(STAYS):
        key, hours = f"{'aBäC'[stay % 4]}{stay}", 2 + stay % 3
        for at in np.sort(rng.choice(hours * 60, 3 * hours, replace=False)):
            rows.append((key, int(at), "HR", float(80 + 10 * rng.normal())))
            if stay % 5:
                rows.append((key, int(at), "glü 'c'", float(np.exp(4 + rng.normal() / 3))))
        rows += [(key, 5, "HR", 1e5), (key, 5, "HR", float("nan")), (key, None, "HR", 70.0), (None, 5, "HR", 70.0)]
    start = datetime(2150, 2, 28, 23, 30)
    person, minute, item, value = zip(*rows, strict=True)
    return pa.table(
        {
            WHO: pa.array(person, pa.string()),
            "minute": pa.array([None if m is None else m / 1 for m in minute], pa.float64()),
            "at": pa.array([None if m is None else start + timedelta(minutes=m, microseconds=7 * m) for m in minute]),
            "item": pa.array(item, pa.string()),
            "value": pa.array(value, pa.float64()),
        }
    )


HR, GLU = "select", "glü 'c'"
WIDE = {**dict.fromkeys(["variable", "value"]), "source": "periodic", "wide": {HR: "HR", '"gl': GLU}}
"""What a job changes to read the same measurements from `periodic`."""


def periodic() -> pa.Table:
    """The measurements of `charted` with a column for each variable; as many rows as one has at one time."""
    by_time: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for row in charted().to_pylist():
        at = (row[WHO], row["minute"], row["at"])
        by_time.setdefault(at, {"HR": [], GLU: []})[row["item"]].append(row["value"])
    rows = [(*at, h, g) for at, found in by_time.items() for h, g in zip_longest(found["HR"], found[GLU])]
    rows += [(*rows[0][:3], None, None)]
    types = {WHO: pa.string(), "minute": pa.float64(), "at": pa.timestamp("us"), HR: pa.float64(), '"gl': pa.float64()}
    return pa.table({n: pa.array(c, t) for (n, t), c in zip(types.items(), zip(*rows, strict=True), strict=True)})


def stays() -> pa.Table:
    """Of each patient two stays, the first by a time of which some are alike; who died."""
    key = [f"{'aBäC'[stay % 4]}{stay}" for stay in range(STAYS)]
    return pa.table(
        {
            WHO: key,
            "patient": pa.array([stay // 2 for stay in range(STAYS)], pa.int64()),
            "hours": pa.array([2 + stay % 3 for stay in range(STAYS)], pa.int32()),
            "came": [datetime(2150, 1, 1 + stay % 3) for stay in range(STAYS)],
            "died": [None if stay % 11 == 0 else stay % 3 == 0 for stay in range(STAYS)],
        }
    )


BASE: Mapping[str, object] = {
    "source": "charted",
    "person": WHO,
    "time": "minute",
    "time_unit": "minutes",
    "variable": "item",
    "value": "value",
    "variables": {"HR": {"items": ["HR"], "low": 20, "high": 300}, "Glu": {"items": ["glü 'c'"], "factor": 0.055}},
    "durations": {"k": 6},
    "privacy": {"k": 3},
    "perturb": {"seed": 5},
}


OWN = {"spread": "max(value) - min(value)", "Glu": ["mean"]}


CHOICES: dict[str, dict[str, object]] = {
    "shared": {},
    "wide, clock, cohort": {
        **{"kind": "view", "shape": "wide", "time": "at", "time_unit": None, "resample": "point"},
        **{"cohort": {"source": "stays", "person": WHO, "first_of": "patient", "order": "came"}},
    },
    "projection, labels, where": {
        **{"perturb": {"seed": 5, "method": "projection"}, "where": "value < 200 AND minute / 2 >= 0.5"},
        **{"labels": {"source": "stays", "person": WHO, "column": "died"}, "step_hours": 0.5},
    },
    "own features, query": {
        **{"perturb": {"seed": 5, "method": "projection"}, "features": OWN},
        "source": {"query": f'SELECT c.* FROM charted AS c JOIN stays AS s ON s."{WHO.replace(chr(34), chr(34) * 2)}" '
                   f'= c."{WHO.replace(chr(34), chr(34) * 2)}" WHERE s.patient > 2'},
    },
    "found variables, source": {
        **{"variables": None, "durations": {"k": 6, "method": "source"}, "perturb": {"seed": 5, "method": "source"}},
        **{"privacy": {"k": 3, "nulls": "strict", "targets": "source"}, "where": "value < 1000"},
    },
    "a column for each variable": {**WIDE, "where": "minute >= 1"},
}  # fmt: skip


def wanted(schema: str, kind: str = "table", **changes: object) -> Job:
    part = {k: v for k, v in {**BASE, **changes}.items() if v is not None}
    return Job.parse({"release": {"schema": schema, "as": kind}, "series": {"vitals": part}})


def told(found: Any) -> dict[str, object]:
    """What the result says of a release, but for times, what went over the wire, and what the engine computed."""
    return {k: v for k, v in found.to_dict().items() if k not in ("seconds", "moved", "written", "tau")}
