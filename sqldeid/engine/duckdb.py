"""DuckDB: a database file of the custodian's, or an open connection of an ETL job's.

A file is opened by an in-memory instance that attaches it, so that one memory limit counts for source, workbench and
release, and that is closed to files and network before any user SQL runs (engines.md, *Opening DuckDB*).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Capabilities, Column, Kind, Relation
from sqldeid.engine.duckdb_errors import translate
from sqldeid.errors import EngineError, Interrupted, JobError
from sqldeid.sql import identifier, literal, render, table_name

T = TypeVar("T")

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

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"], "integer"),
    **dict.fromkeys(["UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "DECIMAL"], "number"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "float"),
    **dict.fromkeys(["BOOLEAN"], "boolean"),
    **dict.fromkeys(["DATE"], "date"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"], "timestamp"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", "TIME", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"], "text"),
    **dict.fromkeys(["TIME WITH TIME ZONE", "INTERVAL", "BIT"], "text"),
}


def kind_of(type_: str) -> Kind:
    """How values of a DuckDB type travel; nested types, BLOB and the rest do not ("other")."""
    if type_.endswith("]"):
        return "other"
    return _KINDS.get(type_.split("(")[0].strip(), "other")


class DuckDBEngine:
    """The engine protocol on a DuckDB connection.

    Parameters
    ----------
    connection
        An open connection, either the engine's own or a user's.
    catalog
        The attached database that holds the source.
    own
        Whether the connection is ours to close; a user's is left as it was found.
    """

    capabilities = CAPABILITIES

    def __init__(self, connection: duckdb.DuckDBPyConnection, catalog: str, schema: str, *, own: bool) -> None:
        self.connection = connection
        self.catalog = catalog
        self.schema = schema
        self.own = own
        self.statements = 0
        self.moved = (0, 0)
        self._run_id = secrets.token_hex(4)
        self._temporary: list[exp.Table] = []
        self._in_transaction = False
        self._relations: dict[tuple[str, ...], Relation] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqldeid-sql")
        self._replacements: bool | None = None
        self._moved_away = False
        self._attached: list[str] = []

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

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
        """Run in the worker thread, so that Ctrl-C reaches a long statement within a second."""
        self.statements += 1
        future = self._worker.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            self._stop(future)
            raise Interrupted("interrupted; nothing was published") from None
        except duckdb.Error as error:
            raise translate(error) from None

    def _stop(self, future: Future[Any]) -> None:
        while not future.done():
            self.connection.interrupt()
            try:
                future.exception(timeout=0.2)
            except (TimeoutError, KeyboardInterrupt):
                continue

    # ---- catalogue --------------------------------------------------------------------------------------------

    def relations(self) -> Sequence[Relation]:
        """Tables and views of the source's database (and, on a user's connection, temporary ones)."""
        return list(self._catalogue().values())

    def relations_in(self, *catalogs: str) -> list[Relation]:
        """Tables and views of attached databases."""
        wanted = {c.casefold() for c in catalogs}
        return [
            Relation((row["catalog"], row["schema"], row["name"]), row["kind"] == "view", row["comment"] or "")
            for row in self.query(render("engine/list_relations")).to_pylist()
            if row["catalog"].casefold() in wanted
        ]

    def _catalogue(self) -> dict[tuple[str, ...], Relation]:
        if self._relations is None:
            found = self.relations_in(self.catalog, *([] if self.own else ["temp"]))
            self._relations = {tuple(p.casefold() for p in r.parts): r for r in found}
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
        raise JobError(
            f"{key or 'source'}: there is no table or view {'.'.join(parts)} in the database; "
            f"{self._offer()}; data frames and files are not read",
            key=key,
        )

    def _readings(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        catalog, schema = self.catalog.casefold(), self.schema.casefold()
        if len(parts) == 1:
            return [(catalog, schema, *parts), (catalog, "main", *parts), ("temp", "main", *parts)]
        if len(parts) == 2:
            return [(catalog, *parts)] + ([(catalog, schema, parts[1])] if parts[0] == catalog else [])
        return [parts]

    def _offer(self) -> str:
        names = sorted(".".join(r.parts[1:]) for r in self._catalogue().values())
        if not names:
            return "it has no tables"
        shown = ", ".join(names[:8])
        return f"it has {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery, by DESCRIBE: it is bound, not run."""
        try:
            rows = self.query(render("engine/describe_relation", relation=relation)).to_pylist()
        except JobError as error:
            raise JobError(f"{key or 'source'}: {error.message}", key=key) from None
        return tuple(Column(r["column_name"], r["column_type"], kind_of(r["column_type"])) for r in rows)

    # ---- workbench --------------------------------------------------------------------------------------------

    def workbench(self, name: str) -> exp.Table:
        """A temporary table's name, unique to this run, to be dropped at the end."""
        table = table_name("temp", "main", f"sqldeid_{self._run_id}_{name}")
        if table not in self._temporary:
            self._temporary.append(table)
        return table

    def put(self, name: str, rows: pa.Table) -> exp.Table:
        """A temporary table of this run with these rows."""
        table = self.workbench(name)
        view = f"sqldeid_{self._run_id}_arrow"
        self._run(lambda: self.connection.register(view, rows))
        try:
            self.execute(render("engine/create_workbench_table", table=table, rows=table_name(view)))
        finally:
            self._run(lambda: self.connection.unregister(view))
        return table

    def drop(self, table: exp.Table) -> None:
        """Drop a temporary table of this run early, to free its memory."""
        self.execute(render("engine/drop_table", table=table))

    # ---- transaction ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open the run's transaction; refused where the user's connection has one open."""
        if not self.own:
            self._replacements = bool(self.query(render("engine/read_replacements")).column("enabled")[0].as_py())
            self.execute(render("engine/set_replacements", enabled=False))
        try:
            self.execute(render("engine/begin_transaction"))
        except EngineError:
            self._restore()
            raise JobError("the connection has an open transaction; commit it or roll it back first") from None
        self._in_transaction = True

    def commit(self) -> None:
        """Keep what was staged; the run's temporary tables go first."""
        self._drop_temporary()
        self.execute(render("engine/commit_transaction"))
        self._in_transaction = False

    def close(self) -> None:
        """Roll back what is open, drop what is ours, restore a user's settings, close our own connection."""
        try:
            if self._in_transaction:
                self._in_transaction = False
                self.execute(render("engine/rollback_transaction"))
            else:
                self._drop_temporary()
            self.use_source()
            self._restore()
            while self._attached and not self.own:
                self.execute(render("engine/detach_database", catalog=identifier(self._attached.pop())))
        finally:
            self._worker.shutdown(wait=True)
            if self.own:
                self.connection.close()

    def _drop_temporary(self) -> None:
        while self._temporary:
            self.execute(render("engine/drop_table", table=self._temporary.pop()))

    def _restore(self) -> None:
        if self._replacements is not None:
            self.execute(render("engine/set_replacements", enabled=self._replacements))
            self._replacements = None

    def use(self, catalog: str) -> None:
        """Look names up in another attached database (view texts then carry no catalogue)."""
        self.execute(render("engine/use_schema", catalog=identifier(catalog), schema=identifier("main")))
        self._moved_away = True

    def use_source(self) -> None:
        """Look names up where they were looked up when the engine was opened."""
        if self._moved_away:
            self.execute(
                render("engine/use_schema", catalog=identifier(self.catalog), schema=identifier(self.schema))
            )
            self._moved_away = False

    # ---- other databases --------------------------------------------------------------------------------------

    def attach(self, path: Path, catalog: str, *, read_only: bool) -> None:
        """Attach an existing database file."""
        self.execute(
            render(
                "engine/attach_database",
                path=literal(str(path)),
                catalog=identifier(catalog),
                read_only=read_only,
            )
        )
        self._attached.append(catalog)

    def create_database(self, path: Path, catalog: str) -> None:
        """Attach a fresh database file, in the storage version that DuckDB 1.4 reads."""
        self.execute(render("engine/create_database", path=literal(str(path)), catalog=identifier(catalog)))
        self._attached.append(catalog)

    def finish_database(self, catalog: str) -> None:
        """Write everything of an attached database to its file and let go of it."""
        self.execute(render("engine/checkpoint_database", catalog=identifier(catalog)))
        self.execute(render("engine/detach_database", catalog=identifier(catalog)))
        self._attached.remove(catalog)
