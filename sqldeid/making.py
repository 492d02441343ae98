"""What a run and the wings hand each other: what a release is made and checked with, and what a run must know of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.keys import Key
from sqldeid.publish import Staging
from sqldeid.sql import column

if TYPE_CHECKING:
    from sqldeid.ledger.core import Ledger
    from sqldeid.numbering import Partner

Published = tuple[exp.Expr, Mapping[str, object]]
"""What to read of a published release, and the note on it."""


_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_INTERVAL = re.compile(r"\bINTERVAL\b")


class Hearing(Protocol):
    """Who hears how far a run is."""

    @property
    def step(self) -> Callable[[str, str], None]:
        """Called with release and the step that begins."""

    @property
    def search(self) -> Callable[[Any], None]:
        """Called with where a search stands, after every statement."""


class Together(Protocol):
    """What the releases of one run hold each other to, beside what each promises alone."""

    def add(self, plan: Any, shaped: Any, engine: Engine) -> None:
        """Take in a release; refuse it where it can be compared with one before to single people out."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """Of whom a table release is, and what it shows of them: by that another one may be subtracted from it.

    Parameters
    ----------
    person
        The person key: its label (in small letters), and the column of what is read; None where rows are persons.
    spelt
        How the key's values are spelt.
    source
        The tables that are read, before the job's filter: releases of the same can be compared row by row.
    shown
        By label the column of what is read, and whether it is quasi-identifying, of each column that is released.
    judged
        Labels of the columns that criteria beyond k speak of.
    many
        Whether a person may have many rows.
    never_with
        Releases that nobody is given beside this one, as the job states it.
    other_persons
        Releases that hold no person of this one, as the job states it.
    believed
        Those of a run that hold no person of it, by its word or theirs, as far as the tables that both read allow it.
    sensitive
        Labels of the sensitive columns whose values are shown as they are, in their order.
    statistics
        By label how the columns that leave as statistics of classes are taken: what makes two of one class differ.
    relations
        The tables and views of `source` by the parts of their names, as the engine knows them.
    """

    person: tuple[str, str] | None
    spelt: str
    source: str
    shown: Mapping[str, tuple[Column, bool]]
    judged: frozenset[str] = frozenset()
    many: bool = False
    never_with: frozenset[str] = frozenset()
    other_persons: frozenset[str] = frozenset()
    believed: frozenset[str] = frozenset()
    sensitive: tuple[str, ...] = ()
    statistics: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    relations: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A temporary table to make of a release's rows: the number of their class, and these columns of `s`, by name."""

    table: exp.Table
    columns: Sequence[Mapping[str, exp.Expr]]


NO_TRUE_DATES = (
    "read the year alone in a source query, generalise it at least to years (with a k for which the search takes "
    "these), shift both alike in one table or in linked ones, or leave one out"
)
"""What to do about a true date beside shifted ones."""


@dataclass(frozen=True, slots=True)
class Days:
    """What a release of persons tells of the days of their dates, beside another one of the same persons.

    Parameters
    ----------
    persons
        The labels of the person keys; releases with one in common are of the same persons.
    shifted, shown
        Keys in the job of the columns whose dates are shifted, and of those that show true ones whatever the rows are:
        as in the source, or as a statistic. What a level shows is only known once it is found.
    never_with
        Releases that nobody is given beside this one, as the job states it.
    """

    persons: frozenset[str] = frozenset()
    shifted: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    never_with: frozenset[str] = frozenset()


class Cohorts(Protocol):
    """What the tables of one run hold each other to, beside what each promises alone."""

    def place(self, name: str, k: int, source: exp.Expr, engine: Engine) -> Placed | None:
        """Where to put the rows of what a release reads, with their classes; None where it is compared with nothing."""


def _nothing_made(name: str) -> Published:
    raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Making:
    """What a release is made with.

    Parameters
    ----------
    key
        Reads the key of pseudonyms; it is asked only where there are any.
    certificate, explain
        Whether a search's proof, and what a report tells beyond the release, are wanted.
    policies
        The policies of an earlier result, as the tables' wing read them; None where nodes are searched.
    ledger
        Of the releases before; it holds back persons and takes the release down.
    partner
        The series that follow a table.
    together
        What the run's releases of series hold each other to, where nothing else does.
    cohorts
        What its tables hold each other to, likewise.
    spared
        The attacks that are left out of these releases, each with its reason: they are made once more, for one failed.
    made
        What to read of a release that this run staged before, by name, and the note on it.
    """

    engine: Engine
    staging: Staging
    job_sha256: str
    listener: Hearing
    key: Callable[[], Key | None] = lambda: None
    certificate: bool = False
    explain: bool = False
    policies: Mapping[str, Any] | None = None
    ledger: Ledger | None = None
    partner: Partner | None = None
    together: Together | None = None
    cohorts: Cohorts | None = None
    spared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made: Callable[[str], Published] = _nothing_made


@dataclass(frozen=True, slots=True)
class Checking:
    """What a published release is checked with.

    Parameters
    ----------
    key
        Reads the key of pseudonyms; it is asked only where there are any.
    ledger
        Opens the ledger that the release with this note was made with; gives its number there, too. None where it was
        made without one.
    """

    engine: Engine
    key: Callable[[], Key | None]
    ledger: Callable[[Mapping[str, object]], AbstractContextManager[tuple[Ledger, int] | None]]


@dataclass(frozen=True, slots=True)
class Nature:
    """What a run must know of a planned release, of whatever kind.

    Parameters
    ----------
    names
        The releases that are made at once: one, or several linked tables.
    source
        What the statements read.
    policy, ledger
        Whether the node of an earlier release can be applied, and whether a ledger can hold it to earlier releases.
    many
        Whether a person may have many rows.
    held
        What a ledger holds back of it: "rows" or "persons".
    columns
        Labels of the columns that it shows beside its classes; None where it is no table of classes.
    lattice
        Whether its node is one of a lattice.
    person
        How the person key's values are spelt, where releases can be linked by it.
    private
        Whether it is differentially private; such releases compose, and are not compared with earlier ones.
    subtracted
        The person key, in small letters, where other classes of the same persons can be subtracted; else empty.
    asked
        What of the job decides who is in a class with whom, where `subtracted`.
    together
        Whether it is held to the run's others of its kind, where nothing else does that.
    released
        The columns of tables: the release's key, their name there, the column of the source.
    beside
        What is published beside it, by name: the table of its layers.
    typed
        The columns of the source that may leave with their own types, by their keys in the job.
    cohort
        Of whom a table is, where others can be subtracted from it.
    told
        By the label of a column that is shown as a statistic of each class all that makes the statistic.
    drawn
        How persons are drawn by the key; empty where nobody is drawn.
    days
        What it tells of days; nothing where no row is a person's.
    reckoned
        The columns whose dates or times are reckoned with, so that one beyond all that a type holds fails: their keys
        in the job, and those of the source.
    """

    names: tuple[str, ...]
    source: exp.Expr
    policy: bool = False
    ledger: bool = False
    many: bool = False
    held: str = "persons"
    columns: frozenset[str] | None = None
    lattice: bool = False
    person: str = ""
    private: bool = False
    subtracted: str = ""
    asked: str = ""
    together: bool = False
    released: tuple[tuple[str, str, Column], ...] = ()
    typed: tuple[tuple[str, Column], ...] = ()
    beside: tuple[str, ...] = ()
    cohort: Cohort | None = None
    told: Mapping[str, str] = field(default_factory=dict)
    drawn: str = ""
    days: Days = Days()
    reckoned: tuple[tuple[str, Column], ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """A relation that a release reads: its name among them, the person key, and the columns by label.

    Parameters
    ----------
    spelt
        The columns, intervals as they are spelt; none where no column has intervals.
    """

    name: str
    source: exp.Expr
    person: exp.Expr | None
    columns: Sequence[tuple[str, exp.Expr]]
    spelt: Sequence[tuple[str, exp.Expr]] = ()


def every_column(name: str, relation: exp.Expr, engine: Engine, key: str) -> Read:
    """All columns of a relation, whose rows are no persons."""
    columns = engine.columns(relation, key=key)
    return Read(name, relation, None, named(columns), spelt(columns))


def named(columns: Sequence[Column]) -> list[tuple[str, exp.Expr]]:
    """Columns by their names, each once, as their hashes take them; in small letters where these tell them apart.

    DuckDB and Spark take "WARD" for ward: a column that is spelt otherwise is no other column.
    Spark's hash passes over NULL within an array or struct and takes no map: of these it is the JSON that is hashed.
    """
    once = {c.name: c for c in columns}.values()
    alike = Counter(c.name.casefold() for c in once)
    labels = (c.name.casefold() if alike[c.name.casefold()] == 1 else c.name for c in once)
    hashed = (exp.func("TO_JSON", _of(c)) if _is_nested(c) else _of(c) for c in once)
    return list(zip(labels, hashed, strict=True))


def spelt(columns: Sequence[Column]) -> list[tuple[str, exp.Expr]]:
    """The same, intervals as text, for the hashes of 30 days and 1 month are one; none where there are no intervals."""
    once = {c.name: c for c in columns}.values()
    letters = [(n, v if _is_nested(c) else to_the_letter(v, c)) for c, (n, v) in zip(once, named(columns), strict=True)]
    return letters if any(_INTERVAL.search(_QUOTED.sub("", c.type)) for c in once) else []


def to_the_letter(value: exp.Expr, source: Column) -> exp.Expr:
    """A value of a column, as two releases are compared: 30 days and 1 month are equal, and read as two.

    An interval is compared as text, also one within a list or STRUCT.
    """
    if not _INTERVAL.search(_QUOTED.sub("", source.type)):
        return value
    return exp.cast(value, exp.DataType.build("varchar", dialect="duckdb"))


def _of(source: Column) -> exp.Expr:
    return column(source.name, "s")


def _is_nested(source: Column) -> bool:
    return source.type.upper().startswith(("ARRAY<", "MAP<", "STRUCT<"))
