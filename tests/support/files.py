"""Databases in files: what tests put into them, and what they read of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

Place = str | os.PathLike[str]


def write(path: Place, *statements: str) -> Path:
    """Run statements in a database file, which is made where there is none; its path."""
    with duckdb.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    return Path(path)


def read(path: Place, query: str) -> list[Any]:
    """The rows of a query."""
    with duckdb.connect(path, read_only=True) as connection:
        return connection.execute(query).fetchall()


def frame(path: Place, query: str) -> pd.DataFrame:
    """The same as a data frame."""
    with duckdb.connect(path, read_only=True) as connection:
        return connection.execute(query).df()
