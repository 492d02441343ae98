"""DuckDB: a database file of the custodian's, or an open connection of an ETL job's.

A file is opened by an in-memory instance that attaches it, so that one memory limit counts for source, workbench and
release, and that is closed to files and network before any user SQL runs (engines.md, *Opening DuckDB*).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Asked, Capabilities, Column, Relation
from sqldeid.engine.duckdb_beneath import calls_error, tables_beneath
from sqldeid.engine.duckdb_errors import InvalidInputError
from sqldeid.engine.duckdb_types import kind_of
from sqldeid.engine.plain import Lent, refuse_unattachable
from sqldeid.engine.worker import Worker
from sqldeid.errors import RAISED, EngineError, JobError, SqldeidError, listed
from sqldeid.sql import identifier, literal, render, table_name

T = TypeVar("T")

TRIGGERS = int(duckdb.__version__.partition(".")[0]) > 1
"""Whether this DuckDB has triggers."""

CAPABILITIES = Capabilities(
    dialect="duckdb",
    transactional_ddl=True,
    snapshot_reads=True,
    persistent_catalog=True,
    max_identifier_bytes=2**31,
    case_sensitive_names=False,
    temp_tables=True,
    view_comments="after",
    secure_view="none",
    grants=False,
)

SEARCH_PATH = "search_path"
NEUTRAL = {
    "python_enable_replacements": ("false",),
    "preserve_insertion_order": ("true",),
    "default_collation": ("",),
    "default_order": ("asc", "ascending"),
    "default_null_order": ("nulls_last",),
    "integer_division": ("false",),
    "TimeZone": ("UTC", "etc/utc"),
    "Calendar": ("gregorian",),
    "error_on_division_by_zero": ("true",),
    "ieee_floating_point_ops": ("true",),
    "old_implicit_casting": ("false",),
    "disable_timestamptz_casts": ("false",),
    "dialect_compatibility_mode": ("NONE",),
    "regex_match_operator_semantics": ("partial",),
    "scalar_subquery_error_on_multiple_rows": ("true",),
    "legacy_disable_null_type": ("false",),
    "errors_as_json": ("false",),
    "arrow_large_buffer_size": ("false",),
    "arrow_lossless_conversion": ("false",),
    "arrow_output_list_view": ("false",),
    "arrow_output_version": ("1.0",),
    "produce_arrow_string_view": ("false",),
}
"""Settings under which our statements mean what they say, and how DuckDB spells them; a user's may be others, and our
own instances' would be the machine's (`TZ` of the environment is DuckDB's time zone). The first keeps Python variables
out of a job's SQL, the second keeps the order of a release; the rest is all that changes how a value is spelled,
compared or computed, how an error reads, and as what Arrow type a value leaves. Versions of DuckDB have some of them.
Not among them: `binary_as_string`, under which a user's views were bound; what it changes is a column's type, and a
ledger compares types."""


def _of(relations: Iterable[Relation], catalogs: Iterable[str]) -> list[Relation]:
    wanted = {c.casefold() for c in catalogs}
    return [r for r in relations if r.parts[0].casefold() in wanted]


class DuckDBEngine(Asked):
    """The engine protocol on a DuckDB connection.

    Parameters
    ----------
    connection
        An open connection, either the engine's own or a user's.
    catalog
        The attached database that holds the source.
    own
        Whether the connection is ours to close; a user's is left as it was found.
    elsewhere
        Where files are lent plain names if not beside them.
    """

    capabilities = CAPABILITIES

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: str,
        schema: str,
        *,
        own: bool,
        elsewhere: Path | None = None,
    ) -> None:
        self.connection = connection
        self.catalog = catalog
        self.schema = schema
        self.own = own
        self.read_only = False
        self.can_attach = True
        self.spills_plain = False
        self.guessed = False  # types, from all rows of a file of text
        self.statements = 0
        self.moved = (0, 0)
        self._run_id = secrets.token_hex(4)
        self._temporary: dict[str, exp.Table] = {}
        self._tables = 0
        self._in_transaction = False
        self._relations: dict[tuple[str, ...], Relation] | None = None
        self._attached_too: dict[tuple[str, ...], Relation] = {}  # what views of a user may read
        self._worker = Worker(connection)
        self.lent = Lent(elsewhere)
        self._changed: dict[str, str] = {}
        self._attached: list[str] = []

    @property
    def bench(self) -> DuckDBEngine:
        """Itself: classes are searched where they were folded."""
        return self

    def to_bench(self, table: exp.Table) -> exp.Table:
        """The table is there already."""
        return table

    from_bench = to_bench

    # ---- statements -------------------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Run a statement for its effect; the cursor is drained (DuckDB 2.0 needs it before `register`)."""
        self._run(lambda: self.connection.execute(sql).fetchall())

    def query(self, sql: str) -> pa.Table:
        """Run a statement for its rows."""
        rows = self._run(lambda: self.connection.sql(sql).to_arrow_table())
        self.moved = (self.moved[0] + rows.num_rows, self.moved[1] + rows.nbytes)
        return rows

    def _run(self, work: Callable[[], T]) -> T:
        self.statements += 1
        try:
            return self._worker.run(work)
        except InvalidInputError:
            if calls_error([r.definition for r in (self._relations or {}).values()], self._macros_beside()):
                raise JobError(RAISED) from None
            raise

    def _finish(self, sql: str) -> None:
        """Run a statement that ends something, to its end."""
        self.statements += 1
        self._worker.finish(sql)

    # ---- catalogue --------------------------------------------------------------------------------------------

    def relations(self) -> Sequence[Relation]:
        """Tables and views of the source's database (and, on a user's connection, temporary ones)."""
        return list(self._catalogue().values())

    def relations_in(self, *catalogs: str) -> list[Relation]:
        """Tables and views of attached databases."""
        return _of(self._listed(), catalogs)

    def _listed(self) -> list[Relation]:
        return [
            Relation(
                (row["catalog"], row["schema"], row["name"]),
                row["kind"] == "view",
                row["comment"] or "",
                row["definition"] or "",
            )
            for row in self.rows("engine/list_relations")
        ]

    def _catalogue(self) -> dict[tuple[str, ...], Relation]:
        if self._relations is None:
            every = self._listed()
            found = _of(every, (self.catalog, *([] if self.own else ["temp"])))
            self._relations = {tuple(p.casefold() for p in r.parts): r for r in found}
            self._attached_too = {} if self.own else {tuple(p.casefold() for p in r.parts): r for r in every}
        return self._relations

    def refresh(self) -> None:
        """Forget the catalogue as read before; after objects were created or dropped."""
        self._relations = None

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The catalogue's table or view of that name (case does not matter), fully qualified."""
        there = self._catalogue()
        for reading in self._readings(tuple(p.casefold() for p in parts)):
            if reading in there:
                return table_name(*there[reading].parts)
        raise JobError.at(
            key,
            f"there is no table or view {'.'.join(parts)} in the database; "
            f"{self._offer()}; only what is listed is read, no other file and no data frame of that name"
            f"{self._beside(parts[-1])}",
            unnamed="source",
        )

    def _readings(self, parts: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """What a name may mean, in the order in which DuckDB looks."""
        catalog, schema = self.catalog.casefold(), self.schema.casefold()
        if len(parts) == 1:
            return [("temp", "main", *parts), (catalog, schema, *parts), (catalog, "main", *parts)]
        if len(parts) == 2:
            return [(catalog, *parts)] + ([(catalog, schema, parts[1])] if parts[0] == catalog else [])
        return [parts]

    def _beside(self, name: str) -> str:
        """In which other database of a user's connection a table of that name is, and how it is chosen."""
        found = {r.parts[0] for r in self._attached_too.values() if r.parts[-1].casefold() == name.casefold()}
        if not found:
            return ""
        chosen = identifier(min(found)).sql("duckdb", identify=False)
        return f". The database {min(found)} beside it has one of that name; a run reads the one in use: USE {chosen}"

    def _offer(self) -> str:
        names = sorted(".".join(r.parts[1:]) for r in self._catalogue().values())
        return f"it has {listed(names)}" if names else "it has no tables"

    def beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """The tables whose rows a resolved table or view shows, itself among them, without their database's name.

        None where a view calls a function that may read any table.
        """
        there = {**self._catalogue(), **self._attached_too}
        return tables_beneath(parts, there, self._macros)

    def _macros(self) -> list[tuple[str, str]]:
        """The names and definitions of what users defined."""
        return [(row["name"], row["definition"]) for row in self.rows("engine/list_definitions")]

    def _macros_beside(self) -> list[tuple[str, str]]:
        """The same where a statement has failed: its transaction takes no other. Temporary ones are not among them."""
        with suppress(duckdb.Error), closing(self.connection.cursor()) as beside:
            rows = beside.sql(render("engine/list_definitions")).to_arrow_table().to_pylist()
            return [(row["name"], row["definition"]) for row in rows]
        return []

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery, by DESCRIBE: it is bound, not run."""
        try:
            rows = self.rows("engine/describe_relation", relation=relation)
        except JobError as error:
            raise JobError.at(key, error.message, unnamed="source") from None
        found = tuple(Column(r["column_name"], r["column_type"], kind_of(r["column_type"])) for r in rows)
        # A name above values of another type is surely one, but for 12 above numbers.
        if not self.guessed or any(c.kind != "text" and not c.name[:1].isdigit() for c in found):
            return found
        return tuple(replace(c, named=False) for c in found)

    def spells_alike(self, relation: exp.Expr, column: Column) -> bool:
        """No: all that compares texts does so by their collation."""
        return False

    def output_names(self, query: exp.Query, *, key: str = "") -> tuple[str, ...]:
        """The names that a query gives its columns, before DuckDB renames equal ones; it is bound, not run."""
        try:
            rows = self.rows("engine/describe_query", query=query)
        except JobError as error:
            raise JobError.at(key, error.message, unnamed="source") from None
        return tuple(r["column_name"] for r in rows)

    # ---- workbench --------------------------------------------------------------------------------------------

    def workbench(self, name: str) -> exp.Table:
        """A temporary table's name, unique to this call, to be dropped at the end."""
        self._tables += 1
        table = table_name("temp", "main", f"sqldeid_{self._run_id}_{self._tables}_{name}")
        self._temporary[table.name] = table
        return table

    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> exp.Table:
        """A temporary table of this run with these rows; a reader is read batch by batch, once."""
        table = self.workbench(name)
        view = f"sqldeid_{self._run_id}_arrow"
        self._run(lambda: self.connection.register(view, rows))
        try:
            self.run("engine/create_workbench_table", table=table, rows=table_name(view))
        finally:
            self._run(lambda: self.connection.unregister(view))
        return table

    def drop(self, table: exp.Table) -> None:
        """Drop a temporary table of this run early, once: its name is not given again."""
        self.run("engine/drop_table", table=table)
        self._temporary.pop(table.name, None)

    # ---- transaction ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open the run's transaction: one snapshot of the source, and all or nothing of what is written."""
        self.run("engine/begin_transaction")
        self._in_transaction = True

    def neutralise(self) -> None:
        """Give a user's connection the settings that our statements need; `close` gives its own back."""
        names = [literal(name) for name in NEUTRAL]
        for row in self.rows("engine/read_settings", names=names):
            before = row["value"] or ""
            if not is_neutral(row["name"], before):
                self._set(row["name"], before, NEUTRAL[row["name"]][0])

    def _set(self, name: str, before: str, value: str) -> None:
        try:
            self.run("engine/set_setting", name=identifier(name), value=literal(value))
        except EngineError:
            raise JobError(
                f"the connection does not allow its setting {name} to be changed; set {name} = '{value}' before "
                "its configuration is locked"
            ) from None
        self._changed.setdefault(name, before)

    def commit(self) -> None:
        """Keep what was staged; the run's temporary tables go first."""
        self._drop_temporary()
        self._finish(render("engine/commit_transaction"))
        self._in_transaction = False

    def close(self) -> SqldeidError | None:
        """Roll back what is open, drop what is ours, restore a user's settings, close our own connection.

        Returns
        -------
        The first error; the steps after it are taken all the same.
        """
        failed = [
            error
            for step in (self._roll_back, self._drop_temporary, self._restore, self._detach)
            if (error := _attempt(step)) is not None
        ]
        self._worker.close()
        if self.own:
            self.connection.close()
        self.lent.close()
        return failed[0] if failed and not self.own else None

    def _roll_back(self) -> None:
        """What a failed COMMIT ended by itself cannot be rolled back, and need not be."""
        if self._in_transaction:
            self._in_transaction = False
            with suppress(EngineError):
                self._finish(render("engine/rollback_transaction"))

    def _drop_temporary(self) -> None:
        while self._temporary and not self.own:
            self._finish(render("engine/drop_table", table=self._temporary.popitem()[1]))

    def _restore(self) -> None:
        """Each of a user's settings; one that cannot be set again does not keep the others from being so."""
        self.use_source()
        failed: list[SqldeidError] = []
        while self._changed:
            name, value = self._changed.popitem()
            statement = render("engine/set_setting", name=identifier(name), value=literal(value))
            error = _attempt(partial(self._finish, statement))
            failed += [error] if error is not None else []
        if failed:
            raise failed[0]

    def _detach(self) -> None:
        while self._attached and not self.own:
            self._finish(render("engine/detach_database", catalog=identifier(self._attached.pop())))

    def use(self, catalog: str) -> None:
        """Look names up in another attached database (view texts then carry no catalogue), until `use_source`."""
        if SEARCH_PATH not in self._changed:
            self._changed[SEARCH_PATH] = self.row("engine/read_setting", setting=literal(SEARCH_PATH))["value"] or ""
        self.run("engine/use_schema", catalog=identifier(catalog), schema=identifier("main"))

    def use_source(self) -> None:
        """Look names up where they were looked up when the engine was opened."""
        if SEARCH_PATH in self._changed:
            value = literal(self._changed.pop(SEARCH_PATH))
            try:
                self._finish(render("engine/set_setting", name=identifier(SEARCH_PATH), value=value))
            except SqldeidError:  # DuckDB does not always read a path that it wrote
                self._finish(
                    render("engine/use_schema", catalog=identifier(self.catalog), schema=identifier(self.schema))
                )

    # ---- other databases --------------------------------------------------------------------------------------

    def attach(self, path: Path, catalog: str, *, read_only: bool) -> None:
        """Attach an existing database file.

        Raises
        ------
        JobError
            If DuckDB would take its path for another, or could not write there.
        """
        refuse_unattachable(path, writing=not read_only)
        self.run("engine/attach_database", path=literal(str(path)), catalog=identifier(catalog), read_only=read_only)
        self._attached.append(catalog)

    def create_database(self, path: Path, catalog: str) -> None:
        """Attach a fresh database file, in the storage version that DuckDB 1.4 reads."""
        self.run("engine/create_database", path=literal(str(path)), catalog=identifier(catalog))
        self._attached.append(catalog)

    def finish_database(self, catalog: str) -> None:
        """Write everything of an attached database to its file and let go of it."""
        self._finish(render("engine/checkpoint_database", catalog=identifier(catalog)))
        self._finish(render("engine/detach_database", catalog=identifier(catalog)))
        self._attached.remove(catalog)


def is_neutral(name: str, value: str) -> bool:
    """Whether a setting of `NEUTRAL` is one under which our statements mean what they say."""
    return value.casefold() in (wanted.casefold() for wanted in NEUTRAL[name])


def _attempt(step: Callable[[], None]) -> SqldeidError | None:
    """The error of a step of closing, where it fails."""
    try:
        step()
    except SqldeidError as error:
        return error
    return None
