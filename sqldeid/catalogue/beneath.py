"""Whether two releases read rows of the same tables, however the job names them: by a view, a partition, an heir.

A view shows rows of any table that its text names, a table those of its partitions and heirs. So two relations are
taken to have rows in common where there is a table beneath both; where it is not known what lies beneath one, always.
Two partitions have none in common, but each has with the table that both are of.

Assumes
    Copies are other tables: one that was filled by a query, files by another name, a table of another server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import tables_of

Beneath = tuple[frozenset[str] | None, ...]
"""Of each relation that a release reads the tables beneath it; None where they are not known."""


def beneath(source: exp.Expr, engine: Engine) -> Beneath:
    """What lies beneath the relations that a source names."""
    within = exp.select("*").from_(source.copy())  # a relation by itself is no reference to one within a query
    return tuple(engine.beneath(parts) for parts in tables_of(within))


def meet(here: Sequence[frozenset[str] | None], there: Sequence[frozenset[str] | None]) -> bool:
    """Whether a relation of one source has rows in common with one of the other."""
    return any(_meet(a, b) for a in here for b in there)


def read_alike(here: Sequence[frozenset[str] | None], there: Sequence[frozenset[str] | None]) -> bool:
    """Whether each relation of either source has rows in common with one of the other."""
    forth = all(any(_meet(a, b) for b in there) for a in here)
    return bool(here and there) and forth and all(any(_meet(a, b) for a in here) for b in there)


def own_tables(here: Beneath, there: Beneath, engine: Engine) -> bool:
    """Whether either source reads a table that the other does not: not where it is not known what lies beneath one.

    Views are none: two of one table read the same. What the catalogue does not tell of (files) is none, either.
    """
    if None in here or None in there:
        return False
    tables = {".".join(r.parts[-2:]).casefold() for r in engine.relations() if not r.is_view}
    sides = [{n for of in side if of is not None for n in of if _among(n, tables)} for side in (here, there)]
    return bool(sides[0] - sides[1] and sides[1] - sides[0])


def _among(name: str, tables: set[str]) -> bool:
    """Whether a name is one of these; Spark puts the catalogue's before it."""
    return name in tables or name.partition(".")[2] in tables


def group(sources: Iterable[Beneath]) -> list[int]:
    """A number for each source, the same for those that read alike, and for those that read alike with one of these."""
    every = list(sources)
    numbers = list(range(len(every)))
    for i, here in enumerate(every):
        for j, there in enumerate(every[:i]):
            if numbers[i] != numbers[j] and read_alike(here, there):
                old, new = max(numbers[i], numbers[j]), min(numbers[i], numbers[j])
                numbers = [new if n == old else n for n in numbers]
    return numbers


def _meet(here: frozenset[str] | None, there: frozenset[str] | None) -> bool:
    return here is None or there is None or not here.isdisjoint(there)
