"""Find a shared schema in a database, whatever its case and schema's name, and say what becomes of each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.schemas import SCHEMAS, Released, SchemaTable, SharedSchema, shared_schema
from sqldeid.sql import column, identifier, render, table_name

LEAST_TABLES = 5
"""Tables of a shared schema from which on a database is taken for one unasked."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table of the database that a shared schema knows.

    Parameters
    ----------
    parts
        Its name as the catalogue has it, catalogue first.
    columns
        Names that the database has, by the shared schema's.
    unknown
        Columns of the database that the shared schema does not know: they are left out.
    """

    known: SchemaTable
    parts: tuple[str, ...]
    columns: Mapping[str, str]
    unknown: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Columns of the shared schema that the database does not have."""
        return tuple(c.name for c in self.known.columns if c.name not in self.columns)


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A shared schema in a database.

    Parameters
    ----------
    tables
        Those that are there, by the shared schema's names.
    others
        Tables beside them that it does not know, as the database names them.
    empty
        Of the tables that a job reads, those without a row now, by the shared schema's names.
    """

    shared: SharedSchema
    tables: Mapping[str, FoundTable]
    others: tuple[str, ...]
    empty: tuple[str, ...] = ()

    @property
    def released(self) -> tuple[Released, ...]:
        """Columns of the release that the database can give."""
        return tuple(c for c in self.shared.columns if self._has(c))

    def _has(self, c: Released) -> bool:
        needed = [(c.of, c.column), *([c.age_at] if c.age_at else [])]
        return all(t in self.tables and name in self.tables[t].columns and self.joins(t) for t, name in needed)

    def joins(self, table: str) -> bool:
        """Whether a table can be joined to the persons: it is theirs, or it and they have the key."""
        if table == self.shared.base:
            return True
        first = self.shared.first[table]
        there = table in self.tables and first.on in self.tables[table].columns
        return there and first.on in self.tables[self.shared.base].columns


def with_empty(found: FoundSchema, names: Iterable[str], engine: Engine) -> FoundSchema:
    """Note which of these tables have no row now. Cost: the first row of each."""
    empty = []
    for name in dict.fromkeys(n for n in names if n in found.tables):
        if not engine.row("insight/find_row", table=engine.resolve(found.tables[name].parts, key="preset"))["there"]:
            empty.append(name)
    return replace(found, empty=tuple(empty))


def told_empty(found: FoundSchema) -> Iterator[str]:
    """A line on the tables that are empty, where there are any."""
    if found.empty:
        none = "it has" if len(found.empty) == 1 else "they have"
        yield f"Empty now: {', '.join(found.empty)}. Until {none} rows, the release is empty there, or is refused."


def find_schema(engine: Engine, name: str | None, schema: str | None) -> FoundSchema | None:
    """The shared schema `name` in a database; without a name the one that it looks like, or None.

    Parameters
    ----------
    schema
        The database's schema to look in; None for all.

    Raises
    ------
    JobError
        If `name` is not there, or is there twice.
    """
    if name is not None:
        found = _find(engine, shared_schema(name), schema)
        if found is None:
            shared = shared_schema(name)
            raise JobError.at(
                "TABLE" if schema else "preset",
                f"no table {shared.base} with {shared.person} is there, with which {shared.title} begins; "
                "name the schema that has it in place of TABLE, or leave --preset away",
            )
        return found
    for each in SCHEMAS:
        found = _find(engine, shared_schema(each), schema, unasked=True)
        if found is not None:
            return found
    return None


def _find(engine: Engine, shared: SharedSchema, schema: str | None, *, unasked: bool = False) -> FoundSchema | None:
    there = [r.parts for r in engine.relations() if schema is None or r.parts[-2].casefold() == schema.casefold()]
    counts: dict[tuple[str, ...], int] = {}
    for parts in there:
        counts[parts[:-1]] = counts.get(parts[:-1], 0) + (parts[-1].casefold() in shared.tables)
    tables: dict[str, FoundTable] = {}
    for name, known in shared.tables.items():
        best = _best([p for p in there if p[-1].casefold() == name], counts, name, unasked=unasked)
        if best is not None:
            tables[name] = _columns(engine, known, best)
    base = tables.get(shared.base)
    if base is None or shared.person not in base.columns:
        return None
    own = [c.column for c in shared.columns if c.of == shared.base]
    if unasked and (len(tables) < LEAST_TABLES or not all(c in base.columns for c in own)):
        return None
    used = {t.parts for t in tables.values()}
    places = {parts[:-1] for parts in used}
    others = tuple(sorted(".".join(p[-2:]) for p in there if p[:-1] in places and p not in used))
    return FoundSchema(shared, tables, others)


def _best(
    found: Sequence[tuple[str, ...]], counts: Mapping[tuple[str, ...], int], name: str, *, unasked: bool
) -> tuple[str, ...] | None:
    """The table in the schema that has most tables of the shared one; JobError for a tie, None where nobody asked."""
    ranked = sorted(found, key=lambda p: (-counts[p[:-1]], p))
    if len(ranked) > 1 and counts[ranked[0][:-1]] == counts[ranked[1][:-1]]:
        if unasked:
            return None
        both = " and ".join(".".join(p[-2:]) for p in ranked[:2])
        raise JobError.at("preset", f"{both}: table {name} is there twice; name the schema that is meant after DB")
    return ranked[0] if ranked else None


def _columns(engine: Engine, known: SchemaTable, parts: tuple[str, ...]) -> FoundTable:
    names = [c.name for c in engine.columns(engine.resolve(parts, key="preset"), key="preset")]
    wanted = {c.name for c in known.columns}
    columns: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in wanted and folded in columns:
            raise JobError.at("preset", f"{'.'.join(parts[-2:])} has two columns that are {folded} but for their case")
        if folded in wanted:
            columns[folded] = name
    return FoundTable(known, parts, columns, tuple(n for n in names if n not in columns.values()))


def query_of(found: FoundSchema, released: Sequence[Released]) -> str:
    """One row per person with the `released` columns, by names that the database has."""
    shared, base = found.shared, found.tables[found.shared.base]
    needed = [c.of for c in released] + [c.age_at[0] for c in released if c.age_at]
    joined = [t for t in shared.first if t in needed]
    alias = {shared.base: "b", **{t: f"j{i}" for i, t in enumerate(joined, 1)}}

    def at(table: str, name: str) -> object:
        return column(found.tables[table].columns[name], alias[table])

    columns = [
        {
            "there": c.there,
            "value": at(c.of, c.column),
            "at": at(*c.age_at) if c.age_at else None,
            "name": identifier(c.name),
        }
        for c in released
    ]
    joins = [
        {
            "table": table_name(*found.tables[t].parts[-2:]),
            "on": identifier(found.tables[t].columns[shared.first[t].on]),
            "base_on": identifier(base.columns[shared.first[t].on]),
            "order": _order(found.tables[t], (*shared.first[t].order, shared.first[t].on)),
            "alias": identifier(alias[t]),
        }
        for t in joined
    ]
    statement = render(
        "insight/join_first",
        base=table_name(*base.parts[-2:]),
        person=identifier(base.columns[shared.person]),
        order=_order(base, (*shared.order, shared.person)),
        columns=columns,
        joins=joins,
    )
    return str(statement).strip()


def _order(table: FoundTable, names: Sequence[str]) -> list[object]:
    return [column(table.columns[n], "s") for n in dict.fromkeys(names) if n in table.columns]
