"""Refuse a ledger that lost something: as it is, it would take persons who were released for new ones.

A file that opens and can be read may still be no whole ledger: a table is missing or was emptied, rows are gone, or
tables of two ledgers lie in one file. So each ledger that is opened is held to what every run leaves:

- the tables, columns and types of `sqldeid.ledger.store`;
- as many rows in each table as the last run counted (`count_rows`; ledgers of version 3 have no counts);
- releases, cells and persons that are numbered without gaps, and name each other as runs write them. Each cell that was
  not torn has at least its k persons, which is what the ledger's proof rests on.

*Does not notice*: values that were changed in place and fit; a whole ledger of an earlier day, which is told by the
marks on releases (`sqldeid.run.unchanged`); in ledgers of version 3, lost values of persons, marginals, groups and
levels, and persons who spent ε where others still have an account.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from sqldeid.engine.base import Engine
from sqldeid.engine.private import CATALOG
from sqldeid.errors import JobError
from sqldeid.ledger.store import LATER, TABLES, table_of
from sqldeid.sql import literal

_ROWS = "rows of "
"""What the facts that count a table's rows begin with."""

_UNFIT = {
    "kinds": "releases has one of an unknown kind",
    "missing": "releases has one of which stays knows nobody",
    "numbers": "releases, cells or people are not numbered one after the other",
    "homes": "people has persons of a cell that cells does not know",
    "sizes": "people has not all persons of a cell",
    "parents": "cells has one of a release or of a cell that is not known",
    "stays": "stays has rows of a release or of a cell that is not known",
    "twice": "stays has a cell twice in a release",
    "values": "contents has values of a person, column or release that is not known",
    "untold": "contents has nothing of a column that facts names",
    "tables": "marginals has rows of a release that is not known",
    "companions": "groups or levels has rows of a release that is not known",
    "spent": "budgets has more than was spent in private releases",
    "empty": "budgets is empty, and releases has private ones",
    "persons": "people or budgets has somebody twice, or facts does not tell what names persons",
}
"""What each column of `check_ledger` counts."""

_EMPTY = ("missing", "untold", "empty")
"""What a release without anybody leaves, too: a fault where nothing says how many rows there must be."""


def says_what_it_is(engine: Engine) -> bool:
    """Whether the table is there in which a ledger says what it is."""
    return _columns_there(engine).get("facts") == _columns_of("facts")


def refuse_unwhole(engine: Engine, path: Path, facts: Mapping[str, str], *, counted: bool) -> None:
    """Hold an opened ledger to what every run leaves.

    Parameters
    ----------
    facts
        What it says of itself.
    counted
        Whether it says how many rows each table has. One that does not may lack tables that came later: they are made.

    Raises
    ------
    JobError
        If it lost something.
    """
    there = _columns_there(engine)
    for name in (n for n in LATER if not counted and n not in there):
        engine.run("ledger/create_ledger", table=table_of(name), columns=TABLES[name])
        there[name] = _columns_of(name)
    for name in TABLES:
        if name not in there:
            raise _damaged(path, f"it has no table {name}")
        if there[name] != _columns_of(name):
            raise _damaged(path, f"its table {name} has other columns, or of other types")
    for name, rows in _rows_there(engine).items() if counted else ():
        if facts.get(_ROWS + name) != str(rows):
            raise _damaged(path, f"its table {name} has not as many rows as the last run left there")
    found = engine.row("ledger/check_ledger", **{name: table_of(name) for name in TABLES})
    for fault, rows in found.items():
        if rows and not (counted and fault in _EMPTY):
            raise _damaged(path, f"its tables do not fit each other: {_UNFIT[fault]}")


def count_rows(engine: Engine, version: str) -> None:
    """Write down the version, and how many rows each table has: the last that a run changes in a ledger."""
    facts, names = table_of("facts"), ["version", *(_ROWS + name for name in TABLES)]
    engine.run("ledger/clear_facts", facts=facts, names=[literal(name) for name in names])
    rows = _rows_there(engine)
    rows["facts"] += len(names)
    said = [version, *(str(rows[name]) for name in TABLES)]
    put = engine.put("counted", pa.table({"name": names, "value": said}))
    engine.run("ledger/append_ledger", table=facts, rows=put)


def _damaged(path: Path, what: str) -> JobError:
    return JobError.at(
        "--ledger",
        f"{path} is damaged: {what}. Bring its newest copy back from a backup; as it is, persons who were released "
        "would be taken for new ones, and a single change be seen",
    )


def _rows_there(engine: Engine) -> dict[str, int]:
    tables = [{"name": literal(name), "table": table_of(name)} for name in TABLES]
    return {row["name"]: row["rows"] for row in engine.rows("ledger/count_ledger", tables=tables)}


def _columns_there(engine: Engine) -> dict[str, dict[str, object]]:
    """Tables of the file, each with the types of its columns."""
    found: dict[str, dict[str, object]] = {}
    for row in engine.rows("ledger/list_columns", catalog=literal(CATALOG)):
        found.setdefault(row["relation"], {})[row["name"]] = row["type"]
    return found


def _columns_of(name: str) -> dict[str, object]:
    return {column["name"].name: column["stored"] for column in TABLES[name]}
