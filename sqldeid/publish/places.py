"""Staging and publishing: everything is written aside, verified, and appears in one step or not at all.

    place                   written                                 appears by
    source database         in the run's transaction                COMMIT
    fresh database file     in a private folder beside the target   rename, after COMMIT and CHECKPOINT
    folder of Parquet       in a private folder beside the target   rename (two, not atomic, where one is replaced)

A file or folder is held by its run from before it looks at what is there (`sqldeid.publish.reserve`), and so is a
database (`InPlace.claim`): of two runs at once, one stops.

Source: engines.md, *Publishing*; settled.md, *Defaults* and *Finding a release again*.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from sqlglot import exp

from sqldeid.engine.base import Relation
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import EngineError, JobError
from sqldeid.publish.notes import Note, ours
from sqldeid.publish.reserve import Seen, refuse_changed
from sqldeid.sql import identifier, literal, table_name

As = Literal["table", "view", "parquet"]
SNAPSHOT = "__snapshot"
TARGET, OLD = "sqldeid_target", "sqldeid_old"
MARKER = "sqldeid_is_writing"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a job's releases go: `into` is a database file or a folder; None for the source database.

    `into` is absolute, for a program may change its working folder meanwhile; `called` is how results name it.
    `sections` has the part of the job of those releases that are not tables; `place` is `into` as the job writes it: on
    Spark a path of its own storage.
    """

    kind: As
    schema: str
    into: Path | None
    sections: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    called: str = ""

    @property
    def target(self) -> Path:
        """The file or folder, where it is not the source database."""
        if self.into is None:
            raise EngineError("release.into is not set")
        return self.into

    def key(self, name: str) -> str:
        """A release's key in the job file, dotted."""
        return f"{self.sections.get(name, 'tables')}.{name}"

    def shown(self, name: str) -> str:
        """How a release there is called in messages and results."""
        if self.kind == "parquet":
            remote = "://" in self.place
            return f"{self.place.rstrip('/') if remote else self.called or self.into or Path()}/{name}.parquet"
        return f"{self.called or self.into}: {self.schema}.{name}" if self.into else f"{self.schema}.{name}"


TableStatement = Callable[[exp.Table], str]
ViewStatement = Callable[[exp.Table, dict[str, exp.Table]], str]


class Staging(Protocol):
    """A place where releases are written, noted, and published together."""

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Run the statement that creates a release, put its note on it; what to read to verify what was written."""

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Create a computed view and, before it, the tables that it reads (by column name)."""

    def publish(self) -> tuple[str, ...]:
        """Make everything appear; the names under which it did."""


@dataclass(slots=True)
class _Database:
    """What both kinds of database share: writing tables and views with notes under a catalogue."""

    engine: DuckDBEngine
    destination: Destination
    catalog: str
    written: list[str] = field(default_factory=list)
    prepared: bool = False

    def prepare(self) -> None:
        if not self.prepared:
            schema = exp.Table(this=identifier(self.destination.schema), db=identifier(self.catalog))
            self.engine.run("publish/create_schema", schema=schema)
            self.prepared = True

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create a table, or a snapshot and a view over it, with the note on each."""
        self.prepare()
        schema, name = self.destination.schema, note.release
        self.written.append(name)
        if self.destination.kind != "view":
            target = table_name(self.catalog, schema, name)
            self.engine.execute(statement(target))
            _comment(self.engine, target, False, note.to_json(), note.columns)
            return target
        snapshot, view = table_name(self.catalog, schema, name + SNAPSHOT), table_name(self.catalog, schema, name)
        self.engine.execute(statement(snapshot))
        columns = [identifier(c.name) for c in self.engine.columns(snapshot)]
        self.engine.use(self.catalog)
        within = table_name(schema, name + SNAPSHOT)
        self.engine.run("publish/create_view", view=view, snapshot=within, columns=columns)
        for table, is_view in [(snapshot, False), (view, True)]:
            _comment(self.engine, table, is_view, note.to_json(), note.columns)
        return view


def _comment(engine: DuckDBEngine, table: exp.Table, is_view: bool, comment: str, columns: Mapping[str, str]) -> None:
    kind = "publish/comment_view" if is_view else "publish/comment_table"
    engine.run(kind, table=table, comment=literal(comment))
    for name, text in columns.items():
        engine.run("publish/comment_column", table=table, column=identifier(name), comment=literal(text))


@dataclass(slots=True)
class InPlace(_Database):
    """The source database takes the release, inside the run's transaction."""

    def claim(self) -> None:
        """Keep other runs from the database until the transaction ends; what is there is looked at afterwards.

        Two connections of one program can write to it at once. Neither sees what the other one makes, but no two
        transactions at once can make a table of one name: the marker is dropped again, and that stays so.

        Raises
        ------
        JobError
            If nobody could read a view there, for the database has the schema's name, or the marker is somebody's.
        EngineError
            If another run writes there.
        """
        if self.destination.kind == "view" and self.catalog.casefold() == self.destination.schema.casefold():
            raise JobError.at(
                "release.schema",
                "nobody can read a view there: the database is named as the schema in it, which DuckDB finds "
                "ambiguous; name release.schema otherwise",
            )
        marker = table_name(self.catalog, "main", MARKER)
        try:
            self.engine.run("engine/mark_place", marker=marker)
        except EngineError as error:
            if "write-write conflict" not in error.message:
                raise
            raise EngineError(
                "release: another run of sqldeid is writing into this database, or did so since this one began; run "
                "one after the other"
            ) from None
        except JobError:
            raise JobError(
                f"release: the database holds a table or view main.{MARKER}, a name that runs need; rename it"
            ) from None
        self.engine.run("engine/drop_table", table=marker)
        self.engine.refresh()

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Create the hierarchy tables beside the view, then the view; all with notes, so that they go together."""
        self.prepare()
        schema, name = self.destination.schema, note.release
        within = {}
        for column, create in tables.items():
            table = table_name(self.catalog, schema, f"{name}__{column}")
            self.engine.execute(create(table))
            _comment(self.engine, table, False, note.to_json(), {})
            within[column] = table_name(schema, f"{name}__{column}")
        view = table_name(self.catalog, schema, name)
        self.engine.use(self.catalog)
        self.engine.execute(statement(view, within))
        _comment(self.engine, view, True, note.to_json(), note.columns)
        self.written.append(name)
        return view

    def drop_old(self, names: Sequence[str]) -> None:
        """Drop what is replaced; dropping belongs to the transaction."""
        relations = self.engine.relations()
        for name in names:
            for relation in sorted(ours(relations, self.destination.schema, name), key=lambda r: not r.is_view):
                drop = "publish/drop_view" if relation.is_view else "engine/drop_table"
                self.engine.run(drop, table=table_name(*relation.parts))
        self.engine.refresh()

    def publish(self) -> tuple[str, ...]:
        """Commit the run's transaction."""
        self.engine.commit()
        return tuple(self.destination.shown(name) for name in self.written)


def _refuse_computed() -> exp.Expr:
    raise JobError("view: a computed view reads its source, so it can only stand there; leave release.into out")


Bring = Callable[[Path], Path]
"""From where DuckDB made a file or folder to where it can be renamed into place."""


def _as_it_is(path: Path) -> Path:
    return path


@dataclass(slots=True)
class FreshFile(_Database):
    """A new database file, written aside and renamed into place.

    Parameters
    ----------
    seen
        What stood there when the run began, which alone is replaced (`sqldeid.publish.reserve`).
    """

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused: the view could not read its source."""
        return _refuse_computed()

    path: Path = Path()
    keep: tuple[Relation, ...] = ()
    seen: Seen | None = None
    bring: Bring = _as_it_is

    def publish(self) -> tuple[str, ...]:
        """Commit, write everything to the file, and rename it into place."""
        for relation in self.keep:
            self._carry_over(relation)
        self.engine.commit()
        self.engine.use_source()
        self.engine.finish_database(self.catalog)
        made = self.bring(self.path)
        into = self.destination.target
        _keep_private(made, into)
        if self.seen is None:
            _claim_file(made, into)
        else:
            refuse_changed(into, self.seen)
            _rename(made, into)
        return tuple(self.destination.shown(name) for name in self.written)

    def _carry_over(self, relation: Relation) -> None:
        """Another release of the file that is replaced stays, with its notes (tables before views)."""
        schema, name = relation.parts[-2:]
        target = table_name(self.catalog, schema, name)
        read = self.engine.rows(
            "publish/list_comments", catalog=literal(OLD), schema=literal(schema), name=literal(name)
        )
        comments = {row["name"]: row["comment"] for row in read if row["comment"]}
        if relation.is_view:
            self.engine.use(self.catalog)
            columns = [identifier(row["name"]) for row in read]
            within = table_name(schema, name + SNAPSHOT)
            self.engine.run("publish/create_view", view=target, snapshot=within, columns=columns)
        else:
            self.engine.run("publish/copy_table", target=target, table=table_name(OLD, schema, name))
        _comment(self.engine, target, relation.is_view, relation.comment, comments)


@dataclass(slots=True)
class ParquetFolder:
    """A folder of Parquet files, written aside and renamed into place.

    Each is written under a number: DuckDB would read some names of releases as patterns. `seen` is as in `FreshFile`.
    """

    engine: DuckDBEngine
    destination: Destination
    path: Path
    keep: tuple[Path, ...] = ()
    seen: Seen | None = None
    written: list[str] = field(default_factory=list)
    bring: Bring = _as_it_is

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create the release in a scratch database, then its file, in the same order; the file is what is verified."""
        name = note.release
        staged = table_name(TARGET, "main", name)
        self.engine.execute(statement(staged))
        self.path.mkdir(exist_ok=True)
        file = self._numbered(len(self.written))
        content = Note(name, {**note.content, "columns": dict(note.columns)}, {})
        self.engine.run("publish/copy_parquet", table=staged, path=literal(str(file)), note=literal(content.to_json()))
        self._refuse_other_types(name, staged, file)
        self.engine.run("engine/drop_table", table=staged)
        self.written.append(name)
        return parquet_relation(file)

    def _refuse_other_types(self, name: str, staged: exp.Table, file: Path) -> None:
        """Parquet has no such type, and DuckDB writes another, which may round values (HUGEINT becomes DOUBLE)."""
        there = self.engine.columns(parquet_relation(file))
        for wanted, found in zip(self.engine.columns(staged), there, strict=True):
            if wanted.type != found.type:
                at = self.destination.key(name)
                key = f"{at}.columns.{wanted.name}" if at.startswith("tables.") else at
                raise JobError.at(
                    key,
                    f"Parquet cannot hold the type {wanted.shown_type}; cast it to another in a source query, "
                    "or release a table",
                )

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused: the view could not read its source."""
        return _refuse_computed()

    def publish(self) -> tuple[str, ...]:
        """Rename the folder into place, with what stays of the old one."""
        into = self.destination.target
        self.engine.commit()
        self.engine.finish_database(TARGET)
        made = self._named()
        if self.seen is None:
            _claim_folder(made, into)
        else:
            _replace_folder(made, into, self.seen)
        return tuple(self.destination.shown(name) for name in self.written)

    def _numbered(self, number: int) -> Path:
        return self.path / f"{number}.written"

    def _named(self) -> Path:
        """The folder where it can be renamed into place, each file under its release's name, with what stays."""
        made = self.bring(self.path)
        try:
            for number, name in enumerate(self.written):
                os.replace(made / self._numbered(number).name, made / f"{name}.parquet")
                _keep_private(made / f"{name}.parquet", self.destination.target / f"{name}.parquet")
            for file in self.keep:
                shutil.copy2(file, made / file.name)
        except OSError as error:
            raise EngineError(f"{self.destination.target}: cannot be written ({error.strerror})") from None
        return made


def parquet_relation(path: Path) -> exp.Table:
    """A Parquet file as a relation to read: the columns that it holds, none from the names of its folders.

    Parameters
    ----------
    path
        Plain (`sqldeid.engine.plain`), or `Lent`.
    """
    own = exp.EQ(this=exp.to_identifier("hive_partitioning"), expression=literal(False))
    return exp.Table(this=exp.Anonymous(this="READ_PARQUET", expressions=[literal(str(path)), own]))


def _keep_private(made: Path, like: Path) -> None:
    """Give a file the mode of the one that it replaces; a new one is for its owner alone, until it is approved.

    Who may read a release is said by whoever has looked at it (docs/how-to/publish.md).
    """
    try:
        os.chmod(made, stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600)
    except OSError as error:
        raise EngineError(f"{like}: cannot be written ({error.strerror})") from None


def _rename(path: Path, into: Path) -> None:
    try:
        os.replace(path, into)
    except OSError as error:
        raise EngineError(f"{into}: cannot be written ({error.strerror})") from None


def _taken(into: Path) -> JobError:
    return JobError.at(
        "release.into", f"{into} exists by now; somebody else wrote it. Allow it to be replaced with --replace"
    )


@contextmanager
def _claiming(into: Path) -> Iterator[None]:
    """Say of a name that is taken who may have it, and of another fault which file it is."""
    try:
        yield
    except FileExistsError:
        raise _taken(into) from None
    except OSError as error:
        raise EngineError(f"{into}: cannot be written ({error.strerror})") from None


def _claim_file(path: Path, into: Path) -> None:
    """Put a file into place where none is: what somebody else wrote there meanwhile stays."""
    try:
        os.link(path, into)
        path.unlink()
    except FileExistsError:
        raise _taken(into) from None
    except OSError:  # no hard links there: claim the name with an empty file of our own
        with _claiming(into):
            os.close(os.open(into, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        _rename(path, into)


def _claim_folder(path: Path, into: Path) -> None:
    """Put a folder into place where none is, for its owner alone; one that is filled meanwhile is not replaced."""
    with _claiming(into):
        os.chmod(path, 0o700)
        into.mkdir(mode=0o700)
    _rename(path, into)


def _replace_folder(path: Path, into: Path, seen: Seen) -> None:
    """Rename a folder into place; the old one, whose mode it gets, is set aside first and put back if that fails."""
    aside = path.with_name("replaced")
    refuse_changed(into, seen)
    try:
        mode = stat.S_IMODE(into.stat().st_mode)
        os.chmod(path, 0o700)
        os.replace(into, aside)
        try:
            if not aside.is_symlink():  # which may not lead anywhere from there
                refuse_changed(into, seen, aside)  # nobody finds it any more
            os.replace(path, into)
        except BaseException:
            if not os.path.lexists(into):
                os.replace(aside, into)
            raise
        with suppress(OSError):  # it is there; for its owner, where nothing else can be said
            os.chmod(into, mode)
    except OSError as error:
        raise EngineError(f"{into}: cannot be written ({error.strerror})") from None
