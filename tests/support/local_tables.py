"""A table for local recoding, its releases, and a slow recount of what was released, row by row, in pandas."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from sqldeid.job import Job
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, qi

ROWS = 240
SOURCE = f"""CREATE TABLE people AS
    SELECT i AS id, CASE WHEN i % 17 = 0 THEN NULL ELSE CAST(20 + (i * i * 7) % 40 AS INTEGER) END AS age,
           ['f', 'm', 'it''s'][1 + (i * 5 + i // 7) % 3] AS sex, 'a' || (i * 31) % 9 || (i * 13) % 4 AS zip,
           ['flu', 'cold', NULL, '😀'][1 + (i * i + i // 5) % 4] AS illness, i % 2 AS alive, 'code ' || i AS code,
           DATE '2020-01-01' + CAST(i % 50 AS INTEGER) AS seen
    FROM RANGE({ROWS}) AS r(i)"""
AGE, ZIP = {"bands": [5, 10]}, {"mask": [1, 2]}
COLUMNS: Mapping[str, Any] = {
    "id": IDENTIFYING,
    "age": qi(AGE),
    "sex": qi(),
    "zip": qi(ZIP),
    "illness": SENSITIVE,
    "code": INSENSITIVE,
}
NAMES = ("age", "sex", "zip")
LABELS: Mapping[str, Sequence[Any]] = {
    "age": (
        lambda v: "NULL" if pd.isna(v) else str(int(v)),
        lambda v: "NULL" if pd.isna(v) else band(int(v), 5),
        lambda v: "NULL" if pd.isna(v) else band(int(v), 10),
        lambda v: "*",
    ),
    "sex": (str, lambda v: "*"),
    "zip": (str, lambda v: f"{v[:-1]}*", lambda v: f"{v[:-2]}**", lambda v: "*"),
}
"""What each level shows of a value."""


def band(value: int, width: int) -> str:
    """As a rule of bands labels it."""
    low = value // width * width
    return f"[{low}, {low + width})"


def source(path: Path, order: str = "", text: str = SOURCE) -> Path:
    """A database with the people, in some order."""
    with duckdb.connect(str(path)) as c:
        c.execute(text)
        if order:
            c.execute(f"CREATE OR REPLACE TABLE people AS SELECT * FROM people ORDER BY {order}")
    return path


def table(columns: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A release by local recoding; `privacy` and `search` add to what is asked."""
    privacy = {"k": 4, **more.pop("privacy", {})}
    search = {"method": "local", **more.pop("search", {})}
    columns = dict(COLUMNS if columns is None else columns)
    return {"source": "people", "person": "id", "columns": columns, "privacy": privacy, "search": search, **more}


def local_job(folder: Path, target: Mapping[str, object] | None = None, **more: Any) -> Job:
    """A job of one such release."""
    release = {k: v for k, v in {"into": "out.duckdb", **(target or {})}.items() if v is not None}
    return Job.parse({"release": release, "tables": {"people": table(**more)}}, folder=folder)


def released(folder: Path, name: str = "release.people") -> pd.DataFrame:
    """What stands in the file of the release."""
    with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as c:
        return c.execute(f"SELECT * FROM {name}").df()


def people(path: Path) -> pd.DataFrame:
    """The source."""
    with duckdb.connect(str(path), read_only=True) as c:
        return c.execute("SELECT * FROM people").df()


def shown(value: object) -> str:
    """A released value as text."""
    if value is None or pd.isna(value):
        return "NULL"
    return str(int(value)) if isinstance(value, float) else str(value)


def lost(rows: pd.DataFrame, whole: pd.DataFrame) -> float:
    """The loss "loss" of a release that shows codes: each row found in the source, each label looked up."""
    by_code = whole.set_index("code")
    total = 0.0
    for _, row in rows.iterrows():
        person = by_code.loc[row.code]
        for name in NAMES:
            levels = LABELS[name]
            level = next(x for x, label in enumerate(levels) if label(person[name]) == shown(row[name]))
            alike = {v for v in map(shown, whole[name]) if True}
            values = {shown(v): v for v in whole[name]}
            same = sum(levels[level](values[v]) == shown(row[name]) for v in alike)
            total += (same - 1) / (len(alike) - 1)
    total += len(NAMES) * (len(whole) - len(rows))
    return total / (len(NAMES) * len(whole))


def sizes(rows: pd.DataFrame) -> pd.Series[int]:
    """Rows of each class, by equal labels."""
    return rows[list(NAMES)].map(shown).assign(n=1).groupby(list(NAMES)).n.sum()


def histograms(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows of each class by a sensitive value."""
    keys = [rows[name].map(shown) for name in NAMES]
    return pd.crosstab(keys, rows[column].map(shown))


def go_the_wide_way(patched: pytest.MonkeyPatch, most: int = 4) -> None:
    """Have lattices of more than so many nodes taken for too large to be visited whole."""
    import_module("sqldeid.tables.peel.partition")  # which a run loads once it needs it
    rooms = [m for name, m in sys.modules.items() if name.startswith("sqldeid.tables.peel.") and hasattr(m, "LISTED")]
    assert rooms, "no room of peeling says how many nodes it visits"
    for room in rooms:
        patched.setattr(room, "LISTED", most)
