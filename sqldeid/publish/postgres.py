"""Releases in Postgres: staged under names of the run, verified, and renamed, granted and committed in one transaction.

Readers keep the old release until COMMIT; the locks that renaming needs are held only from the last step on.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Column, Relation
from sqldeid.engine.postgres import PostgresEngine
from sqldeid.engine.remote import Remote
from sqldeid.errors import JobError
from sqldeid.publish.brought import Brought, carried_back, temporary
from sqldeid.publish.comments import Said
from sqldeid.publish.existing import published as find_published
from sqldeid.publish.existing import refuse_existing
from sqldeid.publish.notes import Note, ours
from sqldeid.publish.places import (
    SNAPSHOT,
    Destination,
    FreshFile,
    ParquetFolder,
    Staging,
    TableStatement,
    ViewStatement,
)
from sqldeid.sql import Statement, column, identifier, literal, render, table_name

_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


@dataclass(frozen=True, slots=True)
class _Staged:
    """An object under its name of the run, and the one that it will have."""

    name: str
    final: str
    is_view: bool


@dataclass(slots=True)
class InPostgres:
    """The source's database takes the release, inside the run's transaction."""

    engine: PostgresEngine
    destination: Destination
    old: tuple[Relation, ...] = ()
    staged: list[_Staged] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create a table, or a snapshot and a view over it, with the note on each; nobody sees it before COMMIT."""
        self._prepare()
        self.written.append(note.release)
        if self.destination.kind != "view":
            return self._table(statement, note, note.release)
        snapshot = self._table(statement, note, note.release + SNAPSHOT)
        view = self._stage(note.release, is_view=True)
        columns = [identifier(c.name) for c in self.engine.columns(snapshot)]
        self.engine.run("publish/create_view", view=view, snapshot=snapshot, columns=columns)
        self._comment(view, note, is_view=True)
        return view

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused before anything runs (`sqldeid.engine.offers`)."""
        raise JobError(f"tables.{note.release}.view: a computed view is not on Postgres; leave view out")

    def publish(self) -> tuple[str, ...]:
        """Drop what is replaced, give the staged ones their names and the old ones' grants, and commit."""
        grants = {r.parts[-1]: self._grants(r.parts[-1]) for r in self.old}
        for relation in sorted(self.old, key=lambda r: not r.is_view):
            drop = "publish/drop_view" if relation.is_view else "engine/drop_table"
            self.engine.run(drop, table=table_name(*relation.parts))
        for made in self.staged:
            table = table_name(self.destination.schema, made.name)
            self.engine.execute(render("publish/rename_table", "postgres", table=table, name=identifier(made.final)))
            for grant in grants.get(made.final, ()):
                self._grant(made.final, *grant)
        self.engine.commit()
        return tuple(self.destination.shown(name) for name in self.written)

    def _grants(self, name: str) -> list[tuple[str, str, bool, str]]:
        found = self.engine.read("publish/list_grants", schema=literal(self.destination.schema), name=literal(name))
        return [(role, right, grantable, column) for role, right, grantable, column in found if right in _RIGHTS]

    def _grant(self, name: str, role: str, right: str, grantable: bool, column: str) -> None:
        """Give a right again; one on a column that the release no longer has goes."""
        table = table_name(self.destination.schema, name)
        if column and column not in {c.name for c in self.engine.columns(table)}:
            return
        self.engine.execute(
            render(
                "publish/grant_right",
                "postgres",
                table=table,
                privilege=exp.Var(this=right),
                column=identifier(column) if column else None,
                role=identifier(role) if role else None,
                grantable=grantable,
            )
        )

    def _prepare(self) -> None:
        if self.written:
            return
        name = self.destination.schema
        if not self.engine.read("publish/list_schemas", name=literal(name)):
            self.engine.run("publish/create_schema", schema=exp.Table(this=identifier(name)))

    def _table(self, statement: Callable[[exp.Table], str], note: Note, name: str) -> exp.Table:
        table = self._stage(name, is_view=False)
        self._fill(statement, table)
        self._without_domains(table)
        self._comment(table, note, is_view=False)
        self.engine.analyze_kept(table)
        return table

    def _fill(self, statement: Callable[[exp.Table], str], table: exp.Table) -> None:
        """Write the rows; those that a table or view of somebody's gives are read where nothing else can be written.

        Functions of a view or of a policy run as the run's user.
        """
        made = statement(table)
        if not (isinstance(made, Statement) and any(t.db and t != table for t in made.tables)):
            self.engine.execute(made)
            return
        kept = self.engine.workbench("written")
        self.engine.execute(temporary(statement(kept)))
        self.engine.run("publish/copy_table", target=table, table=kept)
        self.engine.drop(kept)

    def _without_domains(self, table: exp.Table) -> None:
        """Give columns whose type is a domain of the source the type that it is made from.

        A domain's rules and default may list values that no row shows, as an ENUM does, and may change later.
        """
        place = {"schema": literal(table.db), "name": literal(table.name)}
        while found := self.engine.read("publish/list_domains", **place):  # a domain may be made from another
            for name, type_ in found:
                asked = {"table": table, "column": identifier(name), "type": exp.Var(this=type_)}
                self.engine.execute(render("publish/change_type", "postgres", **asked))

    def _stage(self, final: str, *, is_view: bool) -> exp.Table:
        name = f"sqldeid_{self.engine.run_id}_staged_{len(self.staged)}"
        self.staged.append(_Staged(name, final, is_view))
        return table_name(self.destination.schema, name)

    def _comment(self, table: exp.Table, note: Note, *, is_view: bool) -> None:
        kind = "publish/comment_view" if is_view else "publish/comment_table"
        self.engine.run(kind, table=table, comment=literal(note.to_json()))
        for name, text in note.columns.items():
            self.engine.run("publish/comment_column", table=table, column=identifier(name), comment=literal(text))


@dataclass(frozen=True, slots=True)
class ByCopy:
    """Rows travel by COPY, both ways."""

    engine: PostgresEngine

    def parts(
        self, staged: exp.Table, columns: Sequence[Column], coded: Set[str], *, most: int
    ) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, in their order."""
        asked = [_as_coded(c, coded) for c in columns]
        yield from self.engine.parts(render("publish/read_staged", "postgres", table=staged, columns=asked), most=most)

    def put(self, name: str, rows: pa.RecordBatchReader, types: Sequence[exp.DataType]) -> exp.Table:
        """A temporary table with these rows, which the server reads from their text."""
        return self.engine.put(name, rows, types)


def _as_coded(c: Column, coded: Set[str]) -> exp.Expr:
    """A column as it comes: text that classes are told apart by as they see it, without the blanks of CHAR(n).

    A cast keeps the column's name.
    """
    found = column(c.name, "t")
    return exp.cast(found, "TEXT") if c.name in coded and c.kind == "text" and not c.is_enum else found


def open_staging(engine: Remote, destination: Destination, names: Sequence[str], replace: bool) -> Staging:
    """Where releases are staged in Postgres.

    Raises
    ------
    JobError
        If a name is too long, or taken and may not be replaced.
    EngineError
        If the user lacks a right to publish there.
    """
    engine = _postgres(engine)
    most = engine.capabilities.max_identifier_bytes - len(SNAPSHOT if destination.kind == "view" else "")
    for name in names:
        if len(name.encode()) > most:
            key = destination.key(name)
            raise JobError.at(key, f"Postgres would cut the name of this release; use at most {most} bytes")
    relations = engine.relations()
    refuse_existing(relations, destination.schema, names, replace=replace)
    old = tuple(r for name in names for r in ours(relations, destination.schema, name))
    engine.refuse_unowned(destination.schema, [r.parts[-1] for r in old], "release.schema")
    return InPostgres(engine, destination, old)


def bring(engine: Remote, files: FreshFile | ParquetFolder) -> Staging:
    """Where releases of a server are staged that go into files here."""
    return Brought(ByCopy(_postgres(engine)), files)


def published(engine: Remote, destination: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    """A release in files here, to be read in the server, and the note on it."""
    written, note = find_published(engine.bench, destination, name)
    return carried_back(written, ByCopy(_postgres(engine)), name), note


def said_in(engine: Remote, schema: str, names: Sequence[str]) -> Iterator[Said]:
    """What the catalogue says of the columns of a schema's tables and views, these among them."""
    for table, *said in _postgres(engine).read("publish/list_said", schema=literal(schema)):
        yield Said((schema, table), *said)


def _postgres(engine: Remote) -> PostgresEngine:
    if not isinstance(engine, PostgresEngine):
        raise TypeError("a release in Postgres needs an engine on Postgres")
    return engine
