"""Who is in a release that was published with a ledger, for whoever verifies it later."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.ledger.book import Book
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.store import table_of
from sqldeid.sql import render
from sqldeid.tables.ledger import subject_of
from sqldeid.tables.plan import TablePlan


def unreleased(book: Book, plan: TablePlan, engine: Engine, release: int, mark: object) -> exp.Table:
    """The persons of the source who are not in a release, as the source spells them; `mark` is the one on the release.

    Raises
    ------
    VerificationError
        If the ledger has no such release.
    """
    book.refuse_person(subject_of(plan))
    known = {row["release"]: (row["name"], row["mark"]) for row in book.releases()}
    if known.get(release) != (plan.name, mark):
        raise VerificationError(
            f"{plan.key}: {book.file.path} does not know this release; it is another ledger, or an old copy",
            key=plan.key,
        )
    tables = {name: table_of(name) for name in ("people", "cells", "stays")}
    released = set(
        book.engine.query(render("tables/list_released", release=release, **tables)).column("person").to_pylist()
    )
    there = engine.query(render("tables/list_persons", source=plan.source, person=plan.person_column))
    hashed = hash_persons(book.key, plan.person_type, there.column("person")).to_pylist()
    absent = [i for i, person in enumerate(hashed) if person not in released]
    return engine.put(
        f"{plan.name}_held", pa.table({"person": there.column("person").take(pa.array(absent, pa.int64()))})
    )
