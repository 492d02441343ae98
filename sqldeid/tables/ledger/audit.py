"""List who is in a table release that was published with a ledger, so that `verify` can recount it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.ledger.audit import released_in
from sqldeid.ledger.book import Book
from sqldeid.tables.ledger.contents import subject_of
from sqldeid.tables.plan.plan import TablePlan


def unreleased(book: Book, plan: TablePlan, engine: Engine, release: int, mark: object) -> exp.Table:
    """The persons of the source who are not in a release, as the source spells them; `mark` is the one on the release.

    Raises
    ------
    VerificationError
        If the ledger has no such release.
    """
    released = released_in(book, subject_of(plan, engine), release, mark)
    there = engine.ask("tables/ledger/list_persons", source=plan.source, person=plan.person_column).column("person")
    absent = np.flatnonzero(~released(there))
    return engine.put(f"{plan.name}_held", pa.table({"person": there.take(pa.array(absent, pa.int64()))}))
