"""What a table release and the series that are linked to it tell each other, so that both share one numbering.

The table is searched first. Its classes go to the series, which are formed within them; who is released in both comes
back with a new number. Neither wing knows the other: what is handed over here is tables of persons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from sqldeid.arrays import Ints

NOTED = "series"
"""Where a table release's note names the series that follow it."""

NUMBER = "person_number"
"""The column that linked releases share: persons numbered anew, in random order."""


@dataclass(frozen=True, slots=True)
class TableClasses:
    """What a table release could release.

    Parameters
    ----------
    name
        The release.
    k
        The least number of persons of its classes, and of whatever is formed within them.
    persons
        Temporary table: person VARCHAR (distinct), class BIGINT; whoever the table can release.
    judge
        Asked with a temporary table (person VARCHAR, class BIGINT) of finer classes: numbers of those that fail a
        criterion beyond k. None where k is all.
    judges
        The same of each criterion alone, with what messages call it.
    """

    name: str
    k: int
    persons: exp.Table
    judge: Callable[[exp.Table], Ints] | None = None
    judges: tuple[tuple[str, Callable[[exp.Table], Ints]], ...] = ()


@dataclass(frozen=True, slots=True)
class Members:
    """Who is released in both.

    Parameters
    ----------
    table
        Temporary table: person VARCHAR, number BIGINT (from 1, distinct), class BIGINT (what k persons share of table
        and series together).
    account
        Counts of persons, for the data holder.
    """

    table: exp.Table
    account: Mapping[str, int]


class Partner(Protocol):
    """The series behind a linked table, as its wing sees them."""

    @property
    def name(self) -> str:
        """Their release."""

    def admit(self, classes: TableClasses) -> Members:
        """Form series within the table's classes; who is left, numbered."""

    def beside(self, written: exp.Table) -> None:
        """Learn what the table release says of each number: number BIGINT, class BIGINT (NULL: of none)."""
