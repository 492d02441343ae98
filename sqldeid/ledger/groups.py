"""Look up the groups in which persons were last released as series, so that they are released in them again.

A person who comes into another group than the companions of an earlier release tears the ledger's cell. Classes that
were formed anew each time would tear nearly all cells, and nobody could be released twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.store import table_of


@dataclass(frozen=True, slots=True)
class Group:
    """Persons of one feature class (`family`), length and set of variables, as a text."""

    family: int
    length: int
    variables: str


def groups_of(book: Book, subject: Subject, persons: pa.Array, before: int | None = None) -> list[Group | None]:
    """The group of each person, as the source spells it, in the last release of that name; None where in none.

    Parameters
    ----------
    before
        Number of a release of the ledger: what was released then and later is not looked at.
    """
    numbers = [
        row["release"]
        for row in book.releases()
        if row["kind"] == "series" and row["name"] == subject.name and (before is None or row["release"] < before)
    ]
    if not numbers:
        return [None] * len(persons)
    tables = {table: table_of(table) for table in ("people", "cells", "stays", "groups")}
    rows = book.engine.rows("ledger/list_groups", release=max(numbers), **tables)
    found = {row["person"]: Group(row["family"], row["length"], row["variables"]) for row in rows}
    hashed = hash_persons(book.key, subject.person_type, pa.chunked_array([persons])).to_pylist()
    return [found.get(person) for person in hashed]


def enter_groups(book: Book, release: int, groups: dict[int, Group]) -> None:
    """Write down the groups of a release, by class."""
    book.append_table(
        "groups",
        pa.table(
            {
                "release": pa.array(np.full(len(groups), release), pa.int32()),
                "class": pa.array(list(groups), pa.int64()),
                "family": pa.array([g.family for g in groups.values()], pa.int64()),
                "length": pa.array([g.length for g in groups.values()], pa.int64()),
                "variables": pa.array([g.variables for g in groups.values()], pa.string()),
            }
        ),
    )
