"""What a view in DuckDB reads, by its text: whoever releases it and its table releases the same persons twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqldeid.engine.base import Relation

if TYPE_CHECKING:
    from sqldeid.sql.viewed import Viewed


def tables_beneath(parts: tuple[str, ...], relations: Iterable[Relation]) -> frozenset[str] | None:
    """The names, in small letters, of all that a table or view shows; None where that is not known.

    A database's own name is left out, for files are moved; a name in a text means any that it may mean.
    """
    there = {tuple(part.casefold() for part in r.parts): r for r in relations}
    found: set[str] = set()
    waiting = [tuple(part.casefold() for part in parts)]
    while waiting:
        name = waiting.pop()
        for full in [full for full in there if full[-len(name) :] == name] or [name]:
            shown = ".".join(full[-2:])
            if shown in found:
                continue
            found.add(shown)
            if full not in there or not there[full].is_view:
                continue
            read = _view_reads(there[full].definition)
            if read is None:
                return None
            found |= {file.casefold() for file in read.files}
            waiting += [tuple(part.casefold() for part in names) for names in read.names]
    return frozenset(found)


def _view_reads(definition: str) -> Viewed | None:
    from sqldeid.sql.viewed import view_reads  # most sources are tables

    return view_reads(definition, "duckdb")
