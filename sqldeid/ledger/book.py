"""Read and write a ledger's tables; what is entered is decided in `core`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.keys import Key
from sqldeid.ledger.file import LedgerFile
from sqldeid.ledger.hashing import key_check
from sqldeid.ledger.store import TABLES, read_facts, table_of
from sqldeid.ledger.whole import count_rows, refuse_unwhole, says_what_it_is
from sqldeid.sql import render
from sqldeid.version import OTHER_FORM

OPTION = "--ledger"
_VERSION = "4"
_UNCOUNTED = "3"
"""Of ledgers that do not say how many rows their tables have; the first run that changes one counts them."""
_ENGINE = "engine"
DUCKDB = "duckdb"
"""The engine of ledgers that name none."""
_SPELLED = ("1", "2")
"""Versions that hashed values as they were spelled."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A release as the book knows it.

    Parameters
    ----------
    name, key
        The release and its place in the job.
    person, person_type
        The person key, and how its values are spelt.
    types, keys
        How the values of what is told beside the class are spelt, and where the job names it; by what the ledger calls
        it.
    dialect
        The engine of the source, which makes the texts of values.
    person_key
        What the job calls the person key.
    """

    name: str
    key: str
    person: str | None
    person_type: str
    types: Mapping[str, str]
    keys: Mapping[str, str]
    dialect: str = DUCKDB
    person_key: str = "person"


class Book:
    """A ledger's tables in one run.

    Raises
    ------
    JobError
        If the file is no ledger, was made with another key, or lost something (`sqldeid.ledger.whole`).
    """

    def __init__(self, file: LedgerFile, key: Key) -> None:
        self.file = file
        self.engine: Engine = file.engine
        self.key = key
        if file.fresh:
            for name, columns in TABLES.items():
                self.engine.run("ledger/create_ledger", table=table_of(name), columns=columns)
            self.append("facts", {"name": ["version", "key"], "value": [_VERSION, key_check(key)]})
        facts = read_facts(self.engine) if says_what_it_is(self.engine) else {}
        self._refuse_facts(facts)
        if not file.fresh:
            refuse_unwhole(self.engine, file.path, facts, counted=facts["version"] == _VERSION)
        self._facts = facts

    def _refuse_facts(self, facts: Mapping[str, str]) -> None:
        """A file that says that it is no ledger, one of another version, or of another key."""
        path = self.file.path
        version = facts.get("version") or ""
        if version in _SPELLED:
            raise JobError.at(
                OPTION,
                f"{path} was made by an older version of sqldeid, which hashed values as they were "
                "spelled; they cannot be hashed anew without the values. Keep it, give a new ledger another name, and "
                "publish to another place: nothing then compares a release with those from before, so take back what "
                "of them you can",
            )
        if version not in (_VERSION, _UNCOUNTED):
            later = f"{OTHER_FORM}. A new ledger in its place would not know who was released"
            told = later if version.isdecimal() else "is not a ledger of this version of sqldeid"
            raise JobError.at(OPTION, f"{path} {told}")
        if facts.get("key") != key_check(self.key):
            raise JobError(f"{OPTION}: {path} was made with another key; give that one", key="--key-file")

    def close(self) -> None:
        """Write down how many rows each table has; nothing is entered after that."""
        count_rows(self.engine, _VERSION)

    def releases(self) -> list[dict[str, Any]]:
        """The releases so far."""
        found: list[dict[str, Any]] = self.engine.rows("ledger/read_ledger", table=table_of("releases"))
        return found

    def next_release(self) -> int:
        """Number of the release that is made, from 1."""
        return int(self.count(render("ledger/count_cells", cells=table_of("releases")))) + 1

    def enter_release(
        self,
        release: int,
        name: str,
        kind: str,
        job_sha256: str,
        k: int | None,
        criteria: str,
        epsilon: float | None = None,
        delta: float | None = None,
        mark: str | None = None,
    ) -> None:
        """Take a release down."""
        self.append(
            "releases",
            {
                "release": [release],
                "name": [name],
                "kind": [kind],
                "job_sha256": [job_sha256],
                "k": [k],
                "criteria": [criteria],
                "epsilon": [epsilon],
                "delta": [delta],
                "mark": [mark],
            },
        )

    def append(self, name: str, rows: Mapping[str, object]) -> None:
        """Add a few rows, by column, to a table."""
        self.append_table(name, pa.table(dict(rows)))

    def append_table(self, name: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        put = self.engine.put(name, rows)
        self.engine.run("ledger/append_ledger", table=table_of(name), rows=put)

    def count(self, sql: str) -> int:
        """The one number that a statement gives."""
        return int(self.engine.query(sql).column(0)[0].as_py())

    def refuse_person(self, subject: Subject) -> None:
        """A release without persons, with other ones, or of another engine, which may spell values otherwise."""
        key = f"{subject.key}.{subject.person_key}"
        if subject.person is None:
            raise JobError.at(key, "missing; the ledger follows persons from release to release")
        then = self._facts.get("person")
        if then is not None and then != subject.person.casefold():
            raise JobError.at(
                key,
                f"the ledger follows persons by {then}, not by {subject.person}; give each kind of person "
                "a ledger of its own, or name the column alike in a source query",
            )
        self._refuse_type("person", subject.person_type, key)
        engine = self._facts.get(_ENGINE, DUCKDB)
        if then is not None and engine != subject.dialect:
            raise JobError(
                f"{subject.key}: the ledger follows persons of a source on {engine}, and this one is on "
                f"{subject.dialect}, which may spell the same values otherwise; give each its own ledger, and persons "
                "who are in both to one of them",
                key=OPTION,
            )

    def refuse_types(self, subject: Subject) -> None:
        """Columns whose values would be spelt otherwise than in earlier releases, so that no two could be compared."""
        for label, spelt in subject.types.items():
            self._refuse_type(f"column {label}", spelt, subject.keys[label])

    def _refuse_type(self, fact: str, now: str, key: str) -> None:
        then = self._facts.get(f"type of {fact}", now)
        if then != now:
            raise JobError.at(
                key,
                f"is of type {now}, and was of type {then} in earlier releases of the ledger, which would "
                "take its values for others; cast it to that in a source query, or give another column another name",
            )

    def enter_types(self, subject: Subject) -> None:
        """Take down what names persons, and the types that have not been released before."""
        found = {"person": str(subject.person).casefold(), "type of person": subject.person_type}
        found |= {f"type of column {label}": spelt for label, spelt in subject.types.items()}
        if subject.dialect != DUCKDB:
            found[_ENGINE] = subject.dialect
        new = {name: value for name, value in found.items() if name not in self._facts}
        if new:
            self.append("facts", {"name": [*new], "value": [*new.values()]})
        self._facts |= new
