"""Releases on Spark: staged as ``name__run`` tables, verified, and made to appear one by one, each in its own step.

Spark has no transaction. A view is flipped to its new table in one step of the catalogue; a table is renamed, the one
that it replaces before it. What came first goes back if a later step fails; what was staged and not published is
dropped. Tables that are replaced are dropped last, so that every view can be read at any time, even after a kill.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sqlglot import exp

from sqldeid.engine.base import Relation
from sqldeid.engine.remote import Remote
from sqldeid.engine.spark import SparkEngine
from sqldeid.errors import EngineError, JobError, SqldeidError
from sqldeid.publish.existing import refuse_existing
from sqldeid.publish.notes import Note, ours
from sqldeid.publish.places import Destination, Staging, TableStatement, ViewStatement
from sqldeid.sql import identifier, literal, render, table_name

_OLD = "replaced"


@dataclass(frozen=True, slots=True)
class _Staged:
    """A release under its name of the run."""

    note: Note
    table: exp.Table


@dataclass(slots=True)
class OnSpark:
    """The current catalogue takes the release."""

    engine: SparkEngine
    destination: Destination
    old: tuple[Relation, ...] = ()
    staged: list[_Staged] = field(default_factory=list)

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create the table of the run with its notes; it is dropped again unless it is published."""
        self._prepare()
        table = self._table(f"{note.release}__{self.engine.run_id}")
        self.engine.undo.append(lambda: self._drop(table))
        self.engine.execute(statement(table))
        self.engine.execute(render("publish/comment_table", table=table, comment=literal(note.to_json())))
        for name, text in note.columns.items():
            self.engine.execute(
                render("publish/comment_column", table=table, column=identifier(name), comment=literal(text))
            )
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
        try:
            for made in self.staged:
                place(made, back)
        except BaseException as failed:
            self._restore(back, failed)
            raise
        self.engine.commit()
        for relation in self.old:
            if relation.parts[-1].casefold() not in self._now:
                with suppress(SqldeidError):  # another run may have dropped it; the next one tries again
                    self._drop_relation(relation)
        return tuple(self.destination.shown(made.note.release) for made in self.staged)

    def _flip(self, made: _Staged, back: list[Callable[[], None]]) -> None:
        """Have the view of the release's name read the new table; a table that was called so is renamed before."""
        view = self._table(made.note.release)
        was = self._was(made.note.release)
        if was is not None and was.is_view:
            before = self.engine.read("publish/show_view", view=view)[0]["createtab_stmt"]
            back.append(lambda: self.engine.execute(before.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)))
        else:
            if was is not None:
                self._set_aside(made.note.release, back)
            back.append(lambda: self.engine.execute(render("publish/drop_view", table=view)))
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

    def _rename(self, made: _Staged, back: list[Callable[[], None]]) -> None:
        """Give the new table the release's name; what was called so is renamed, a view dropped, before."""
        name, table = made.note.release, self._table(made.note.release)
        was = self._was(name)
        if was is not None and was.is_view:
            before = self.engine.read("publish/show_view", view=table)[0]["createtab_stmt"]
            self.engine.execute(render("publish/drop_view", table=table))
            back.append(lambda: self.engine.execute(before))
        elif was is not None:
            self._set_aside(name, back)
        self._call(made.table, table)
        back.append(lambda: self._call(table, made.table))

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
                step()
            except SqldeidError:
                lost += 1
        if lost:
            raise EngineError(
                f"publishing failed, and {lost} of its steps could not be taken back: look at the schema "
                f"{self.destination.schema}, whose releases may be of two runs, and run again with --replace"
            ) from failed

    @property
    def _now(self) -> set[str]:
        """Names in the schema that belong to what was just published."""
        tables = {made.table.name.casefold() for made in self.staged} if self.destination.kind == "view" else set()
        return tables | {made.note.release.casefold() for made in self.staged}

    def _was(self, name: str) -> Relation | None:
        return next((r for r in self.old if r.parts[-1].casefold() == name.casefold()), None)

    def _prepare(self) -> None:
        """Make the schema where there is none; it goes again, if it is empty, with a run that fails."""
        name = self.destination.schema
        there = {row["namespace"].casefold() for row in self.engine.read("engine/list_schemas")}
        if name.casefold() not in there:
            schema = exp.Table(this=identifier(name))
            self.engine.undo.append(lambda: self.engine.execute(render("publish/drop_schema", "spark", schema=schema)))
            self.engine.execute(render("publish/create_schema", schema=schema))

    def _table(self, name: str) -> exp.Table:
        return table_name(self.destination.schema, name)

    def _drop(self, table: exp.Table) -> None:
        self.engine.execute(render("publish/drop_released", "spark", table=table))

    def _drop_relation(self, relation: Relation) -> None:
        table = table_name(*relation.parts)
        if relation.is_view:
            self.engine.execute(render("publish/drop_view", table=table))
        else:
            self._drop(table)


def open_staging(engine: Remote, destination: Destination, names: Sequence[str], replace: bool) -> Staging:
    """Where releases are staged on Spark.

    Raises
    ------
    JobError
        If the catalogue is lost with the session, does not take a name, or has it and it may not be replaced.
    """
    if not isinstance(engine, SparkEngine):
        raise TypeError("a release on Spark needs an engine on Spark")
    if not engine.capabilities.persistent_catalog:
        raise JobError(
            "release: this Spark keeps its catalogue in memory, and a release there is lost with the session; start it "
            "with spark.sql.catalogImplementation = hive (enableHiveSupport), or choose a lasting catalogue with USE",
            key="release",
        )
    for name in (destination.schema, *names):
        if not (name.isascii() and name.replace("_", "a").isalnum()):
            where = "release.schema" if name == destination.schema else destination.key(name)
            raise JobError(f"{where}: Spark's catalogues take letters, digits and _ alone; rename it", key=where)
    engine.look_in(destination.schema)
    relations = engine.relations()
    refuse_existing(relations, destination.schema, names, replace=replace)
    old = tuple(r for name in names for r in ours(relations, destination.schema, name))
    return OnSpark(engine, destination, old)
