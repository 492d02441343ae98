"""What a view of DuckDB reads, by its text: whoever releases it and its table releases the same persons twice.

The text is parsed, never run. A name in it means what DuckDB takes it for, where that does not depend on who asks: a
name without a schema is first looked for among temporary tables, then in the view's own schema. Another one means any
relation that it may mean. A view whose text is not understood, or that calls a macro with a query in it or a function
that runs a text, may read any table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sqldeid.engine.base import Relation

if TYPE_CHECKING:
    from sqldeid.sql.viewed import Viewed

Parts = tuple[str, ...]
_RUNNING = frozenset({"query", "query_table"})
"""Functions that read the table, or run the query, of a text."""
_QUERY = re.compile(r"\b(select|from|table)\b", re.IGNORECASE)
_CALLED = re.compile(r'"((?:[^"]|"")+)"\s*\(|(\w+)\s*\(')


def tables_beneath(
    parts: Parts, there: Mapping[Parts, Relation], macros: Callable[[], Iterable[tuple[str, str]]]
) -> frozenset[str] | None:
    """The names, with their schemas and in small letters, of all that a table or view shows, and its own.

    The database's name is left out, for files are moved. None where it is not known.

    Parameters
    ----------
    parts
        Its name as it was resolved.
    there
        Tables and views of the catalogue by the parts of their names in small letters.
    macros
        Lists the names and definitions of macros; asked where a view calls a function.
    """
    found: set[str] = set()
    called: set[str] = set()
    seen: set[Parts] = set()
    waiting = _meant(_small(parts), (), there)
    while waiting:
        full = waiting.pop()
        found.add(".".join(full[-2:]))
        if full in seen or full not in there or not there[full].is_view:
            continue
        seen.add(full)
        read = _view_reads(there[full].definition)
        if read is None:
            return None
        found |= {file.casefold() for file in read.files}
        called |= _called(there[full].definition)
        for name in read.names:
            waiting += _meant(_small(name), full[:-1], there)
    return None if called and called & _reading(macros()) else frozenset(found)


def calls_error(definitions: Iterable[str], macros: Iterable[tuple[str, str]]) -> bool:
    """Whether a view's text calls the function that stops a query with words of the view's own, or a macro that does.

    Parameters
    ----------
    definitions
        The texts of views.
    macros
        Names and definitions of macros.
    """
    stopping = _calling(frozenset({"error"}), macros)
    return any(_called(text) & stopping for text in definitions)


def _meant(name: Parts, place: Parts, there: Mapping[Parts, Relation]) -> list[Parts]:
    """The relations that a name may mean, by all their parts; the name itself where it means none that is known.

    Parameters
    ----------
    place
        Database and schema of the view whose text has the name; none of what was resolved.
    """
    own, passing = (*place, *name), ("temp", "main", *name)
    if len(name) == 1 and own in there:  # DuckDB goes on to the user's search path only where there is none
        return [own, passing] if passing in there else [own]
    found = [full for full in there if full[-len(name) :] == name]
    if len(name) == 2:  # of a database, in the schema that it has for names without one
        found += [full for full in there if (full[0], full[-1]) == name and full not in found]
    return found or [name]


def _view_reads(definition: str) -> Viewed | None:
    from sqldeid.sql.viewed import view_reads  # most sources are tables

    return view_reads(definition, "duckdb")


def _called(text: str) -> set[str]:
    """What a text calls, in small letters; some more."""
    found = _CALLED.findall(text)
    return {(quoted.replace('""', '"') or bare).casefold() for quoted, bare in found}


def _reading(macros: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The functions that may read tables: macros with a query in them, and those that call such a one."""
    defined = list(macros)
    return _calling(_RUNNING | {name.casefold() for name, text in defined if _QUERY.search(text)}, defined)


def _calling(found: frozenset[str], macros: Iterable[tuple[str, str]]) -> frozenset[str]:
    """These functions, and the macros that call one of them, be it by another macro."""
    defined = [(name.casefold(), _called(definition)) for name, definition in macros]
    while more := {name for name, called in defined if called & found} - found:
        found |= more
    return found


def _small(parts: Parts) -> Parts:
    return tuple(part.casefold() for part in parts)
