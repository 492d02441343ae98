"""List who is in a release that was published with a ledger, so that `verify` can recount it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags
from sqldeid.errors import VerificationError
from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.store import table_of

Released = Callable[[pa.ChunkedArray], Flags]
"""Tells of persons, as the source spells them, whether each is in a release."""


def released_in(book: Book, subject: Subject, release: int, mark: object) -> Released:
    """Who is in a release of the ledger; `mark` is the one on the release.

    Raises
    ------
    VerificationError
        If the ledger has no such release.
    """
    book.refuse_person(subject)
    known = {row["release"]: (row["name"], row["mark"]) for row in book.releases()}
    if known.get(release) != (subject.name, mark):
        raise VerificationError.at(
            subject.key, f"{book.file.path} does not know this release; it is another ledger, or an old copy"
        )
    tables = {name: table_of(name) for name in ("people", "cells", "stays")}
    listed = book.engine.ask("ledger/list_released", release=release, **tables)
    there, key = set(listed.column("person").to_pylist()), book.key

    def released(persons: pa.ChunkedArray) -> Flags:
        return np.array(
            [p in there for p in hash_persons(key, subject.person_type, persons).to_pylist()], dtype=np.bool_
        )

    return released
