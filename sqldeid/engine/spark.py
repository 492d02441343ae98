"""Spark: an open session of an ETL job's, a Connect server named by its URL, or a session of our own (``spark``).

Only `sql`, `createDataFrame` of Arrow, `createOrReplaceTempView`, `localCheckpoint` and `toArrow` are used, so that
Connect does what a classic session does. A temporary table is a view, whose rows are kept as the statement that makes
it says (`sqldeid.sql.templates.KEPT`). A table of Spark is no snapshot: what is folded goes to the workbench at once, a
query's rows are kept before they are folded, and a source that changes meanwhile makes verification fail where it shows
(`sqldeid.tables.write.unchanged_source`).

Source: engines.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqldeid.engine.base import Capabilities, Column, Relation
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.remote import PORTION, Remote
from sqldeid.engine.spark_beneath import tables_beneath
from sqldeid.engine.spark_catalogue import Catalogue
from sqldeid.engine.spark_rows import by_size, cut_off, register
from sqldeid.engine.spark_session import FORMAT, UNLESS_SET, open_session, settings_for, silent, stop_session
from sqldeid.engine.spark_types import column_of, plain, sendable, uncommented
from sqldeid.errors import JobError, SqldeidError, listed
from sqldeid.sql import Fixed, Statement, identifier, render, table_name
from sqldeid.sql.unlike import refuse_unlike

T = TypeVar("T")

_MADE = re.compile(r"CREATE TEMPORARY VIEW (`(?:[^`]|``)+`) AS\s+(.*)", re.DOTALL)
_ADDED = re.compile(r"INSERT INTO (`(?:[^`]|``)+`)\s+(SELECT\b.*)", re.DOTALL)
_NUMBER = 8
"""Bytes of a code or count: classes hold nothing else."""
_INFERRED = "spark.sql.constraintPropagation.enabled"
"""Off beside tables that are cut off from their plans: what Spark infers of their columns it notes under numbers of
other columns (SPARK-52353), by which later statements fail or find wrong rows."""


def open_source(database: object, bench: DuckDBEngine) -> SparkEngine:
    """The engine on a session; it has not begun.

    Raises
    ------
    EngineError
        If PySpark or Java is missing, or no server answers.
    JobError
        If what is given is no open session.
    """
    session, label, own = open_session(database)
    return SparkEngine(session, bench, label, own=own)


class SparkEngine(Remote):
    """The engine protocol on a Spark session, classic or Connect.

    Parameters
    ----------
    session
        Either the engine's own or a user's.
    own
        Whether it is ours to stop; a user's is left as it was found.
    """

    def __init__(self, session: Any, bench: DuckDBEngine, label: str, *, own: bool) -> None:
        super().__init__(bench, label, ())
        self.session = session
        self.own = own
        self.undo: list[Callable[[], None]] = []
        self._there = Catalogue(self.read)
        self._temporary: dict[str, exp.Table] = {}
        self._parts: dict[str, list[exp.Table]] = {}
        self._longer: dict[str, exp.Table] = {}
        self._changed: dict[str, str | None] = {}
        self._persistent = False
        self._place = ("", "")
        self.gone = False

    @property
    def capabilities(self) -> Capabilities:
        """What Spark offers: no transaction, no snapshot, names of a metastore."""
        return Capabilities(
            dialect="spark",
            transactional_ddl=False,
            snapshot_reads=False,
            persistent_catalog=self._persistent,
            max_identifier_bytes=255,
            case_sensitive_names=False,
            temp_tables=True,
            view_comments="inline",
            secure_view="none",
            grants=False,
        )

    # ---- statements ---------------------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Run a statement for its effect; the rows of a temporary table are kept as it says."""
        text, kept = self.written(sql), sql.kept_on(self.dialect) if isinstance(sql, Statement) else "lazily"
        made, added = _MADE.fullmatch(text), _ADDED.fullmatch(super().written(sql))
        if added is not None and added[1] in self._temporary:
            self._append(added[1], self._named(added[2]), kept)
        elif made is not None:
            self._keep(made[1], made[2], kept)
        else:
            self._run(lambda: self.session.sql(text))

    def _keep(self, table: str, rows: str, kept: str) -> None:
        """Make a temporary table of a query's rows: of its plan, so that what the query reads may be dropped.

        Some are brought here and go back: Spark does not know again what it keeps of numbered values where a statement
        reads them more than once, and sends rows to every task only where it knows how few they are. Others are cut
        off from their plans: where they build on each other ten deep, each on several, a plan that holds all of it
        outgrows any driver.
        """
        if kept == "brought":
            brought = self._run(lambda: self.session.sql(rows).toArrow())
            self._run(partial(register, self.session, brought, table, kept=False))
            self.count(2 * brought.num_rows, 2 * brought.nbytes)
            return
        if kept == "cut off":
            self._change(_INFERRED, "false")
            self._run(lambda: cut_off(self.session, self.session.sql(rows)).createOrReplaceTempView(table))
            return
        self._run(lambda: self.session.sql(rows).createOrReplaceTempView(table))
        if kept != "never":
            view, lazy = Fixed(table, self.dialect), kept == "lazily"
            text = render("engine/cache_rows", self.dialect, table=view, lazy=lazy)
            self._run(lambda: self.session.sql(text))

    def _append(self, table: str, rows: str, kept: str) -> None:
        """Add rows to a temporary table: they are kept as a part, and from here on its name means all its parts."""
        before = self._longer.get(table)
        part = self.workbench("part")
        self._keep(_quoted(part), rows, kept)
        parts = [self._temporary[table]] if before is None else self._parts.pop(_quoted(before))
        self._longer[table] = self._join([*parts, part])
        if before is not None:
            self._drop(before)

    def _join(self, parts: list[exp.Table]) -> exp.Table:
        """A temporary table of the rows of several."""
        whole = self.workbench("parts")
        together = render("engine/join_parts", self.dialect, table=whole, parts=parts)
        self._run(lambda: self.session.sql(together))
        self._parts[_quoted(whole)] = parts
        return whole

    def drop(self, table: exp.Table) -> None:
        """Drop a temporary table of this run early, once, with all its parts: its name is not given again."""
        whole = self._longer.pop(_quoted(table), table)
        parts = self._parts.pop(_quoted(whole), [table])
        for view in dict.fromkeys((whole, *parts)):
            self._drop(view)

    def written(self, sql: str) -> str:
        """A statement in Spark's SQL; a temporary table that rows were added to is read with them."""
        return self._named(super().written(sql))

    def _named(self, text: str) -> str:
        for table, whole in self._longer.items():
            text = text.replace(table, _quoted(whole))
        return text

    def query(self, sql: str) -> pa.Table:
        """Run a statement for its rows."""
        text = self.written(sql)
        rows = plain(self._run(lambda: self.session.sql(text).toArrow()))
        self.count(rows.num_rows, rows.nbytes)
        return rows

    def portions(self, table: exp.Table) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, by their hash, each portion a statement: toArrow gathers all rows of one."""
        columns = [identifier(c.name) for c in self.columns(table)]
        rows = self.read("engine/count_rows", table=table)[0]["rows"]
        portions = max(1, -(-rows * len(columns) * _NUMBER // PORTION))
        if portions == 1:
            yield self.ask("engine/read_table", table=table, columns=columns)
            return
        asked = {"table": table, "columns": columns, "portions": portions}
        for portion in range(portions):
            yield self.query(render("engine/read_portion", self.dialect, **asked, portion=portion))

    def read(self, template: str, /, **parameters: object) -> list[dict[str, Any]]:
        """Rows of one of the engine's own questions to the catalogue; they are not counted."""
        text = self._named(render(template, self.dialect, **parameters))
        found: list[dict[str, Any]] = self._run(lambda: self.session.sql(text).toArrow()).to_pylist()
        return found

    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> exp.Table:
        """A temporary view of this run on these rows; those of a reader go over, and are kept there, by portions."""
        parts, kept = [], not isinstance(rows, pa.Table)
        for portion in by_size(rows, PORTION):
            part, sent = self.workbench(name), sendable(portion)
            self._run(partial(register, self.session, sent, _quoted(part), kept=kept))
            self.count(sent.num_rows, sent.nbytes)
            parts.append(part)
        return parts[0] if len(parts) == 1 else self._join(parts)

    def workbench(self, name: str) -> exp.Table:
        """A temporary table's name, unique to this call; it is dropped when the engine is closed."""
        table = super().workbench(name)
        self._temporary[_quoted(table)] = table
        return table

    def _run(self, work: Callable[[], T]) -> T:
        """Do what speaks to Spark; Ctrl-C cancels the statement there. Nothing is logged here: it would hold values."""
        from sqldeid.engine.spark_errors import Gone, translated

        self.statements += 1
        try:
            with silent(), translated():
                try:
                    return work()
                except KeyboardInterrupt:
                    with suppress(Exception):
                        self.session.interruptTag(self._tag)
                    raise
        except Gone:
            self.gone = True
            raise

    def commented(self, text: str, comments: Mapping[str, str]) -> exp.Table:
        """A temporary view on a query's rows; its columns have these comments, or none, and fields within them none.

        Whatever is made of a query has the comments of the columns that it reads, in files of Parquet, too.
        """
        table = self.workbench("commented")

        def make() -> None:
            rows, told = self.session.sql(text), []
            for field in rows.schema.fields:
                value, bare = rows[identifier(field.name).sql(dialect="spark")], uncommented(field.dataType)
                value = value if bare == field.dataType else value.cast(bare)
                told.append(value.alias(field.name, metadata={"comment": comments.get(field.name, "")}))
            rows.select(*told).createOrReplaceTempView(_quoted(table))

        self._run(make)
        return table

    # ---- catalogue ----------------------------------------------------------------------------------------------

    def look_in(self, schema: str) -> None:
        """Have `relations` tell of a schema, too, where there is one of that name."""
        self._there.look_in(schema)
        self.refresh()

    def tell_of(self, schema: str) -> None:
        """Have `relations` tell of a schema that was made since, once the catalogue is read again."""
        self._there.tell_of(schema)

    def read_relations(self) -> Sequence[Relation]:
        """Tables and views of the schemas that were looked in."""
        return self._there.relations()

    def made_at(self, relation: Relation) -> str:
        """When a table of `relations` was made, as the catalogue writes it; empty where it does not say."""
        return self._there.made_at(relation)

    def read_beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """With what the texts of views name; None of a temporary view, whose text nobody keeps."""
        return tables_beneath(parts, self._place, self._described)

    def _described(self, parts: tuple[str, ...]) -> list[dict[str, Any]]:
        """What the catalogue tells of a table or view; nothing of a table that it told of before."""
        listed = self._catalogue() if parts[0] == self._place[0] else {}
        if parts[1:] in {r.parts for r in listed.values() if not r.is_view}:
            return []
        return self.read("engine/describe_table", table=table_name(*parts))

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The table or view of that name (case does not matter); a temporary view of the session before others.

        Raises
        ------
        JobError
            If there is none.
        """
        from sqldeid.engine.spark_errors import NoTable

        name = parts[-1].casefold()
        schema = parts[-2] if len(parts) > 1 else self.schemas[0]
        try:
            if len(parts) > 2:
                self.columns(table_name(*parts))
                return table_name(*parts)
            there = self.read("engine/list_tables", schema=identifier(schema))
        except (JobError, NoTable):
            there = []
        temporary = [r for r in there if r["isTemporary"] and r["tableName"].casefold() == name]
        if temporary and len(parts) == 1:
            return table_name(temporary[0]["tableName"])
        lasting = [r for r in there if not r["isTemporary"]]
        for row in lasting:
            if row["tableName"].casefold() == name:
                return table_name(row["namespace"], row["tableName"])
        offered = listed(sorted(r["tableName"] for r in lasting))
        raise JobError.at(
            key,
            f"there is no table or view {'.'.join(parts)} on Spark; schema {schema} has "
            f"{offered or 'none that you may read'}",
            unnamed="source",
        )

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery; it is analysed, not run."""
        refuse_unlike(relation, "Spark", key=key or "source")
        try:
            text = self._named(render("engine/describe_relation", self.dialect, relation=relation))
            schema = self._run(lambda: self.session.sql(text).schema)
        except JobError as error:
            raise JobError.at(key, error.message, unnamed="source") from None
        except SqlglotError:
            raise JobError.at(key, "Spark has no such SQL; simplify it", unnamed="source") from None
        found = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        if days := [name for name, type_ in found if type_ == "interval day" and isinstance(relation, exp.Subquery)]:
            said = "a difference of two dates is an interval on Spark, a number elsewhere; write DATE_DIFF('day', …)"
            raise JobError.at(key or "source", f"{', '.join(days)}: {said}")
        return tuple(column_of(name, type_) for name, type_ in found)

    # ---- the run ------------------------------------------------------------------------------------------------

    @property
    def _tag(self) -> str:
        return f"sqldeid-{self.run_id}"

    def begin(self, *, writing: bool = False, place: str = "") -> None:
        """Give the session the settings that our statements need, and learn where its names are looked up."""
        self._run(lambda: self.session.addTag(self._tag))
        written_as = self._run(lambda: self.session.conf.get(FORMAT, ""))
        for name, value in settings_for(written_as).items():
            self._change(name, value)
        for name, value in UNLESS_SET.items():
            self._change(name, value, unset=value)
        there = self.read("engine/read_place")[0]
        kept = self._run(lambda: self.session.conf.get("spark.sql.catalogImplementation", "in-memory"))
        self._persistent = kept != "in-memory" or there["catalog"] != "spark_catalog"
        self.schemas = (there["schema"],)
        self._place = (there["catalog"], there["schema"])
        self.look_in(there["schema"])

    def _change(self, name: str, value: str, *, unset: str = "") -> None:
        """Give the session a setting; what it was comes back at the end. Where it has none, it has `unset`."""
        if name in self._changed:
            return
        before = self._run(partial(self.session.conf.get, name, None))
        if (before or unset).casefold() != value.casefold():
            self._changed[name] = before
            self._run(partial(self.session.conf.set, name, value))

    def commit(self) -> None:
        """What was published stays (`sqldeid.publish.spark` made it appear); nothing is undone from here on."""
        self.committed = True
        self.undo.clear()

    def close(self) -> SqldeidError | None:
        """Undo what was staged and not published, drop our views, give a user's session its settings back."""
        failed: SqldeidError | None = None
        self._longer.clear()  # now a name means one view again
        steps: list[Callable[[], None]] = [*reversed(self.undo)]
        steps += [partial(self._drop, table) for table in self._temporary.values()]
        if not self.own:
            steps += [partial(self._restore, name, value) for name, value in self._changed.items()]
            steps.append(lambda: self._run(lambda: self.session.removeTag(self._tag)))
        for step in steps:
            if self.gone:  # every step would knock again for half a minute
                break
            try:
                step()
            except SqldeidError as error:
                failed = failed or error
        self.undo, self._temporary, self._changed = [], {}, {}
        if self.own:
            with silent():
                stop_session(self.session, gone=self.gone)
        self.bench.close()
        return failed

    def _drop(self, view: exp.Table) -> None:
        super().drop(view)
        self._temporary.pop(_quoted(view), None)

    def _restore(self, name: str, value: str | None) -> None:
        if value is None:
            self._run(lambda: self.session.conf.unset(name))
        else:
            self._run(lambda: self.session.conf.set(name, value))


def _quoted(table: exp.Table) -> str:
    return table.sql(dialect="spark")
