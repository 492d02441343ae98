"""What a view on Spark reads, by its text: whoever releases it and its table releases the same persons twice.

The names in a view's text are looked up in the catalogue and schema that it was made in. What is not known is told as
such: a temporary view, a function in the place of a table, files, a text that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqldeid.errors import SqldeidError
from sqldeid.sql.viewed import view_reads

Described = Callable[[tuple[str, ...]], Sequence[dict[str, Any]]]
"""What the catalogue tells of a table or view by its whole name; nothing of what is known to be a table."""

_WHOLE = 3
"""Parts of a whole name: catalogue, schema, table. A catalogue whose schemas have schemas has more."""


def tables_beneath(parts: tuple[str, ...], place: tuple[str, ...], described: Described) -> frozenset[str] | None:
    """The whole names, in small letters, of all tables that a table or view shows; None where that is not known.

    Parameters
    ----------
    parts
        Its name as it was resolved; of one part where it is a temporary view.
    place
        The catalogue and schema of the session.
    """
    found: set[str] = set()
    waiting = [_whole(parts, place)] if len(parts) > 1 else [parts]
    while waiting:
        name = waiting.pop()
        if len(name) != _WHOLE:
            return None
        shown = ".".join(name).casefold()
        if shown in found:
            continue
        found.add(shown)
        read = _read_by(name, described)
        if read is None:
            return None
        waiting += read
    return frozenset(found)


def _whole(parts: tuple[str, ...], place: tuple[str, ...]) -> tuple[str, ...]:
    return (*place[: max(_WHOLE - len(parts), 0)], *parts)


def _read_by(name: tuple[str, ...], described: Described) -> list[tuple[str, ...]] | None:
    """The whole names of what a view's text names, none of a table; None where it cannot be told."""
    try:
        rows = described(name)
        if not rows:
            return []
        told = _facts(rows)
        if "View Text" not in told:
            return None if told.get("Type", "VIEW") == "VIEW" else []
        place = _parts(parse_one(told["View Catalog and Namespace"], into=exp.Table, dialect="spark"))
    except (SqldeidError, SqlglotError, KeyError):
        return None
    read = view_reads(told["View Text"], "spark")
    return None if read is None or read.files else [_whole(parts, place) for parts in read.names]


def _facts(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What is told below the columns."""
    heads = [i for i, row in enumerate(rows) if row["col_name"].startswith("# Detailed ")]
    return {row["col_name"]: row["data_type"] for row in rows[heads[-1] :]} if heads else {}


def _parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part.name for part in table.parts)
