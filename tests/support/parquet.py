"""Parquet that a release left: its listing and its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb


def content(path: Path, name: str = "r") -> list[list[tuple[Any, ...]]]:
    """Columns with types, rows as text, and what is noted on them, as a plain connection finds them."""
    with duckdb.connect(":memory:" if path.is_dir() else str(path), read_only=path.is_file()) as c:
        table = f"'{path}/{name}.parquet'" if path.is_dir() else f"release.{name}"
        notes = f"SELECT DECODE(value) FROM PARQUET_KV_METADATA({table})"
        if path.is_file():
            notes = "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_columns()"
        described = [row[:2] for row in c.execute(f"DESCRIBE FROM {table}").fetchall()]
        rows = f"SELECT COLUMNS(*)::VARCHAR FROM {table}"
        kept = [(unmarked(note),) for (note,) in c.execute(notes).fetchall()]
        return [described, *(sorted(found, key=repr) for found in (c.execute(rows).fetchall(), kept))]


def unmarked(note: str | None) -> str | None:
    """A note without the keyed sums of its source, which only DuckDB has (docs/series-promise.md), and its own sum."""
    if note is None or not note.startswith('{"sqldeid"'):
        return note
    found = json.loads(note)
    for name in ("source_marks", "sum"):
        found["sqldeid"].pop(name, None)
    return json.dumps(found, sort_keys=True)


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
