"""Data frames and Arrow tables as the tables of an in-memory DuckDB, of which nothing reaches a disk.

What is taken are the columns: a frame's index may hold names or keys that no job speaks of, so it stays behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from sqldeid.arguments import one_of
from sqldeid.engine.choosing import is_foreign
from sqldeid.engine.duckdb_errors import heard, is_interruption, translate
from sqldeid.engine.opening import own_instance
from sqldeid.engine.settings import Settings
from sqldeid.errors import JobError
from sqldeid.sql import identifier

_PERIOD = "extension<pandas.period"
_NO_VIEWS = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
"""For texts of Polars' categories, which Arrow cannot look up or cast."""


class Frame(Protocol):
    """A data frame of pandas or Polars, a table of Arrow: whatever speaks Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its rows, as Arrow's C stream."""


Frames = Frame | Mapping[str, Frame]


def is_frame(given: object) -> bool:
    """Whether somebody gave a table held in memory rather than a database."""
    return not is_foreign(given) and hasattr(type(given), "__arrow_c_stream__")


@heard()
def hold(frames: Mapping[str, Frame], settings: Settings | None = None) -> duckdb.DuckDBPyConnection:
    """Copy data frames or Arrow tables into a new in-memory DuckDB, as tables of the schema ``main``.

    Nothing is written to disk, not even where memory runs short; the copies are gone when the connection is closed.
    SQL of a job reaches these tables alone, none of the caller's variables.

    Parameters
    ----------
    frames
        By the name that the job's ``source`` gives them. Columns are taken, the index of a pandas frame is not.

    Raises
    ------
    JobError
        If something is no frame, has no columns, two of one name, or one of mixed types.

    Examples
    --------
    >>> connection = sqldeid.hold({"people": frame})
    >>> sqldeid.anonymize(job, connection)
    """
    named = _checked(frames)
    held_by = Settings() if settings is None else one_of(Settings, "settings", settings, "sqldeid.Settings(…)")
    connection = own_instance(None, held_by)
    try:
        for name, table in named.items():
            _copy(connection, name, table)
    except BaseException:
        connection.close()
        raise
    return connection


@heard()
def read(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> pa.Table:
    """A table of it, with all rows in the order in which it stands there."""
    place = ".".join(identifier(part).sql("duckdb") for part in (schema, name))
    try:
        return connection.table(place).to_arrow_table()
    except duckdb.Error as error:
        raise translate(error) from None


def _checked(frames: Mapping[str, Frame]) -> dict[str, pa.Table]:
    if not isinstance(frames, Mapping) or not frames:
        raise JobError('give frames by the names of their tables: {"people": frame}')
    if not all(isinstance(name, str) and name for name in frames):
        raise JobError("the names of frames are names of tables: texts that are not empty")
    if twice := _twice(frames):
        raise JobError(f"two frames are called {twice}: names of tables that differ in case are one")
    return {name: _table(name, frame) for name, frame in frames.items()}


def _table(name: str, frame: Any) -> pa.Table:
    """A frame as Arrow, without index and metadata."""
    if not is_frame(frame) or hasattr(type(frame), "to_frame"):  # a series of either has that, and no frame
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}".removeprefix("builtins.")
        raise JobError(f"{name}: is a {kind}; give a data frame of pandas or Polars, or an Arrow table")
    if _of_pandas(frame) and (twice := _twice(str(column) for column in frame.columns)):
        raise JobError(f"{name}: two columns are called {twice}; names that differ in case are one in DuckDB")
    table = _read(name, frame)
    if not table.num_columns:
        raise JobError(f"{name}: the frame has no columns")
    if twice := _twice(table.column_names):
        raise JobError(f"{name}: two columns are called {twice}; names that differ in case are one in DuckDB")
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):  # all categories would go along with the type, also those of nobody
            table = table.set_column(at, column.name, _decoded(table.column(at)))
        elif column.type == pa.timestamp("ns"):  # pandas 2 makes them of all times; series and events take none
            table = table.set_column(at, column.name, _in_microseconds(table.column(at)))
    if (period := next((c.name for c in table.schema if str(c.type).startswith(_PERIOD)), None)) is not None:
        raise JobError(
            f"{name}: the column {period} holds periods of pandas, of which DuckDB would keep bare numbers; make it "
            "text first: .astype(str)"
        )
    return table.replace_schema_metadata(None)


def _read(name: str, frame: Any) -> pa.Table:
    """A frame's rows. Some are reckoned only now, by queries and generators of the caller's, whose errors hold rows."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False) if _of_pandas(frame) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise JobError(f"{name}: {_unread(frame)}") from None  # Arrow's own message holds the value
    except duckdb.Error as error:
        told = translate(error)
        raise type(told)(f"{name}: {told.message}") from None
    except Exception as error:
        if is_interruption(error):
            raise
        kind = type(error).__name__
        raise JobError(f"{name}: its rows cannot be read: {kind}, whose text may hold data and is not shown") from None


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of categories as a column of values, without the categories that no row has."""
    kind = column.type.value_type
    plain = _NO_VIEWS.get(str(kind), kind)
    values = [c.dictionary if plain == kind else pa.array(c.dictionary.to_pylist(), plain) for c in column.chunks]
    return pa.chunked_array([v.take(c.indices) for v, c in zip(values, column.chunks, strict=True)], type=plain)


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in the unit that every engine has; as they are where that would cut one."""
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return column


def _of_pandas(frame: object) -> bool:
    """Pandas makes columns of an index, where it is asked for a stream."""
    return any((c.__module__.partition(".")[0], c.__name__) == ("pandas", "DataFrame") for c in type(frame).__mro__)


def _unread(frame: Any) -> str:
    """Which columns of a frame Arrow cannot read."""
    bad = []
    for name in frame.columns if _of_pandas(frame) else ():
        try:
            pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            bad.append(str(name))
    which = f"the columns {', '.join(bad)} hold" if len(bad) > 1 else f"the column {bad[0]} holds" if bad else "it has"
    return f"{which} values of mixed types, or of one that Arrow has not; give each column one type"


def _copy(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    try:
        connection.from_arrow(table).create(identifier(name).sql("duckdb"))
    except duckdb.NotImplementedException:
        types = ", ".join(sorted({str(column.type) for column in table.schema}))
        raise JobError(
            f"{name}: DuckDB cannot read one of the frame's types ({types}); cast that column first"
        ) from None
    except duckdb.Error as error:
        raise translate(error) from None


def _twice(names: Iterable[str]) -> str:
    """The first name that is there twice; nothing where each is there once."""
    listed = list(names)
    counts = Counter(name.casefold() for name in listed)
    return next((name for name in listed if counts[name.casefold()] > 1), "")
