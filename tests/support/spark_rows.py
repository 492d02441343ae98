"""Keys that are hostile to Spark, and what stands in its folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

HOSTILE = "we'ird `ü é ;--%20#,$"


def rows(folder: Path, name: str) -> list[tuple[Any, ...]]:
    """What a reader of Parquet finds, who knows nothing of notes."""
    with duckdb.connect() as c:
        return c.execute("FROM READ_PARQUET(?)", [f"{folder}/{name}.parquet/*.parquet"]).fetchall()
