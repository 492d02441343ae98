"""Releases on Spark: staged as ``name__run`` tables, verified, and made to appear one by one, each in its own step.

Spark has no transaction. A view is flipped to its new table in one step of the catalogue; a table is renamed, the one
that it replaces before it. What came first goes back if a later step fails; what was staged and not published is
dropped. Tables that are replaced are dropped last, so that every view can be read at any time, even after a kill.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile

from sqlglot import exp

from sqldeid.engine.base import Relation
from sqldeid.engine.mark import Mark, forget
from sqldeid.engine.remote import Remote
from sqldeid.engine.spark import SparkEngine
from sqldeid.engine.spark_errors import NoTable
from sqldeid.errors import EngineError, JobError, SqldeidError
from sqldeid.publish.brought import Brought, carried_back
from sqldeid.publish.comments import Said
from sqldeid.publish.existing import published as find_published
from sqldeid.publish.existing import refuse_existing
from sqldeid.publish.notes import STAGED, Note, ours
from sqldeid.publish.places import Destination, FreshFile, ParquetFolder, Staging, TableStatement, ViewStatement
from sqldeid.publish.spark_beside import Beside, beside_in, definition, refuse_beside, refuse_staged_beside
from sqldeid.publish.spark_brought import ByPortions
from sqldeid.publish.spark_folder import notes_of_folder, open_folder
from sqldeid.publish.spark_folder import published as published_in_folder
from sqldeid.publish.spark_runs import (
    FOLDER,
    is_left_behind,
    refuse_alive,
    refuse_too_old,
    signed,
    snapshots,
    staged_by,
)
from sqldeid.sql import Fixed, identifier, literal, render, table_name

_OLD = "replaced"
_CREATED = re.compile(r"CREATE TABLE ((?:`(?:[^`]|``)+`\.?)+) AS\s+(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Staged:
    """A release under its name of the run."""

    note: Note
    table: exp.Table


@dataclass(slots=True)
class OnSpark:
    """The current catalogue takes the release.

    Parameters
    ----------
    old
        What is replaced, or was left by dead runs.
    found, beside
        What stood at the releases' names as the run began, and all that sqldeid had made in the schema.
    passing
        Whether tables are staged here alone, and the releases go into a folder.
    """

    engine: SparkEngine
    destination: Destination
    old: tuple[Relation, ...] = ()
    found: Mapping[str, str] = field(default_factory=dict)
    beside: Set[Beside] = frozenset()
    passing: bool = False
    staged: list[_Staged] = field(default_factory=list)
    mark: Mark | None = None
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create the table of the run with its notes; it is dropped again unless it is published."""
        self._prepare()
        table = self._table(f"{note.release}__{self.engine.run_id}")
        self.engine.undo.append(lambda: self._drop(table))
        staged = signed(self.engine.run_id) | ({FOLDER: "into"} if self.passing else {})
        noted = replace(note, content={**note.content, STAGED: staged})
        made = _CREATED.fullmatch(self.engine.written(statement(table)))
        if made is None:
            raise TypeError("a release is made by CREATE TABLE … AS")
        named, rows = Fixed(made[1], "spark"), self.engine.commented(made[2], note.columns)
        comment = literal(noted.to_json())
        self.engine.execute(render("publish/create_staged", "spark", table=named, comment=comment, rows=rows))
        self.engine.drop(rows)
        self.staged.append(_Staged(note, table))
        return table

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused before anything runs (`sqldeid.engine.offers`)."""
        raise JobError(f"tables.{note.release}.view: a computed view is not on Spark; leave view out")

    def publish(self) -> tuple[str, ...]:
        """Make every release appear, or none; then drop what was replaced.

        Raises
        ------
        EngineError
            If a step failed; what was there before is there again, or the message says that it is not.
        """
        place = self._flip if self.destination.kind == "view" else self._rename
        back: list[Callable[[], None]] = []
        self._refuse_changed()
        try:
            for made in self.staged:
                place(made, back)
        except BaseException as failed:
            self._restore(back, failed)
            raise
        self.engine.commit()
        self._settle()
        if self.mark is not None:
            self.mark.close()
        return tuple(self.destination.shown(made.note.release) for made in self.staged)

    def _refuse_changed(self) -> None:
        """What stands in the schema must be what stood there as the run began: another run may have come.

        Each run stages before it looks. So of two at the same moment one sees the other, or both do, and both stop.
        """
        refuse_too_old(self.began)
        self.engine.refresh()
        now = standing(self.engine, self.destination, [made.note.release for made in self.staged])
        for made in self.staged:
            name = made.note.release
            if now.get(name) != self.found.get(name):
                key, shown = self.destination.key(name), self.destination.shown(name)
                raise EngineError.at(
                    key,
                    f"{shown} was published, replaced or dropped by somebody else meanwhile; run again, with "
                    "--replace if this run is to replace it",
                )
        own = {made.table.name.casefold() for made in self.staged} | {name.casefold() for name in now}
        refuse_beside(self.engine, self.destination.schema, self.beside, own)

    def _settle(self) -> None:
        """Note what is published as such, and drop the rest: what fails here is left to the next run."""
        for made in self.staged:
            table = made.table if self.destination.kind == "view" else self._table(made.note.release)
            with suppress(SqldeidError):
                comment = literal(made.note.to_json())
                self.engine.run("publish/comment_table", table=table, comment=comment)
        self.sweep()

    def sweep(self) -> None:
        """Drop what was replaced and what dead runs left; what fails here is left to the next run."""
        for relation in self.old:
            if relation.parts[-1].casefold() not in self._now:
                with suppress(SqldeidError):
                    self._drop_relation(relation)
                    if (left := staged_by(relation)) is not None:
                        forget(left["run"])

    def _flip(self, made: _Staged, back: list[Callable[[], None]]) -> None:
        """Have the view of the release's name read the new table; a table that was called so is renamed before."""
        view = self._table(made.note.release)
        was = self._was(made.note.release)
        if was is not None and was.is_view:
            before = self._definition(made.note.release).replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
        else:
            before = render("publish/drop_view", table=view)
            if was is not None:
                self._set_aside(made.note.release, back)
        back.append(lambda: self.engine.execute(before) if self._shows(view, made) else None)
        columns = [
            {"name": identifier(c.name), "comment": literal(made.note.columns.get(c.name, ""))}
            for c in self.engine.columns(made.table)
        ]
        self.engine.execute(
            render(
                "publish/flip_view",
                "spark",
                view=view,
                snapshot=made.table,
                replace=was is not None and was.is_view,
                comment=literal(made.note.to_json()),
                columns=columns,
            )
        )

    def _shows(self, view: exp.Table, made: _Staged) -> bool:
        """Whether a view is the one that this run made; another run's is left alone."""
        try:
            read = snapshots(definition(self.engine, view), made.note.release)
        except NoTable:
            return False
        return made.table.name.casefold() in read

    def _rename(self, made: _Staged, back: list[Callable[[], None]]) -> None:
        """Give the new table the release's name; what was called so is renamed, a view dropped, before."""
        name, table = made.note.release, self._table(made.note.release)
        was = self._was(name)
        if was is not None and was.is_view:
            before = self._definition(name)
            self.engine.run("publish/drop_view", table=table)
            back.append(lambda: self.engine.execute(before))
        elif was is not None:
            self._set_aside(name, back)
        self._call(made.table, table)
        back.append(lambda: self._call(table, made.table))

    def _definition(self, name: str) -> str:
        """What a view is made by that is replaced; the tables of runs that it reads go with it."""
        text = definition(self.engine, self._table(name))
        there = {r.parts[-1].casefold() for r in self.old}
        read = (Relation((self.destination.schema, t), False, "") for t in sorted(snapshots(text, name) - there))
        self.old = (*self.old, *read)
        return text

    def _set_aside(self, name: str, back: list[Callable[[], None]]) -> None:
        """Rename a table that is replaced; it is dropped at the end."""
        table, aside = self._table(name), self._table(f"{name}__{_OLD}_{self.engine.run_id}")
        self._call(table, aside)
        back.append(lambda: self._call(aside, table))
        kept = Relation((self.destination.schema, aside.name), False, "")
        self.old = (*(r for r in self.old if r.parts[-1].casefold() != name.casefold()), kept)

    def _call(self, table: exp.Table, name: exp.Table) -> None:
        self.engine.execute(render("publish/rename_table", "spark", table=table, name=name))

    def _restore(self, back: Sequence[Callable[[], None]], failed: BaseException) -> None:
        """Take the steps back, the last one first; every one is tried."""
        lost = 0
        for step in reversed(back):
            try:
                if self.engine.gone:  # it would be asked for half a minute
                    lost += 1
                else:
                    step()
            except SqldeidError:
                lost += 1
        if lost:
            why = f" ({failed.message})" if isinstance(failed, SqldeidError) else ""
            raise EngineError(
                f"publishing failed{why}, and {lost} of its steps could not be taken back: look at the schema "
                f"{self.destination.schema}, whose releases may be of two runs, and run again with --replace"
            ) from None

    @property
    def _now(self) -> set[str]:
        """Names in the schema that belong to what was just published."""
        tables = {made.table.name.casefold() for made in self.staged} if self.destination.kind == "view" else set()
        return tables | {made.note.release.casefold() for made in self.staged}

    def _was(self, name: str) -> Relation | None:
        return next((r for r in self.old if r.parts[-1].casefold() == name.casefold()), None)

    def hold(self) -> None:
        """Mark the run as alive, for others of this machine to see."""
        if self.mark is None:
            self.mark = Mark(self.engine.run_id)
            self.engine.undo.append(self.mark.close)

    def _prepare(self) -> None:
        """Make the schema where there is none; it goes again, if it is empty, with a run that fails."""
        self.hold()
        name = self.destination.schema
        self.engine.tell_of(name)
        there = {row["namespace"].casefold() for row in self.engine.read("engine/list_schemas")}
        if name.casefold() not in there:
            schema = exp.Table(this=identifier(name))
            self.engine.undo.append(lambda: self.engine.execute(render("publish/drop_schema", "spark", schema=schema)))
            self.engine.run("publish/create_schema", schema=schema)

    def _table(self, name: str) -> exp.Table:
        return table_name(self.destination.schema, name)

    def _drop(self, table: exp.Table) -> None:
        self.engine.execute(render("publish/drop_released", "spark", table=table))

    def _drop_relation(self, relation: Relation) -> None:
        table = table_name(*relation.parts)
        if relation.is_view:
            self.engine.run("publish/drop_view", table=table)
        else:
            self._drop(table)


def open_staging(engine: Remote, destination: Destination, names: Sequence[str], replace: bool) -> Staging:
    """Where releases are staged on Spark.

    Raises
    ------
    JobError
        If the catalogue is lost with the session, does not take a name, or has it and it may not be replaced.
    """
    engine = _spark(engine)
    if destination.kind != "parquet" and not engine.capabilities.persistent_catalog:
        raise JobError.at(
            "release",
            "this Spark keeps its catalogue in memory, and a release there is lost with the session; start it "
            "with spark.sql.catalogImplementation = hive (enableHiveSupport), or choose a lasting catalogue with USE",
        )
    for name in (destination.schema, *names):
        if not (name.isascii() and name.replace("_", "a").isalnum()):
            where = "release.schema" if name == destination.schema else destination.key(name)
            raise JobError.at(where, "Spark's catalogues take letters, digits and _ alone; rename it")
    engine.look_in(destination.schema)
    relations = engine.relations()
    in_folder = destination.kind == "parquet"
    if not in_folder:
        refuse_existing(relations, destination.schema, names, replace=replace)
    found = standing(engine, destination, names)
    if not in_folder:
        refuse_staged_beside(engine, destination.schema, names)
    old: list[Relation] = []
    for name in names:
        present = snapshots(found.get(name, ""), name)
        mine = ours(relations, destination.schema, name)
        left = [r for r in mine if r.parts[-1].casefold() not in {name.casefold(), *present}]
        if in_folder:  # what stands in the catalogue is another release, and what lives claims the folder
            old += [r for r in left if is_left_behind(r)]
            continue
        refuse_alive(destination.key(name), left)
        old += mine
    beside = beside_in(engine, destination.schema)
    tables = OnSpark(engine, destination, tuple(old), found, beside, passing=in_folder)
    return open_folder(tables, destination, names, replace=replace) if in_folder else tables


def standing(engine: SparkEngine, destination: Destination, names: Sequence[str]) -> dict[str, str]:
    """What stands at the releases' names, each in a text that no other has: of a view what it is made by.

    A table is told by its note and by when it was made.
    """
    wanted = {name.casefold(): name for name in names}
    found = {}
    for relation in engine.relations():
        schema, name = relation.parts[-2], wanted.get(relation.parts[-1].casefold())
        if name is not None and schema.casefold() == destination.schema.casefold():
            text = definition(engine, table_name(*relation.parts)) if relation.is_view else engine.made_at(relation)
            found[name] = f"{relation.comment}\n{text}"
    return found


def bring(engine: Remote, files: FreshFile | ParquetFolder) -> Staging:
    """Where releases are staged that go into a database file here."""
    return Brought(ByPortions(_spark(engine)), files)


def published(engine: Remote, destination: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    """A release in a folder of Spark's storage, or in a database file here, to be read on Spark; the note on it."""
    if destination.kind == "parquet":
        return published_in_folder(_spark(engine), destination, name)
    written, note = find_published(engine.bench, destination, name)
    return carried_back(written, ByPortions(_spark(engine)), name), note


def said_in(engine: Remote, schema: str, names: Sequence[str]) -> Iterator[Said]:
    """What the catalogue says of the columns of tables and views: comments, then, under a head, defaults."""
    for name in names:
        rows = _spark(engine).read("engine/describe_table", table=table_name(schema, name))
        heads = [i for i, row in enumerate(rows) if not row["col_name"] or row["col_name"].startswith("# ")]
        for row in rows[: heads[0]] if heads else rows:
            yield Said((schema, name), row["col_name"], row["comment"] or "", False)
        for at in (i for i, row in enumerate(rows) if row["col_name"] == "# Column Default Values"):
            for row in takewhile(lambda row: row["col_name"], rows[at + 1 :]):
                yield Said((schema, name), row["col_name"], "", True)


def notes_in_folder(engine: Remote, destination: Destination) -> list[dict[str, object]]:
    """The notes of the job's releases that stand in a folder of Spark's storage."""
    return notes_of_folder(_spark(engine), destination)


def _spark(engine: Remote) -> SparkEngine:
    if not isinstance(engine, SparkEngine):
        raise TypeError("a release on Spark needs an engine on Spark")
    return engine
