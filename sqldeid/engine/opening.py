"""Open what the user names: a DuckDB file, a CSV or Parquet file, or a connection that is already open.

Order matters (engines.md, *Opening DuckDB*): attach everything first, then close files, network and extensions for
good, and only then run anything that a job says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.engine.choosing import is_foreign, may_hold_secret
from sqldeid.engine.csv_lines import MALFORMED, SEPARATORS, flaw, wide
from sqldeid.engine.duckdb import NEUTRAL, DuckDBEngine, is_neutral
from sqldeid.engine.duckdb_errors import CONVERSION, heard, translate
from sqldeid.engine.plain import is_utf8
from sqldeid.engine.settings import Settings
from sqldeid.errors import EngineError, JobError, SqldeidError, listed
from sqldeid.files import without_parents
from sqldeid.sql import identifier, literal, render, table_name

if TYPE_CHECKING:
    import psycopg
    from typing_extensions import TypeIs

    from sqldeid.engine.frames import Frames

    Database = str | os.PathLike[str] | duckdb.DuckDBPyConnection | psycopg.Connection[Any]
else:  # drivers of other engines are extras; `sqldeid.engine.choosing` tells their connections by name
    Database = str | os.PathLike[str] | duckdb.DuckDBPyConnection

_TAKEN = {"memory", "system", "temp", "main", "pg_catalog", "information_schema", "sqldeid_target", "sqldeid_old"}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TWO_KINDS = (
    "a column holds values of two kinds, such as dates in two formats (not shown); write all alike, dates as 2026-01-31"
)
_LONGEST_LINE = 1 << 20

_SIZE = re.compile(r"\s*[0-9]+(\.[0-9]+)?\s*([KMGT]i?B?|B|bytes?|%)\s*", re.IGNORECASE)


def is_connection(database: object) -> bool:
    """Whether the user gave an open connection, or names a server, rather than a path: no file lies beside it."""
    return isinstance(database, duckdb.DuckDBPyConnection) or is_foreign(database)


def in_memory(database: object) -> TypeIs[Frames]:
    """Whether the user gave tables held in memory, one or several by name; nothing is imported to tell a path."""
    if isinstance(database, str | os.PathLike) or is_connection(database):
        return False
    return isinstance(database, Mapping) or hasattr(type(database), "__arrow_c_stream__")


def path_of(database: Database) -> Path:
    """The file that the user names.

    Raises
    ------
    JobError
        If there is no such file, or its name is none that the system takes.
    """
    text = _text(database)
    try:
        return _looked_up(text)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        said = error.strerror or "unknown reason"
        shown = "the database" if may_hold_secret(text) else text
        raise JobError(f"{shown}: cannot be looked up ({said}); give the path of a file that you may read") from None


def _looked_up(text: str) -> Path:
    if (flaw := _other_engine(text)) and not Path(text).exists():
        raise JobError(flaw)
    if _URL.match(text) and not Path(text).exists():
        engine = text.partition("://")[0]
        raise JobError(f"{engine}: is not an engine of sqldeid; give a DuckDB file, or a URL of postgresql:// or sc://")
    path = Path(text)
    if not path.exists() and may_hold_secret(text):
        raise JobError(
            "this is neither a file nor a URL of a server (not shown, for it may hold a password); write "
            "postgresql://user@host/database or sc://host:15002/;token=…, with %2F for / in a password"
        )
    if path.is_dir():
        raise JobError(f"{path}: the database is a folder, not a file")
    if not path.exists():
        raise JobError(f"{path}: the database file does not exist; it was looked for in {_folder(path)}")
    if path.stat().st_size == 0:  # DuckDB would make a database of it
        raise JobError(f"{path}: the file is empty; give a DuckDB database, a CSV or a Parquet file")
    if (flaw := _other_file(path)) is not None:
        raise JobError(f"{path}: {flaw}")
    return path


def _folder(path: Path) -> str:
    folder = without_parents(path.absolute().parent)
    return f"{folder}" if folder.is_dir() else f"{folder}, a folder that does not exist either"


def _text(database: object) -> str:
    """A path as text; a table that somebody holds in memory is no database, and is told how to become one."""
    try:
        path = os.fspath(database)  # type: ignore[call-overload]
    except TypeError:
        called = f"{type(database).__module__.partition('.')[0]}.{type(database).__qualname__}"
        raise JobError(
            f"the database is a {called.removeprefix('builtins.')}; give a path, a URL or an open connection. A data "
            'frame becomes a table of one: connection = sqldeid.hold({"people": frame})'
        ) from None
    return os.fsdecode(path)


def _other_engine(text: str) -> str | None:
    """What to write in place of another program's address."""
    if text.casefold().startswith("jdbc:"):
        return (
            "jdbc: is Java's way to name a database; write postgresql://user@host/database, sc://host:15002 or a file"
        )
    return None


def _other_file(path: Path) -> str | None:
    """What a file is that is no database of ours, by how it begins."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise EngineError(f"{path}: the file cannot be read ({error.strerror})") from None
    if head.startswith(b"SQLite format 3"):
        return (
            "this is an SQLite database, which is not read; copy its tables into a DuckDB file first, with DuckDB: "
            "ATTACH 'people.sqlite' AS old (TYPE sqlite); CREATE TABLE people AS FROM old.people"
        )
    if path.suffix.casefold() == ".toml" and head[8:12] != b"DUCK":
        return "this is a job file, not a database; the order is: sqldeid COMMAND DB --job FILE"
    if head.startswith(b"PK\x03\x04"):
        return "this is a ZIP archive or a spreadsheet; save it as CSV, and give that file"
    return None


@heard()
def open_connection(connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    """The engine on a user's connection; its current database and schema are where names are looked up.

    Raises
    ------
    JobError
        If the connection is within a transaction: it would be ended by ours; or if a macro of it has the name of a
        function: it would be called instead, by our statements, too.
    """
    _refuse_transaction(connection)
    try:
        _refuse_macros(connection.sql(render("engine/list_macros")).to_arrow_table())
        rows = connection.sql(render("engine/list_catalogs")).to_arrow_table().to_pylist()
    except duckdb.Error as error:
        raise translate(error) from None
    current = [row for row in rows if row["current"]]
    if not current:
        raise JobError("the connection's current database is a system database; choose one with USE")
    engine = DuckDBEngine(connection, current[0]["catalog"], current[0]["schema"], own=False)
    engine.read_only = current[0]["read_only"]
    engine.can_attach = current[0]["access"].casefold() != "read_only"
    engine.spills_plain = current[0]["spills_plain"]
    return engine


def _refuse_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    """BEGIN would tell, too, but it spoils the transaction that is open."""
    question = render("engine/read_transaction")
    try:
        numbers = {connection.execute(question).fetchall()[0][0] for _ in range(2)}
    except duckdb.TransactionException:
        numbers = set()
    except duckdb.Error as error:
        raise translate(error) from None
    if len(numbers) < 2:
        raise JobError("the connection has an open transaction; commit it or roll it back first")


def _refuse_macros(rows: pa.Table) -> None:
    """A macro wins over the function of its name: it could read files for a job, and change what is counted.

    So does a function of Python's, where DuckDB's own takes any type.
    """
    there = rows.to_pylist()
    functions = {row["name"].casefold() for row in there if row["database"] is None}
    taken = sorted({row["name"] for row in there if row["database"] and row["name"].casefold() in functions})
    if taken:
        raise JobError(
            f"the database holds macros that replace functions of DuckDB ({listed(taken)}), and a release could no "
            "longer be trusted; drop or rename them, or copy the tables into another database"
        )
    if replaced := _also_named(there):
        with duckdb.connect() as fresh:  # some versions have such functions themselves
            own = _also_named(fresh.sql(render("engine/list_macros")).to_arrow_table().to_pylist())
        if replaced - own:
            raise JobError(
                f"the connection has functions of Python that replace DuckDB's ({listed(sorted(replaced - own))}), and "
                "a release could no longer be trusted; give them other names, on a new connection"
            )


def _also_named(there: list[dict[str, Any]]) -> set[str]:
    return {row["name"] for row in there if row["database"] is None and row["also_named"]}


def open_path(path: Path, *, writable: bool, spill: Path | None, settings: Settings) -> DuckDBEngine:
    """An in-memory instance with the source attached; files are still open until `close_access`.

    Parameters
    ----------
    writable
        Whether the source database itself takes the release.
    spill
        Private folder for spill files; None where nothing will be computed.
    """
    connection = own_instance(spill, settings)
    try:
        if _is_parquet(path) or path.suffix.lower() in (".csv", ".tsv", ".txt", ".gz"):
            return _open_file(connection, path, settings.temp_dir)
        alias = _alias(path)
        engine = DuckDBEngine(connection, alias, "main", own=True)
        engine.attach(path.absolute(), alias, read_only=not writable)
        if writable:  # names are looked up there while views are written, and by whoever reads them
            _refuse_macros(engine.ask("engine/list_macros"))
    except (JobError, EngineError) as error:
        connection.close()
        start = "" if error.message.startswith(str(path.parent)) else f"{path}: "
        raise type(error)(f"{start}{error.message}", key=error.key) from None
    except BaseException:
        connection.close()
        raise
    return engine


def close_access(engine: DuckDBEngine, folder: Path | None) -> None:
    """Forbid files, network and extensions from here on; our private folder alone stays open."""
    wanted = [*([folder] if folder is not None and is_utf8(folder) else []), *engine.lent.folders]
    if wanted:
        engine.run("engine/allow_folders", folders=[literal(f"{f}{os.sep}") for f in wanted])
    engine.run("engine/close_access")


@heard()
def own_instance(spill: Path | None, settings: Settings) -> duckdb.DuckDBPyConnection:
    """An in-memory instance of ours; its settings are those under which our statements mean what they say."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "disabled_compression_methods": "fsst",  # half the time of writing a release, which holds few distinct texts
        "temp_directory": str(spill / "spill") if spill else "",
    }
    if settings.memory_limit is not None:
        if not _SIZE.fullmatch(settings.memory_limit):  # DuckDB takes -5 for no limit
            raise JobError("--memory-limit: write a size as 4GB or 500MB", key="memory_limit")
        config["memory_limit"] = settings.memory_limit
    if settings.threads is not None:
        config["threads"] = settings.threads
    try:
        connection = duckdb.connect(":memory:", config=config)
        asked = render("engine/read_setting", setting=literal("enable_progress_bar"))
        [(progress,)] = connection.execute(asked).fetchall()
        if progress:
            connection.execute(render("engine/hide_progress")).fetchall()
        _pin(connection)
        return connection
    except duckdb.Error as error:
        given = [name for name in ("memory_limit", "threads") if getattr(settings, name) is not None]
        if not given:
            raise EngineError(
                "DuckDB cannot start; this process may have too little memory or too few files (ulimit -v, ulimit -n)"
            ) from error
        names = " or ".join("--" + name.replace("_", "-") for name in given)
        raise JobError(f"DuckDB does not take {names}; write a size as 4GB, threads as a whole number") from error


def own_settings(spill: Path, settings: Settings) -> dict[str, str]:
    """Start an instance of ours, write a table to its workbench and read its settings; it is closed again.

    Returns
    -------
    dict
        Of ``threads``, ``memory_limit`` and ``temp_directory`` the value that DuckDB took.
    """
    engine = DuckDBEngine(own_instance(spill, settings), "memory", "main", own=True)
    try:
        names = ["threads", "memory_limit", "temp_directory"]
        engine.put("looked", pa.table({"name": names}))
        read = engine.rows("engine/read_settings", names=[literal(name) for name in names])
        return {row["name"]: str(row["value"]) for row in read}
    finally:
        engine.close()


def _pin(connection: duckdb.DuckDBPyConnection) -> None:
    """Spell and compare values alike on every machine: the time zone would be the environment's."""
    names = [literal(name) for name in NEUTRAL]
    for name, value in connection.execute(render("engine/read_settings", names=names)).fetchall():
        if not is_neutral(name, value or ""):
            text = render("engine/set_setting", name=identifier(name), value=literal(NEUTRAL[name][0]))
            connection.execute(text).fetchall()


def _alias(path: Path) -> str:
    name = os.fsencode(path.name).decode(errors="replace")
    stem = name.split(".")[0] or "source"
    return f"{stem}_database" if stem.casefold() in _TAKEN else stem


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise EngineError(f"{path}: the file cannot be read ({error.strerror})") from None


def _open_file(connection: duckdb.DuckDBPyConnection, path: Path, elsewhere: Path | None) -> DuckDBEngine:
    """A CSV or Parquet file as the table of its name."""
    engine = DuckDBEngine(connection, "memory", "main", own=True, elsewhere=elsewhere)
    try:
        _fill(engine, path)
    except BaseException as error:
        lent = engine.lent.folders
        engine.close()
        if isinstance(error, SqldeidError) and lent:
            error.message = re.sub("|".join(rf"{re.escape(str(f))}[^\s\"']*" for f in lent), "the file", error.message)
        raise
    return engine


def _fill(engine: DuckDBEngine, path: Path) -> None:
    table, parquet = table_name("memory", "main", _alias(path)), _is_parquet(path)
    place = literal(str(engine.lent.path(path, lasting=parquet)))
    if parquet:
        engine.run("engine/allow_file", path=place)
        engine.run("engine/view_parquet", view=table, path=place)
        return
    if (told := wide(path)) is not None:
        raise JobError(told)
    try:
        texts = [identifier(name) for name in _texts(engine, place)]
        engine.run("engine/read_csv", table=table, path=place, texts=texts)
    except JobError as error:
        if error.message == CONVERSION:
            raise JobError(_TWO_KINDS) from None
        if error.message != MALFORMED:
            raise
        raise JobError(flaw(path)) from None
    engine.guessed = True
    _refuse_empty(engine, table, path)


def _refuse_empty(engine: DuckDBEngine, table: exp.Table, path: Path) -> None:
    """A file of text without rows has no types; one whose header has fields that its rows have not is damaged."""
    names = [c.name for c in engine.columns(table)]
    if len(names) == 1 and not _quotes(path) and any(c in names[0] for c in SEPARATORS):
        raise JobError(flaw(path))
    if not engine.row("engine/count_rows", table=table)["rows"]:
        raise JobError("the file has a header line and no rows; there is nothing to release or to look at")


def guessed_types(engine: Engine) -> tuple[str, ...]:
    """Whether one value can change how everybody's are read: 12.5 among whole numbers makes 12.0 of every 12."""
    guessed = isinstance(engine, DuckDBEngine) and engine.guessed
    return ("types that are guessed from all rows of a file of text",) if guessed else ()


def _quotes(path: Path) -> bool:
    """Whether the first line holds a quoted name, in which a separator is part of the name."""
    try:
        with path.open("rb") as file:
            return b'"' in file.readline(_LONGEST_LINE) or path.suffix.casefold() == ".gz"
    except OSError:
        return True


_CODE = "^[+-]?0[0-9xX]|^[0-9]+[eE][0-9]+$"
_SHORT_YEAR = "^ *[0-9]{1,2}[-./ ][0-9]{1,2}[-./ ][0-9]{1,2}([^0-9]|$)"
_NOT_AS_GUESSED = {
    **dict.fromkeys(["BIGINT", "HUGEINT", "DOUBLE"], _CODE),
    **dict.fromkeys(["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"], _SHORT_YEAR),
}
"""By the type that is guessed, what values look like that it would spoil."""


def _texts(engine: DuckDBEngine, path: exp.Expr) -> list[str]:
    """Columns that stay text: codes with leading zeros, which a number would lose, and years of two digits.

    0x1F and 12E3 are codes, too: what writes numbers writes 1.2e4 or 12e+03. Of 31.01.26 DuckDB makes 26 January 2031,
    and of 01.02.26 nobody can tell day, month and century.
    """
    guessed = {str(r["column_name"]): str(r["column_type"]) for r in engine.rows("engine/guess_csv", path=path)}
    doubtful = {name: _NOT_AS_GUESSED[of] for name, of in guessed.items() if of in _NOT_AS_GUESSED}
    if not doubtful:
        return []
    columns = [{"name": identifier(name), "pattern": literal(pattern)} for name, pattern in doubtful.items()]
    row = engine.row("engine/find_texts", path=path, columns=columns)
    return [name for name, count in zip(doubtful, row.values(), strict=True) if count]
