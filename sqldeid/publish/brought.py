"""Releases of a server's tables in files here: staged in the server, brought, written aside, read back and verified.

    1. The server writes the release into a temporary table of its own.
    2. Its rows come out in parts, so that they are never all in memory, and the workbench writes them into the file,
       in a private folder beside the target (`sqldeid.publish.places`).
    3. What the file holds is read again and goes back into another temporary table of the server, beside the source:
       that is what is verified. Nothing of what was brought is looked at, only what was written.
    4. The file, or the folder, is renamed into place. The server keeps nothing: its transaction is rolled back.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import closing
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Column
from sqldeid.engine.postgres import PostgresEngine
from sqldeid.engine.streams import read_batches
from sqldeid.errors import JobError
from sqldeid.publish.notes import Note
from sqldeid.publish.places import FreshFile, ParquetFolder, TableStatement, ViewStatement
from sqldeid.sql import column, identifier, render

PART_BYTES = 16 << 20
"""Of text that comes out of the server at a time; a row is never cut."""

AT_ONCE = 65_536
"""Rows that go back at a time."""

_TEXT = exp.DataType.build("varchar", dialect="duckdb")
_AS_THEY_ARE = ("integer", "float", "boolean", "date", "timestamp")
_READ_FROM_TEXT = ("VARCHAR", "UUID", "TIME", "TIMESTAMP WITH TIME ZONE")
"""Types whose values travel as text, and that a file holds with nothing lost."""

_MOST_DIGITS = 38
"""Of a DECIMAL in a file."""


@dataclass(frozen=True, slots=True)
class Brought:
    """Files here that take the releases of a server.

    Parameters
    ----------
    engine
        Where the source lies; its bench writes `files`.
    files
        The file or folder on the bench.
    """

    engine: PostgresEngine
    files: FreshFile | ParquetFolder

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Have the server write the release, bring it, write the file; what the file holds, in the server again.

        Raises
        ------
        JobError
            If a column is of a type that the file cannot hold.
        """
        staged = self.engine.workbench(f"{note.release}_staged")
        text = self.engine.written(statement(staged))
        self.engine.execute(text.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1))  # where nothing else is written
        brought = self._bring(staged, note)
        self.engine.drop(staged)
        written = self.files.write(lambda target: render("publish/copy_table", target=target, table=brought), note)
        self.engine.bench.drop(brought)
        return carried_back(written, self.engine, note.release)

    def _bring(self, staged: exp.Table, note: Note) -> exp.Table:
        """The staged rows on the bench, in their order and in the types of the file."""
        bench, columns, name = self.engine.bench, self.engine.columns(staged), note.release
        node = note.content.get("node")
        coded = set(node) if isinstance(node, Mapping) else set()
        typed = [
            {"name": identifier(c.name), "type": _type_in_file(c, self.files.destination.key(name))} for c in columns
        ]
        brought = bench.workbench(f"{name}_brought")
        text = render("publish/read_staged", "postgres", table=staged, columns=[_as_coded(c, coded) for c in columns])
        with closing(self.engine.parts(text, most=PART_BYTES)) as parts:
            for number, rows in enumerate(parts):
                part = bench.put(f"{name}_part", rows)
                bench.execute(render("publish/bring_rows", brought=brought, part=part, first=not number, columns=typed))
                bench.drop(part)
        return brought

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused before anything runs (`sqldeid.engine.offers`)."""
        return self.files.write_computed(statement, note, tables)

    def publish(self) -> tuple[str, ...]:
        """Rename the file or folder into place."""
        return self.files.publish()


def carried_back(written: exp.Expr, engine: PostgresEngine, name: str) -> exp.Table:
    """What a file or table of the bench holds, in a temporary table of the server, in the types of the file.

    Raises
    ------
    JobError
        If the server cannot take a value of it.
    """
    columns = engine.bench.columns(written)
    types = [exp.DataType.build(c.type, dialect="duckdb") for c in columns]
    travelling = [{"name": identifier(c.name), "text": c.kind not in _AS_THEY_ARE} for c in columns]
    text = render("publish/read_written", written=written, columns=travelling)
    with read_batches(engine.bench, text, AT_ONCE) as rows:
        return engine.put(f"{name}_written", rows, types)


def _as_coded(c: Column, coded: Set[str]) -> exp.Expr:
    """A column as it comes: text that classes are told apart by as they see it, without the blanks of CHAR(n).

    A cast keeps the column's name.
    """
    found = column(c.name, "t")
    return exp.cast(found, "TEXT") if c.name in coded and c.kind == "text" and not c.is_enum else found


def _type_in_file(c: Column, key: str) -> exp.DataType:
    """The type of a column in the file.

    Raises
    ------
    JobError
        If no file holds what the server's type says.
    """
    if c.is_enum:
        return _TEXT
    held = c.kind in _AS_THEY_ARE or (c.kind == "number" and _digits(c.type) <= _MOST_DIGITS)
    if held or c.type in _READ_FROM_TEXT:
        return exp.DataType.build(c.type, dialect="duckdb")
    key = f"{key}.columns.{c.name}"
    raise JobError(
        f"{key}: a file cannot hold the type {c.shown_type}; cast it to another in a source query, or leave "
        "release.into out",
        key=key,
    )


def _digits(type_: str) -> int:
    """Of a DECIMAL as it is spelt."""
    return int(type_.partition("(")[2].partition(",")[0] or _MOST_DIGITS + 1)
