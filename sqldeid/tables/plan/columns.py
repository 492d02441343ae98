"""The columns of a table release: what each is, how its values travel, and what leaves in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from sqlglot import exp

from sqldeid.catalogue.columns import with_one_nan, with_one_zero
from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.hierarchy import Hierarchy, HierarchySource
from sqldeid.hierarchy.model import Labels
from sqldeid.hierarchy.stored import StoredSource
from sqldeid.hierarchy.topcoded import TopCoded
from sqldeid.sql import column, literal

Uncovered = Literal["refuse", "prefix", "top"]
Disguise = Literal["pseudonym", "shift", "birth"]
Unit = Literal["day", "week", "month"]

LINKED = "linked"
"""Role of a column that is not the source's: persons' new numbers, the same as in the series that follow the table."""

DISGUISES: Mapping[Disguise, str] = {
    "pseudonym": "pseudonym",
    "shift": "shifted by person",
    "birth": "shifted by person, none over 89",
}
"""What each disguise is called where columns are shown."""


@dataclass(frozen=True, slots=True)
class QuasiIdentifier:
    """A quasi-identifying column of a release.

    Parameters
    ----------
    name
        Its name in the job and in the release.
    source
        The column of the source, its type and how its values travel.
    hierarchy
        Known by its levels; its leaves are bound to the data when the run starts.
    in_database, linked
        Whether it was read from the database; whether it follows a vocabulary's links, which are read when the values
        are known.
    """

    name: str
    source: Column
    hierarchy: HierarchySource
    uncovered: Uncovered
    weight: Fraction
    top_code: int | float | None = None
    in_database: bool = False
    linked: bool = False

    @property
    def column(self) -> exp.Expr:
        """The column of the source, which every template calls `s`."""
        return released_value(self.source) if self.top_code is None else top_coded(self.source, self.top_code)

    @property
    def shown(self) -> str | None:
        """What became of its values before they are generalised."""
        return None if self.top_code is None else f"from {self.top_code} on one value"

    @property
    def typed(self) -> bool:
        """Whether level 0 has the source's type; the label of a value that others were cut to is text."""
        return self.top_code is None

    def labels(self, hierarchy: Hierarchy, level: int) -> Labels:
        """The labels of one level as they are released, where they are not the source's own values."""
        of = self.hierarchy.source if isinstance(self.hierarchy, StoredSource) else self.hierarchy
        if level or not isinstance(of, TopCoded):
            return hierarchy.labels[level]
        return of.labelled(hierarchy, numeric=self.source.kind == "number")

    @property
    def hierarchy_name(self) -> str:
        """The hierarchy's name as it may be published: a file's own name, without its folders."""
        name = self.hierarchy.name
        return Path(name).name if Path(name).suffix.lower() in (".csv", ".tsv", ".txt") else name

    @property
    def travel_type(self) -> exp.DataType:
        """The type in which values reach Python."""
        return travel_type(self.source.kind)


_ZONED = re.compile(r"(?<!\")\bTIME WITH TIME ZONE\b(?!\")")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_NOT_IN_PARQUET = re.compile(
    r"\b(?:U?HUGEINT|BIGNUM|BIT|TIMESTAMP_M?S)(?=[\[,)]|$)|\b(?:UNION|TUPLE)\(|\[\d+\]"
    r"|\bSTRUCT\((?:(?:STRUCT|MAP|DECIMAL|ENUM)\(|TIME(?:STAMP)? WITH TIME ZONE\b|[A-Z0-9_]+(?:\[\])*[,)])"
)
"""Types that are none in Parquet; of a STRUCT without names (a TUPLE from DuckDB 1.5 on) the first field tells."""
_VARIANT = re.compile(r"(?<!\")\bVARIANT\b(?!\")")

_TRAVEL = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "number": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "text": "VARCHAR",
}


def travel_type(kind: str) -> exp.DataType:
    """The type in which values of a column of this kind reach Python."""
    return exp.DataType.build(_TRAVEL[kind])


def released_value(source: Column) -> exp.Expr:
    """A column of `s` as it may leave: an ENUM as text, for its type lists every value, released or not.

    A float leaves with one zero and one NaN: what compares two releases takes both zeros for one, and so every NaN, and
    whoever reads them would still see whose sign has changed.
    """
    value = column(source.name, "s")
    if source.is_enum:
        return exp.cast(value, exp.DataType.build("varchar", dialect="duckdb"))
    return with_one_nan(value, source)


def refuse_lists(source: Column, key: str) -> None:
    """Refuse to release a type that holds an ENUM within: it lists every value, released or not, and is no text.

    Raises
    ------
    JobError
        If it does.
    """
    if _VARIANT.search(source.type):
        raise JobError.at(
            key,
            f"a column of type {source.shown_type} has no type of its own to be checked by; cast it to text or "
            "numbers in a source query",
        )
    if source.holds_enum:
        raise JobError.at(
            key, f"its type {source.shown_type} lists values that no row may hold; cast it to text in a source query"
        )
    if source.is_composed:
        raise JobError.at(
            key,
            f"its type {source.shown_type} is made of others, which may list values that no row holds; cast it to text "
            "in a source query",
        )


def refuse_in_parquet(columns: Iterable[tuple[str, Column]], key: str) -> None:
    """Refuse what a Parquet file gives back as something else: a time with a zone, which it keeps in UTC.

    Parameters
    ----------
    columns
        Those that are released, by their names there.
    key
        Of the release.

    Raises
    ------
    JobError
        For the first of them.
    """
    for name, source in columns:
        if _ZONED.search(source.type):
            where = f"{key}.columns.{name}"
            raise JobError.at(
                where,
                "Parquet has no type TIME WITH TIME ZONE: it keeps the time and loses the zone; cast it to "
                "TIME or text in a source query",
            )


def refuse_own_types_in_parquet(columns: Iterable[tuple[str, Column]]) -> None:
    """Refuse types that Parquet cannot hold, or gives back as others (HUGEINT as DOUBLE, which may round).

    Of a quasi-identifying column only the node decides whether its own type leaves: it is refused where it may.

    Parameters
    ----------
    columns
        Those that leave with the type that they have, by their keys in the job.

    Raises
    ------
    JobError
        For the first of them.
    """
    for key, source in columns:
        if _NOT_IN_PARQUET.search(_QUOTED.sub("q", source.shown_type)):
            raise JobError.at(
                key,
                f"Parquet cannot hold the type {source.shown_type}; cast it to another in a source query, "
                "or release a table",
            )


def top_coded(source: Column, most: int | float) -> exp.Expr:
    """A number column of `s` with its greater values cut, NaN among them (LEAST would turn NULL into the number)."""
    value = column(source.name, "s")
    cut = exp.cast(literal(most), exp.DataType.build(source.type, dialect="duckdb"))
    return exp.Paren(
        this=exp.Case(
            ifs=[exp.If(this=exp.GT(this=value, expression=literal(most)), true=cut)],
            default=with_one_zero(value.copy(), source),
        )
    )


def coarsened(value: exp.Expr, to: Unit, source: Column) -> exp.Expr:
    """The first moment of a date's or timestamp's day, week (from Monday) or month, of the column's own type."""
    moment = exp.cast(value, exp.DataType.build("timestamp", dialect="duckdb"))
    first = exp.TimestampTrunc(this=moment, unit=literal(to.upper()))
    return exp.cast(first, exp.DataType.build(moment_type(source), dialect="duckdb"))


def moment_type(source: Column) -> str:
    """The type in which a shifted or coarsened date leaves."""
    return "DATE" if source.kind == "date" else "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """A column that is released as it stands (sensitive, insensitive), disguised, or never (identifying, free-text).

    Parameters
    ----------
    disguise
        What is released in its place: a pseudonym, a date shifted by the person's days, a shifted date of birth.
    top_code
        What greater numbers become.
    to
        What dates and timestamps are cut to: its first moment; after the shift, where there is one.
    """

    name: str
    source: Column
    role: str
    disguise: Disguise | None = None
    top_code: int | float | None = None
    to: Unit | None = None

    @property
    def aggregated(self) -> bool:
        """Whether a statistic of each class leaves in its place (`sqldeid.tables.plan.aggregated`)."""
        return False

    @property
    def released(self) -> bool:
        """Whether it leaves."""
        return self.role in ("sensitive", "insensitive", LINKED) or self.disguise is not None

    @property
    def column(self) -> exp.Expr:
        """The column of the source, which every template calls `s`."""
        if self.to is not None and self.disguise is None:
            return coarsened(column(self.source.name, "s"), self.to, self.source)
        return released_value(self.source) if self.top_code is None else top_coded(self.source, self.top_code)

    @property
    def typed(self) -> bool:
        """Whether what leaves has the source's type."""
        return self.disguise is None and self.to is None and not self.source.is_enum

    @property
    def leaving(self) -> exp.Expr:
        """What is released of `s`: the column, or what stands beside it in the disguised source."""
        return self.column if self.disguise is None else column(self.disguised_name, "s")

    @property
    def disguised_name(self) -> str:
        """What the released values are called in the disguised source."""
        return f"sqldeid disguise of {self.name}"

    @property
    def shown(self) -> str | None:
        """What became of its values, where they are not those of the source."""
        if self.top_code is not None:
            return f"from {self.top_code} on {self.top_code}"
        if self.role == LINKED:
            return "numbered anew, in random order"
        told = [] if self.disguise is None else [DISGUISES[self.disguise]]
        told += [] if self.to is None else [f"to the {self.to}"]
        return ", ".join(told) or None

    @property
    def travel_type(self) -> exp.DataType:
        """The type in which values reach Python."""
        return travel_type(self.source.kind)
