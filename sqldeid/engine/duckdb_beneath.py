"""What a view of DuckDB reads, by its text: whoever releases it and its table releases the same persons twice.

The text is parsed, never run. What is not understood counts as read: every table whose name stands anywhere in a text
that does not parse, and every one of a name where the schema is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqldeid.engine.base import Relation
from sqldeid.sql.defined import names_read

Parts = tuple[str, ...]


def tables_beneath(parts: Parts, there: Mapping[Parts, Relation]) -> frozenset[str]:
    """The names, with their schemas and in small letters, of all tables that a table or view shows, and its own.

    The database's name is left out, for files are moved.

    Parameters
    ----------
    parts
        Its name as it was resolved.
    there
        Tables and views of the catalogue by the parts of their names in small letters.
    """
    seen: set[Parts] = set()
    waiting = [_small(parts)]
    while waiting:
        named = waiting.pop()
        for name in [full for full in there if _may_mean(named, full)] or [named]:
            if name not in seen:
                seen.add(name)
                waiting += _read_by(there[name], there) if name in there and there[name].is_view else ()
    return frozenset(".".join(name[-2:]) for name in seen)


def _read_by(view: Relation, there: Mapping[Parts, Relation]) -> Iterator[Parts]:
    """What a view reads: names as it writes them."""
    names = names_read(view.definition, "duckdb")
    if names is None:
        words = {word.casefold() for word in re.findall(r"\w+", view.definition)}
        yield from (full for full in there if set(re.findall(r"\w+", full[-1])) <= words)
        return
    yield from map(_small, names)


def _may_mean(parts: Parts, full: Parts) -> bool:
    """Whether a name as a text writes it may be that relation: either may leave out what stands before."""
    return full[-len(parts) :] == parts or parts[-len(full) :] == full


def _small(parts: Parts) -> Parts:
    return tuple(part.casefold() for part in parts)
