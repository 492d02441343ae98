"""Postgres: a server named by its URL, or an open psycopg connection of an ETL job's.

Everything happens in one transaction: one snapshot (REPEATABLE READ), and all or nothing of what is written. What reads
the source runs where nothing but temporary tables can be written, until a release is staged. Rows come out by COPY, as
Arrow: a second connection, such as ADBC's, would see neither the snapshot nor our temporary tables.

Source: engines.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqldeid.engine.base import Capabilities, Column, Relation
from sqldeid.engine.choosing import shown
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.postgres_begin import claim_place
from sqldeid.engine.postgres_cursor import PlainCursor
from sqldeid.engine.postgres_end import ROLLBACK_SECONDS, to_the_end
from sqldeid.engine.postgres_errors import granting, locked, quoted, refused, translate
from sqldeid.engine.postgres_types import PostgresType, arrow_type, column_type, from_csv, spell, to_csv
from sqldeid.engine.remote import PORTION, Remote
from sqldeid.errors import EngineError, Interrupted, JobError, SqldeidError
from sqldeid.sql import Fixed, identifier, literal, render
from sqldeid.sql import column as column_of
from sqldeid.sql.unlike import refuse_unlike

T = TypeVar("T")

CAPABILITIES = Capabilities(
    dialect="postgres",
    transactional_ddl=True,
    snapshot_reads=True,
    persistent_catalog=True,
    max_identifier_bytes=63,
    case_sensitive_names=True,
    temp_tables=True,
    view_comments="after",
    secure_view="barrier",
    grants=True,
)

SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "idle_in_transaction_session_timeout": "0",
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "iso_8601",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "timezone_abbreviations": "Default",
    "quote_all_identifiers": "off",
    "xmlbinary": "base64",
    "xmloption": "content",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "client_min_messages": "warning",
    "jit": "off",
    "work_mem": "256MB",
    "default_statistics_target": "10",
}
"""Of the run's transaction alone. Functions are the system's, never a user's of the same name; a search may take longer
than a session may idle; texts of values repeat; of temporary tables, which are read some times, a tenth of the usual
sample tells enough."""

LOCK_TIMEOUT = "30s"
"""Where the session sets none."""

PATIENCE = "-c lock_timeout=2s -c statement_timeout=5s"
"""Of a session that looks who holds a lock: the catalogue may be what is locked."""

LEAST_VERSION = 120000
CONNECT_SECONDS = 10

_FILLED = re.compile(r'CREATE TEMPORARY TABLE ("(?:[^"]|"")+") AS\s+(.*)', re.DOTALL)


def open_source(database: object, bench: DuckDBEngine) -> PostgresEngine:
    """The engine on a URL's server or on a user's connection; it has not begun.

    Raises
    ------
    EngineError
        If no server answers, or it does not let us in.
    JobError
        If the URL cannot be read, the connection is busy or closed, or the server is too old.
    """
    if isinstance(database, str):
        return PostgresEngine(_connect(database), bench, shown(database), url=database)
    if not isinstance(database, psycopg.Connection):
        raise JobError("give a psycopg.Connection; an asynchronous one is not taken")
    if database.closed:
        raise JobError("the connection is closed; open it first")
    if database.info.transaction_status != pq.TransactionStatus.IDLE:
        raise JobError("the connection has an open transaction; commit it or roll it back first")
    if database.pgconn.pipeline_status != pq.PipelineStatus.OFF:
        raise JobError("the connection is in pipeline mode, in which nothing can be read by COPY; leave that first")
    return PostgresEngine(database, bench, f"connection to {database.info.dbname}")


def _connect(url: str, **more: str) -> psycopg.Connection[Any]:
    label = shown(url)
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        raise JobError(
            f"{label}: the URL cannot be read; write postgresql://user@host:5432/database, with other characters than "
            "letters and digits as %40 and so on"
        ) from None
    defaults = {"connect_timeout": CONNECT_SECONDS, "application_name": "sqldeid"}
    try:
        missing = {k: v for k, v in defaults.items() if k not in given}
        return psycopg.connect(url, autocommit=True, **missing, **more)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise refused(error, label) from None


class PostgresEngine(Remote):
    """The engine protocol on a psycopg connection.

    Parameters
    ----------
    connection
        Either the engine's own or a user's.
    url
        Of a connection that is ours: it is closed in the end, and a second one may ask who holds a lock. A user's is
        left as it was found.
    """

    capabilities = CAPABILITIES

    def __init__(
        self, connection: psycopg.Connection[Any], bench: DuckDBEngine, label: str, *, url: str | None = None
    ) -> None:
        super().__init__(bench, label, ())
        self.connection = connection
        self.own = url is not None
        self.role = ""
        self._url = url
        self._unreadable: set[tuple[str, ...]] = set()
        self._autocommit = connection.autocommit
        self._types: dict[int, PostgresType] = {}
        self._begun = False
        self._guarded = False

    # ---- statements ---------------------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Run a statement for its effect; a temporary table is made first and filled where nothing else can be."""
        text = self.written(sql)
        filled = _FILLED.fullmatch(text)
        if filled is None:
            self._unguarded(text)
            return
        table, rows = Fixed(filled[1], self.dialect), Fixed(filled[2], self.dialect)
        self._unguarded(render("engine/create_empty", self.dialect, table=table, rows=rows))
        self._guarded_run(render("engine/fill_table", self.dialect, table=table, rows=rows))
        self._guarded_run(render("engine/analyze_table", self.dialect, table=table))

    def query(self, sql: str) -> pa.Table:
        """Run a statement for its rows, by COPY, where nothing can be written."""
        [rows] = self.parts(sql, most=None)
        return rows

    def parts(self, sql: str, *, most: int | None) -> Generator[pa.Table, None, None]:
        """The rows of a statement in parts of about `most` bytes, one at least; the connection is busy meanwhile.

        Whoever does not read to the end closes it, and the statement is cancelled.
        """
        text = self.written(sql)
        self._guard()
        described = self._describe(text)
        names = [f"c{i}" for i in range(len(described))]
        types = self._known([oid for _, oid, _ in described])
        schema = pa.schema([(n, arrow_type(oid, types)) for n, (_, oid, _) in zip(names, described, strict=True)])
        with closing(self._copy_out(text, most)) as read:
            for part in read:
                rows = from_csv(part, schema, [name for name, _, _ in described])
                self.count(rows.num_rows, rows.nbytes)
                yield rows

    def portions(self, table: exp.Table) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, by one COPY; the connection is busy until all are read."""
        columns = [identifier(c.name) for c in self.columns(table)]
        return self.parts(render("engine/read_table", table=table, columns=columns), most=PORTION)

    def put(
        self, name: str, rows: pa.Table | pa.RecordBatchReader, types: Sequence[exp.DataType] | None = None
    ) -> exp.Table:
        """A temporary table of this run with these rows, by COPY; of these types, or of those in which rows travel."""
        table = self.workbench(name)
        types = types or [exp.DataType.build(column_type(f.type), dialect="duckdb") for f in rows.schema]
        columns = [{"name": identifier(f.name), "type": t} for f, t in zip(rows.schema, types, strict=True)]
        self._unguarded(render("engine/create_temporary", self.dialect, table=table, columns=columns))
        text = render("engine/copy_in", self.dialect, table=table)

        def send() -> tuple[int, int]:
            number = sent = 0
            with self._cursor() as cursor, cursor.copy(text.encode()) as copy:
                for count, part in to_csv(rows):
                    copy.write(part)
                    number, sent = number + count, sent + len(part)
            return number, sent

        self.count(*self._run(send))
        self._guarded_run(render("engine/analyze_table", self.dialect, table=table))
        return table

    def analyze_kept(self, table: exp.Table) -> None:
        """Have the planner know a table that outlives the run, as well as the session has it know its own."""
        target = "default_statistics_target"
        self._unguarded(render("engine/set_to_default", self.dialect, name=identifier(target)))
        self._send(render("engine/analyze_table", self.dialect, table=table))
        self.read("engine/set_local", settings=[{"name": literal(target), "value": literal(SETTINGS[target])}])

    def read(self, template: str, /, **parameters: object) -> list[tuple[Any, ...]]:
        """Rows of one of the engine's own questions to the catalogue; they are not counted."""
        text = render(template, self.dialect, **parameters)

        def ask() -> list[tuple[Any, ...]]:
            with self._cursor() as cursor:
                return cursor.execute(text.encode()).fetchall()

        return self._run(ask)

    def _copy_out(self, text: str, most: int | None) -> Generator[bytes, None, None]:
        """What COPY gives, whole rows; in parts of about `most` bytes, the first of which may be empty."""
        copy_text = render("engine/copy_out", self.dialect, rows=Fixed(text, self.dialect))
        self.statements += 1
        with self._translating(text), self._cursor() as cursor, cursor.copy(copy_text.encode()) as copy:
            gathered, size, first = [], 0, True
            for row in copy:  # a message of the server's is a row
                gathered.append(bytes(row))
                size += len(row)
                if most is not None and size >= most:
                    yield b"".join(gathered)
                    gathered, size, first = [], 0, False
            if gathered or first:
                yield b"".join(gathered)

    def _describe(self, text: str) -> list[tuple[str, int, int]]:
        """Name, type and modifier of every column of a query, which is prepared, not run."""

        def prepare() -> list[tuple[str, int, int]]:
            wire = self.connection.pgconn
            for result in (wire.prepare(b"", text.encode()), wire.describe_prepared(b"")):
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    raise psycopg.errors.error_from_result(result, encoding="utf-8")
            return [((result.fname(i) or b"").decode(), result.ftype(i), result.fmod(i)) for i in range(result.nfields)]

        return self._run(prepare, text)

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        return PlainCursor(self.connection, row_factory=tuple_row)

    def _send(self, text: str) -> None:
        def run() -> None:
            with self._cursor() as cursor:
                cursor.execute(text.encode(), prepare=False)

        self._run(run, text)

    def _run(self, work: Callable[[], T], text: str = "") -> T:
        """Do what speaks to the server, by this text; Ctrl-C cancels the statement there (psycopg does that)."""
        self.statements += 1
        with self._translating(text):
            return work()

    @contextmanager
    def _translating(self, text: str = "") -> Iterator[None]:
        """Errors of the driver's as ours."""
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted("interrupted; nothing was published") from None
        except psycopg.errors.LockNotAvailable:
            raise self._locked(text) from None
        except psycopg.Error as error:
            raise translate(error, self.role) from None

    def _locked(self, text: str) -> EngineError:
        """What to say of a lock that did not come: who has it is asked by a session of its own, for ours has failed."""
        named = [parts for parts in self._relations or () if quoted(*parts) in text]
        holders: list[tuple[str, str, str, int]] = []
        if self._url is not None:
            ours = literal(self.connection.info.backend_pid)
            with suppress(psycopg.Error, EngineError), _connect(self._url, options=PATIENCE) as other:
                holders = other.execute(render("engine/list_holders", self.dialect, ours=ours).encode()).fetchall()
        changes = text.lstrip().startswith(("DROP", "ALTER"))
        blocking = {
            pid
            for schema, name, mode, pid in holders
            if (changes or mode == "AccessExclusiveLock") and (schema, name) in named
        }
        return locked([".".join(parts) for parts in named], sorted(blocking))

    # ---- read-only, but for temporary tables --------------------------------------------------------------------

    def _guard(self) -> None:
        if self._begun and not self._guarded:
            self._send(render("engine/guard_reading", self.dialect))
            self._guarded = True
            self._send(render("engine/forbid_writing", self.dialect))

    def _guarded_run(self, text: str) -> None:
        self._guard()
        self._send(text)

    def _unguarded(self, text: str) -> None:
        if self._guarded:
            self._send(render("engine/end_guard", self.dialect))
            self._guarded = False
        self._send(text)

    # ---- catalogue ----------------------------------------------------------------------------------------------

    def read_relations(self) -> Sequence[Relation]:
        """Tables and views that the user may look at; schema and name."""
        rows = self.read("engine/list_relations")
        self._unreadable = {(schema, name) for schema, name, _, _, readable, _ in rows if not readable}
        return [Relation((s, n), kind in ("v", "m"), comment, hides=hides) for s, n, kind, comment, _, hides in rows]

    def read_beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """With partitions and heirs, and what views read; None of a view that calls what may read tables itself."""
        schema, name = parts[-2:]
        found = self.read("engine/list_beneath", schema=literal(schema), name=literal(name))
        unknown = not found or any(unknown for _, _, unknown in found)
        return None if unknown else frozenset(f"{schema}.{name}".casefold() for schema, name, _ in found)

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The table or view of that name, of which the user may read a column at least.

        Raises
        ------
        JobError
            If there is none, or more than one that differs in case.
        EngineError
            If it is there, and the user lacks a right.
        """
        found = super().resolve(parts, key=key)
        if (there := (found.db, found.name)) in self._unreadable:
            raise self._lacks(key, f"permission denied for table {'.'.join(there)}", f"SELECT ON {quoted(*there)}")
        return found

    def refuse_hidden(self, parts: tuple[str, ...], key: str) -> None:
        """Say so where a table of that name is in a schema that the user may not use."""
        wanted = tuple(p.casefold() for p in parts)
        for there in self.read("engine/list_hidden"):
            if tuple(p.casefold() for p in there)[-len(wanted) :] == wanted:
                shown_as = "" if len(wanted) > 1 else f", and name the table as {'.'.join(there)}"
                right = f"USAGE ON SCHEMA {quoted(there[0])}"
                raise self._lacks(key, f"permission denied for schema {there[0]}", right, shown_as)

    def _lacks(self, key: str, said: str, right: str, also: str = "") -> EngineError:
        text = (
            f"the server does not allow it: {said}; the role {self.role} needs this right: {granting(right, self.role)}"
        )
        return EngineError.at(key, f"{text}{also}", unnamed="source")

    def refuse_unowned(self, schema: str, names: Sequence[str], key: str) -> None:
        """Refuse a run that could not publish, before it begins.

        Parameters
        ----------
        names
            Of the tables and views that it replaces.

        Raises
        ------
        EngineError
            If the user may not create there, or does not own what is replaced.
        """
        there, creates, database = self.read("publish/list_rights", schema=literal(schema))[0]
        if not creates:
            denied = f"permission denied for {f'schema {schema}' if there else f'database {database}'}"
            right = f"USAGE, CREATE ON SCHEMA {quoted(schema)}" if there else f"CREATE ON DATABASE {quoted(database)}"
            raise self._lacks(key, denied, right)
        for name in names:
            [(owner, droppable)] = self.read("publish/read_owner", schema=literal(schema), name=literal(name))
            if not droppable:
                given = f"ALTER TABLE {quoted(schema, name)} OWNER TO {quoted(self.role)}"
                text = f"{schema}.{name} is to be replaced and belongs to the role {owner}; run as that role, or"
                raise EngineError.at(key, f"{text} have it give this release away: {given}")

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery; it is prepared and described, not run."""
        refuse_unlike(relation, "Postgres", key=key or "source")
        try:
            text = render("engine/describe_relation", self.dialect, relation=relation)
            self._guard()
            described = self._describe(text)
        except JobError as error:
            raise JobError.at(key, error.message, unnamed="source") from None
        except SqlglotError:
            raise JobError.at(key, "Postgres has no such SQL; simplify it", unnamed="source") from None
        types = self._known([oid for _, oid, _ in described])
        return tuple(Column(name, *spell(oid, modifier, types)) for name, oid, modifier in described)

    def spells_alike(self, relation: exp.Expr, column: Column) -> bool:
        """Whether the collation of a column is nondeterministic; persons are compared by their bytes in some places."""
        if column.type != "VARCHAR":
            return False
        self._guard()
        [(alike,)] = self.read("engine/tell_collation", relation=relation, text=column_of(column.name, "x"))
        return bool(alike)

    def _known(self, oids: Sequence[int]) -> dict[int, PostgresType]:
        """The types of these numbers, and what they are made from."""
        wanted = {o for o in oids if o not in self._types}
        while wanted:
            for oid, *rest in self.read("engine/list_types", types=sorted(wanted)):
                self._types[oid] = PostgresType(*rest)
            made = [self._types[o] for o in wanted]
            wanted = {o for t in made for o in (t.base, t.element) if o and o not in self._types}
        return self._types

    # ---- transaction --------------------------------------------------------------------------------------------

    def begin(self, *, writing: bool = False, place: str = "") -> None:
        """Open the run's snapshot, with the settings that our statements need; they end with it.

        Raises
        ------
        EngineError
            If another run publishes into the schema `place`, which this one has from before its snapshot on.
        """
        if self.connection.info.server_version < LEAST_VERSION:
            raise JobError(f"{self.label}: the server is older than Postgres 12, which is the first that works")
        if not self.own:
            self._run(lambda: self.connection.set_autocommit(True))
        self._send(render("engine/begin_snapshot", self.dialect))
        self._begun = True
        if place:
            claim_place(place, self.read, self._send)
        if self.connection.info.encoding != "utf-8":  # of a database in SQL_ASCII psycopg gives text as bytes
            self._set_local({"client_encoding": SETTINGS["client_encoding"]})
        schemas, lock_timeout, self.role = self.read("engine/read_session")[0]
        self.schemas = tuple(schemas)
        self._set_local(SETTINGS | ({"lock_timeout": LOCK_TIMEOUT} if lock_timeout == "0" else {}))

    def _set_local(self, settings: Mapping[str, str]) -> None:
        named = [{"name": literal(name), "value": literal(value)} for name, value in settings.items()]
        self.read("engine/set_local", settings=named)

    def commit(self) -> None:
        """Keep what was published; temporary tables go with the transaction.

        Ctrl-C waits until it is done, so that we know what became of it; after a while it is cancelled
        (`sqldeid.engine.postgres_end`).
        """
        if self._guarded:
            self._send(render("engine/end_guard", self.dialect))
            self._guarded = False
        self._begun = False
        failed = to_the_end(self.connection, self._commit)
        if failed is not None:
            raise EngineError(
                f"{failed.message.removesuffix('; nothing was published')}; that happened while the release was being "
                "committed: see with verify whether it is there"
            )

    def _commit(self) -> None:
        """In a thread that no signal reaches, so that it is known whether the transaction was committed."""
        self._send(render("engine/commit_transaction"))
        self.committed = True

    def close(self) -> SqldeidError | None:
        """Roll back what is open, give a user's connection its own mode back, close our own, and the bench."""
        failed: SqldeidError | None = None
        try:
            if self._begun and not self.connection.closed:
                self._begun = self._guarded = False
                failed = to_the_end(
                    self.connection, lambda: self._send(render("engine/rollback_transaction")), ROLLBACK_SECONDS
                )
            if failed is None and not self.own and not self.connection.closed:
                self._run(lambda: self.connection.set_autocommit(self._autocommit))
        except SqldeidError as error:
            failed = error
        if self.own:
            self.connection.close()
        self.bench.close()
        return failed if not self.own else None
