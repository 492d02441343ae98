"""Look up at which levels persons were last released by local recoding, so that they are released at them again.

A person who comes into another class than the companions of an earlier release tears the ledger's cell. Classes that
were formed anew each time would tear nearly all cells. What is proven of the ledger needs none of this: levels that are
looked up wrongly cost rows, not protection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.store import table_of

Levels = Mapping[str, int]
"""Level by column, as the ledger calls it."""


def earlier_levels(book: Book, subject: Subject, persons: pa.ChunkedArray) -> list[Levels | None]:
    """The levels of each person, as the source spells it, in the last release of that name; None where in none."""
    numbers = [row["release"] for row in book.releases() if row["kind"] == "classes" and row["name"] == subject.name]
    if not numbers:
        return [None] * len(persons)
    release, tables = max(numbers), {table: table_of(table) for table in ("people", "cells", "stays")}
    levels: dict[int, dict[str, int]] = {}
    for row in book.engine.rows("ledger/list_levels", release=release, levels=table_of("levels")):
        levels.setdefault(row["class"], {})[row["field"]] = row["level"]
    rows = book.engine.rows("ledger/list_classes", release=release, **tables)
    found = {row["person"]: levels.get(row["class"]) for row in rows}
    hashed = hash_persons(book.key, subject.person_type, persons).to_pylist()
    return [found.get(person) for person in hashed]


def enter_levels(book: Book, release: int, fields: Sequence[str], levels: Mapping[int, Sequence[int]]) -> None:
    """Write down the levels of a release's classes, in the order of `fields`."""
    book.append_table(
        "levels",
        pa.table(
            {
                "release": pa.array(np.full(len(levels) * len(fields), release), pa.int32()),
                "class": pa.array([c for c in levels for _ in fields], pa.int64()),
                "field": pa.array([field for _ in levels for field in fields], pa.string()),
                "level": pa.array([x for own in levels.values() for x in own], pa.int32()),
            }
        ),
    )
