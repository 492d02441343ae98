"""Events that every engine holds, jobs of them, and what is told of a release."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from sqldeid.job import Job
from tests.support.events import random_events

RATIO = {"method": "ratio", "epsilon": 1.5}


SEEDED: dict[str, Any] = {"generate": {"seed": 3}, "clusters": {"hashes": 10}, "attacks": False, "privacy": RATIO}


HOSTILE, QUOTED = "w\"a'rd; --", '"w""a\'rd; --"'


def hostile() -> pa.Table:
    """Random sequences with hostile names, NULLs in states, rows without object, dates and quotes."""
    rows = random_events(np.random.default_rng(5), objects=60)
    what = [None if i % 13 == 0 else f"it's {w}" for i, w in enumerate(rows.column("what").to_pylist())]
    who = [None if i % 29 == 0 else w for i, w in enumerate(rows.column("who").to_pylist())]
    day = rows.column("at").cast(pa.int64()).to_numpy() // 86_400_000_000
    columns = {
        "who": pa.array(who),
        "at": rows.column("at"),
        HOSTILE: pa.array(what),
        "level": pa.array([None if i % 7 == 0 else i % 3 for i in range(len(what))], pa.int32()),
        "day": pa.array(day.astype(np.int32), pa.int32()).cast(pa.date32()),
        "row": rows.column("row"),
    }
    return pa.table(columns)


OWN = {"source": "h", "object": "who", "time": "at", "order": "row", "state": [HOSTILE, "level"], "gap_hours": "auto"}


LEFT_OUT = ("moved", "written", "evaluation", "seconds")


def job(schema: str, section: dict[str, Any]) -> Job:
    return Job.parse({"events": {"x": section}, "release": {"schema": schema}})


def told(found: Any) -> dict[str, Any]:
    return {k: v for k, v in asdict(found).items() if k not in LEFT_OUT}
