"""A job that a process of another time zone can run, too."""

from __future__ import annotations

from pathlib import Path

import sqldeid
from tests.support.sources import SENSITIVE, job, qi, release

SEEN = {"age": qi({"bands": [10, 20]}), "sex": qi(), "seen": SENSITIVE}


def asked(folder: Path, **more: object) -> sqldeid.Job:
    table = release({**SEEN, "mark": {"role": "insensitive"}}, source="people", person="id", k=4, limit=0.5, **more)
    return job({"into": "out.duckdb"}, folder, people=table)
