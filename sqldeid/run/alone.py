"""A connection serves one run at a time: the statements of two would meet in one transaction, and end each other's."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from sqldeid.errors import EngineError, JobError

_ENTERING = threading.Lock()
_IN_USE: weakref.WeakSet[object] = weakref.WeakSet()


@contextmanager
def alone(connection: object) -> Iterator[None]:
    """Keep other runs from a user's connection.

    Raises
    ------
    JobError
        If one uses it.
    """
    with _ENTERING:
        if connection in _IN_USE:
            raise JobError(
                "another run of sqldeid uses this connection, which has one transaction; give each run a connection of "
                "its own (connection.cursor() is one), or run one after the other"
            )
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
