"""A connection serves one run at a time: the statements of two would meet in one transaction, and end each other's.

So does a session of Spark: the run that ends first would give it its own settings back under the other.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from sqldeid.engine.choosing import dialect_of
from sqldeid.errors import EngineError, JobError

_SHARED = {
    "duckdb": "this connection, which has one transaction; give each run a connection of its own (connection.cursor() "
    "is one)",
    "postgres": "this connection, which has one transaction; give each run a connection of its own",
    "spark": "this session, whose settings it changes meanwhile; give each run a session of its own "
    "(spark.newSession() is one)",
}
_ENTERING = threading.Lock()
_IN_USE: weakref.WeakSet[object] = weakref.WeakSet()


@contextmanager
def alone(connection: object) -> Iterator[None]:
    """Keep other runs from a user's connection; a path or URL is no connection yet.

    Raises
    ------
    JobError
        If one uses it.
    """
    if isinstance(connection, str):
        yield
        return
    with _ENTERING:
        if connection in _IN_USE:
            shared = _SHARED[dialect_of(connection)]
            raise JobError(f"another run of sqldeid uses {shared}, or run one after the other")
        _IN_USE.add(connection)
    try:
        yield
    finally:
        with _ENTERING:
            _IN_USE.discard(connection)


@contextmanager
def naming_instance() -> Iterator[None]:
    """Say why a file cannot be attached: two connections of one DuckDB share the names of what is attached.

    Raises
    ------
    EngineError
        If a run on another one writes to a file, too.
    """
    try:
        yield
    except JobError as error:
        if not ("sqldeid_" in error.message and "already exists" in error.message):
            raise
        raise EngineError(
            "release.into: another run of sqldeid writes to a file from the same DuckDB, by another connection; run "
            "one after the other"
        ) from None
