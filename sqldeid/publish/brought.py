"""Releases of a server's tables in files here: staged in the server, brought, written aside, read back and verified.

    1. The server writes the release into a temporary table of its own.
    2. Its rows come out in parts, so that they are never all in memory, and the workbench writes them into the file,
       in a private folder beside the target (`sqldeid.publish.places`).
    3. What the file holds is read again and goes back into another temporary table of the server, beside the source:
       that is what is verified. Nothing of what was brought is looked at, only what was written.
    4. The file, or the folder, is renamed into place. The server keeps nothing: temporary tables go with the run.

How rows leave a server, and how they go back, is its own (`Wire`).

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.engine.base import Column
from sqldeid.engine.remote import Remote
from sqldeid.engine.streams import read_batches
from sqldeid.errors import JobError, UnreadError, naming_unread
from sqldeid.publish.notes import LINKED_NOTE, Note
from sqldeid.publish.places import FreshFile, ParquetFolder, TableStatement, ViewStatement
from sqldeid.sql import Statement, identifier, render

PART_BYTES = 16 << 20
"""Of what comes out of the server at a time, about; a row is never cut."""

AT_ONCE = 65_536
"""Rows that are read again at a time."""

_TEXT = exp.DataType.build("varchar", dialect="duckdb")
_AS_THEY_ARE = ("integer", "float", "boolean", "date", "timestamp")
_READ_FROM_TEXT = ("VARCHAR", "UUID", "TIME", "TIMESTAMP WITH TIME ZONE")
"""Types whose values travel as text, and that a file holds with nothing lost."""

_MOST_DIGITS = 38
"""Of a DECIMAL in a file."""


class Wire(Protocol):
    """How rows of a release leave a server, and how those of a file go back into it; both are counted as moved."""

    @property
    def engine(self) -> Remote:
        """The server."""

    def parts(
        self, staged: exp.Table, columns: Sequence[Column], coded: Set[str], *, most: int
    ) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, some `most` bytes at a time, once at least.

        Parameters
        ----------
        columns
            Those of the table.
        coded
            Names of those whose values are told apart by their text.
        """

    def put(self, name: str, rows: pa.RecordBatchReader, types: Sequence[exp.DataType]) -> exp.Table:
        """A temporary table of the server with these rows, read from text where that is how they come, of these types.

        Raises
        ------
        JobError
            If the server cannot take a value.
        """


@dataclass(frozen=True, slots=True)
class Brought:
    """Files here that take the releases of a server.

    Parameters
    ----------
    wire
        To where the source lies; that engine's bench writes `files`.
    files
        The file or folder on the bench.
    """

    wire: Wire
    files: FreshFile | ParquetFolder

    @property
    def engine(self) -> Remote:
        """Where the source lies."""
        return self.wire.engine

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Have the server write the release, bring it, write the file; what the file holds, in the server again.

        Raises
        ------
        JobError
            If a column is of a type that the file cannot hold.
        """
        staged = self.engine.workbench(f"{note.release}_staged")
        self.engine.execute(temporary(statement(staged)))  # where nothing else is written
        brought = self._bring(staged, note)
        self.engine.drop(staged)
        written = self.files.write(lambda target: render("publish/copy_table", target=target, table=brought), note)
        self.engine.bench.drop(brought)
        return carried_back(written, self.wire, note.release)

    def _bring(self, staged: exp.Table, note: Note) -> exp.Table:
        """The staged rows on the bench, in their order and in the types of the file."""
        bench, columns, name = self.engine.bench, self.engine.columns(staged), note.release
        node = note.content.get("node", note.content.get("hierarchies"))  # of local recoding, whose layers have many
        start = f"{name}/" if LINKED_NOTE in note.content else ""
        coded = {q.removeprefix(start) for q in node} if isinstance(node, Mapping) else set()
        typed = [
            {"name": identifier(c.name), "type": _type_in_file(c, self.files.destination.key(name))} for c in columns
        ]
        brought, key = bench.workbench(f"{name}_brought"), self.files.destination.key(name)
        with (
            naming_unread(lambda name: f"{key}.columns.{name}"),
            closing(self.wire.parts(staged, columns, coded, most=PART_BYTES)) as parts,
        ):
            for number, rows in enumerate(parts):
                _refuse_nan(rows, columns)
                part = bench.put(f"{name}_part", rows)
                bench.run("publish/bring_rows", brought=brought, part=part, first=not number, columns=typed)
                bench.drop(part)
        return brought

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused before anything runs (`sqldeid.engine.offers`)."""
        return self.files.write_computed(statement, note, tables)

    def publish(self) -> tuple[str, ...]:
        """Rename the file or folder into place."""
        return self.files.publish()


def temporary(statement: str) -> str:
    """A release's statement, to be made as a temporary table.

    Raises
    ------
    TypeError
        If it is no rendered template, or one that stays.
    """
    if not isinstance(statement, Statement):
        raise TypeError("a release is made by a rendered template")
    made = render(statement.template, **{**statement.parameters, "temporary": True})
    if not made.startswith("CREATE TEMPORARY "):
        raise TypeError(f"{statement.template} has no parameter temporary")
    return made


def carried_back(written: exp.Expr, wire: Wire, name: str) -> exp.Table:
    """What a file or table of the bench holds, in a temporary table of the server, in the types of the file.

    Raises
    ------
    JobError
        If the server cannot take a value of it.
    """
    bench = wire.engine.bench
    columns = bench.columns(written)
    types = [exp.DataType.build(c.type, dialect="duckdb") for c in columns]
    travelling = [{"name": identifier(c.name), "text": c.kind not in _AS_THEY_ARE} for c in columns]
    text = render("publish/read_written", written=written, columns=travelling)
    with read_batches(bench, text, AT_ONCE) as rows:
        return wire.put(f"{name}_written", rows, types)


def _refuse_nan(rows: pa.Table, columns: Sequence[Column]) -> None:
    """Refuse the NaN of a server's decimals, which a file's do not have."""
    for c in columns:
        if c.kind == "number" and pc.any(pc.equal(rows.column(c.name), "NaN")).as_py():
            raise UnreadError("holds NaN, which a file's decimals cannot; mend it in a source query", c.name)


def _type_in_file(c: Column, key: str) -> exp.DataType:
    """The type of a column in the file.

    Raises
    ------
    JobError
        If no file holds what the server's type says.
    """
    if c.is_enum:
        return _TEXT
    held = c.kind in _AS_THEY_ARE or (c.kind == "number" and _fits(c.type))
    if held or c.type in _READ_FROM_TEXT:
        return exp.DataType.build(c.type, dialect="duckdb")
    key = f"{key}.columns.{c.name}"
    raise JobError.at(
        key,
        f"a file cannot hold the type {c.shown_type}; cast it to another in a source query, or leave release.into out",
    )


def _fits(type_: str) -> bool:
    """Whether a file has a DECIMAL as it is spelt: Postgres' may have more places than digits."""
    digits, scale = type_.partition("(")[2].rstrip(")").split(",")
    return int(scale) <= int(digits) <= _MOST_DIGITS
