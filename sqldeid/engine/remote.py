"""What engines other than DuckDB share: the workbench beside them, and what goes between the two."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Asked, Capabilities, Column, Relation
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import JobError, SqldeidError, listed
from sqldeid.sql import Statement, identifier, table_name

PORTION = 1 << 26
"""Bytes of classes that are held here on their way to the workbench: as text, as Arrow somewhat less."""


class Remote(Asked, ABC):
    """A source engine with its workbench; classes and labels go between them, and are counted.

    Parameters
    ----------
    bench
        An in-memory DuckDB of this run, closed with the engine.
    label
        What the database is called in results and messages; never a credential.
    schemas
        Where a table is looked for that is named without one, in order.
    """

    own = True
    """Whether the connection is ours to close."""

    committed = False
    """Whether what was published stays: from then on no interruption undoes it."""

    def __init__(self, bench: DuckDBEngine, label: str, schemas: Sequence[str]) -> None:
        self.bench = bench
        self.label = label
        self.schemas = tuple(schemas)
        self.statements = 0
        self.moved = (0, 0)
        self.run_id = secrets.token_hex(4)
        self._tables = 0
        self._relations: dict[tuple[str, ...], Relation] | None = None
        self._beneath: dict[tuple[str, ...], frozenset[str] | None] = {}

    # ---- what each engine says and does itself ------------------------------------------------------------------

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the engine offers."""

    @abstractmethod
    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> exp.Table:
        """A temporary table of this run with these rows; they are counted as moved."""

    @abstractmethod
    def portions(self, table: exp.Table) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, some `PORTION` bytes at a time, at least once; they are counted as moved."""

    @abstractmethod
    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery, without running it."""

    @abstractmethod
    def read_relations(self) -> Sequence[Relation]:
        """Tables and views of the source, as (schema, name), with what is noted on them."""

    @abstractmethod
    def read_beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """What `beneath` answers, from the catalogue."""

    @abstractmethod
    def begin(self, *, writing: bool = False, place: str = "") -> None:
        """Open the run's snapshot.

        Parameters
        ----------
        place
            The schema of the source's database that the run publishes into; where the engine can, no other run does
            until this one ends.
        """

    @abstractmethod
    def commit(self) -> None:
        """Keep what was published."""

    @abstractmethod
    def close(self) -> SqldeidError | None:
        """Roll back what is open, drop what is ours, close bench and connection; the first error of that."""

    # ---- shared -------------------------------------------------------------------------------------------------

    @property
    def dialect(self) -> str:
        """The engine's SQL."""
        return self.capabilities.dialect

    def written(self, sql: str) -> str:
        """A statement in the engine's own SQL; its names must fit."""
        if not isinstance(sql, Statement):
            return sql
        _refuse_long(sql.parameters.values(), self.capabilities)
        return sql.written_for(self.dialect)

    def count(self, rows: int, size: int) -> None:
        """Note what went over the wire."""
        self.moved = (self.moved[0] + rows, self.moved[1] + size)

    def to_bench(self, table: exp.Table) -> exp.Table:
        """Bring a temporary table of classes to the workbench, portion by portion: there it may spill, not here."""
        with closing(self.portions(table)) as parts:
            first = next(parts)
            second = next(parts, None)
            if second is None:
                return self.bench.put("brought", first)
            with draining(first.schema, chain((first, second), parts)) as rows:
                return self.bench.put("brought", rows)

    def from_bench(self, table: exp.Table) -> exp.Table:
        """Send a table of the workbench to the source engine."""
        columns = [identifier(c.name) for c in self.bench.columns(table)]
        return self.put("sent", self.bench.ask("engine/read_table", table=table, columns=columns))

    def relations(self) -> Sequence[Relation]:
        """Tables and views of the source."""
        return list(self._catalogue().values())

    def beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """The tables whose rows a resolved table or view shows, itself among them; None where that is not known."""
        if parts not in self._beneath:
            self._beneath[parts] = self.read_beneath(parts)
        return self._beneath[parts]

    def look_in(self, schema: str) -> None:
        """Have `relations` tell of a schema, too, where the engine reads its catalogue schema by schema."""

    def refresh(self) -> None:
        """Forget the catalogue as read before; after objects were created or dropped."""
        self._relations = None

    def _catalogue(self) -> dict[tuple[str, ...], Relation]:
        if self._relations is None:
            self._relations = {r.parts: r for r in self.read_relations()}
        return self._relations

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The table or view of that name: the very one, else the only one that differs in case alone.

        Raises
        ------
        JobError
            If there is none, or more than one that differs in case.
        """
        there = self._catalogue()
        readings = [(schema, *parts) for schema in self.schemas] if len(parts) == 1 else [tuple(parts)]
        exact = [r for r in readings if r in there]
        if exact:
            return table_name(*exact[0])
        folded = [tuple(p.casefold() for p in r) for r in readings]
        found = [name for name in there if tuple(p.casefold() for p in name) in folded]
        if len(found) == 1:
            return table_name(*found[0])
        name = ".".join(parts)
        if found:
            raise JobError.at(
                key, f"{len(found)} tables are called {name} but for case; write the name as it is", unnamed="source"
            )
        self.refuse_hidden(parts, key)
        raise JobError.at(key, f"there is no table or view {name} in the database; {_offer(there)}", unnamed="source")

    def refuse_hidden(self, parts: tuple[str, ...], key: str) -> None:
        """Raise where a table of that name is there, and hidden from the user; an engine that can tell does."""

    def spells_alike(self, relation: exp.Expr, column: Column) -> bool:
        """No, unless a server says more: to Spark, text of another collation than that of bytes is another type."""
        return False

    def output_names(self, query: exp.Query, *, key: str = "") -> tuple[str, ...]:
        """The names that a query gives its columns, equal ones included, without running it."""
        return tuple(c.name for c in self.columns(exp.Subquery(this=query), key=key))

    def workbench(self, name: str) -> exp.Table:
        """A temporary table's name, unique to this call, cut to what the engine keeps."""
        self._tables += 1
        full = f"sqldeid_{self.run_id}_{self._tables}_{name}"
        return table_name(shortened(full, self.capabilities.max_identifier_bytes))

    def drop(self, table: exp.Table) -> None:
        """Drop a temporary table of this run early, once: its name is not given again."""
        self.run("engine/drop_table", table=table)


@contextmanager
def draining(schema: pa.Schema, parts: Iterable[pa.Table]) -> Iterator[pa.RecordBatchReader]:
    """Tables as a reader; what goes wrong with them is raised in the end, rather than as an error of who reads."""
    failed: list[BaseException] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for part in parts:
                yield from part.to_batches()
        except (SqldeidError, KeyboardInterrupt) as error:
            failed.append(error)

    yield pa.RecordBatchReader.from_batches(schema, batches())
    if failed:
        raise failed[0]


def shortened(name: str, most: int) -> str:
    """A name cut to so many bytes; what makes it unique stands at its start."""
    return name.encode()[:most].decode(errors="ignore")


def _offer(there: dict[tuple[str, ...], Relation]) -> str:
    names = sorted(".".join(parts) for parts in there)
    return f"it has {listed(names)}" if names else "it has no tables that you may read"


def _refuse_long(parts: object, capabilities: Capabilities) -> None:
    """Refuse names that the engine would cut in silence."""
    most, waiting = capabilities.max_identifier_bytes, [parts]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Identifier):
            if len(str(part.this).encode()) > most:
                raise JobError(
                    f'the name "{part.this}" has more than {most} bytes, and {capabilities.dialect} would cut it; '
                    "shorten it, or give it another name in a source query"
                )
        elif isinstance(part, exp.Expr):
            waiting += part.find_all(exp.Identifier)
        elif isinstance(part, dict):
            waiting += part.values()
        elif not isinstance(part, str) and hasattr(part, "__iter__"):
            waiting += part
