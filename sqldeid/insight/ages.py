"""An age in the place of a date of birth: the lines that a proposed job offers for it, to be copied as they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from sqlglot import exp

from sqldeid.insight.identifiers import is_death_date
from sqldeid.insight.profile import ColumnFacts, TableFacts
from sqldeid.insight.words import says_age, says_birth
from sqldeid.sql import column, identifier, literal, render, table_name

TOP = 90
_DAY = len("2000-01-01")
_NAMES = ("age", *(f"age_{i}" for i in range(1, 10_000)))
"""Names for the new column, of which no table has all."""


def age_of(facts: TableFacts, birth: ColumnFacts) -> tuple[str, str, dict[str, object]] | None:
    """What may stand in the place of a date of birth.

    Returns
    -------
    The day at which the age is, in words; a source query, whose spelling is that of every engine; the new column's name
    and keys. None of a column that is no date of birth, beside an age, or of names that a comment cannot hold.
    """
    if not _is_birth(birth) or any(says_age(c.name) for c in facts.columns):
        return None
    moment = max(_moments(facts), key=lambda c: c.there, default=None)
    taken = {c.name.casefold() for c in facts.columns}
    name = next(n for n in _NAMES if n not in taken)
    first = date(date.today().year, 1, 1)
    at = column(moment.name, "s") if moment is not None else literal(str(first))
    query = str(
        render(
            "insight/add_age",
            source=table_name(*facts.parts[-2:]),
            birth=_as_date(column(birth.name, "s")),
            at=_as_date(at),
            age=identifier(name),
        )
    ).strip()
    if not query.isprintable():
        return None
    said = f"at {moment.name}" if moment is not None else f"on {first}; put the day of your study there"
    return said, query, {name: {"role": "quasi-identifying", "hierarchy": "age/5-10-20", "top_code": TOP}}


def _as_date(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, exp.DataType.build("date"))


def _is_birth(c: ColumnFacts) -> bool:
    dated = c.kind in ("date", "timestamp") or (
        c.kind == "text" and c.looks.get("date", 0.0) == 1 and c.longest >= _DAY
    )
    return dated and c.there > 0 and says_birth(c.name)


def _moments(facts: TableFacts) -> Iterator[ColumnFacts]:
    """Columns that say when something happened to a person, other than birth and death."""
    for c in facts.columns:
        if c.kind in ("date", "timestamp") and c.there and not says_birth(c.name) and not is_death_date(c):
            yield c
