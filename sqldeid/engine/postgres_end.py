"""The end of a transaction on Postgres: waited for through Ctrl-C, so that it is known, but not for ever."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from typing import Any

import psycopg

from sqldeid.errors import EngineError, SqldeidError

ANSWER_SECONDS = 600.0
"""How long the server may take to end a transaction: a COMMIT waits for standbys that synchronous_commit names."""
ROLLBACK_SECONDS = 60.0
"""The same to forget what was done, which waits for nobody."""
STOPPED_SECONDS = 10.0
"""How long it may take from Ctrl-C or SIGTERM on."""
CANCELLED_SECONDS = 15.0
"""How long it may take once the statement was cancelled."""


def to_the_end(
    connection: psycopg.Connection[Any], work: Callable[[], None], seconds: float | None = None
) -> SqldeidError | None:
    """End a transaction where no signal cuts it off; the outcome is known unless the server does not answer at all.

    The statement is cancelled at the server when its time is over: a COMMIT that waits for a standby is done by then,
    and says so. Where no answer comes to that, either, the connection is cut off.

    Parameters
    ----------
    work
        Speaks to the server.
    seconds
        How long it may take; `ANSWER_SECONDS` if not given.

    Returns
    -------
    SqldeidError or None
        None where `work` was done; else its error.
    """
    ended, done, failed = Event(), Event(), list[SqldeidError]()

    def run() -> None:
        try:
            work()
            done.set()
        except SqldeidError as error:
            failed.append(error)
        finally:
            ended.set()

    Thread(target=run, name="sqldeid-end", daemon=True).start()
    if not _wait(ended, ANSWER_SECONDS if seconds is None else seconds, STOPPED_SECONDS):
        Thread(target=_cancel, args=(connection,), name="sqldeid-cancel", daemon=True).start()
        if not _wait(ended, CANCELLED_SECONDS):
            _cut(connection)
            _wait(ended, CANCELLED_SECONDS)
            failed.clear()  # it tells only that the connection was cut off
    return None if done.is_set() else (failed or [EngineError(_SILENT)])[0]


_SILENT = "the server does not answer to the end of the transaction, and the connection was cut off"


def _wait(ended: Event, seconds: float, stopped: float | None = None) -> bool:
    """Wait for an event, and tell whether it came in time; a signal shortens the time to `stopped` seconds."""
    until = monotonic() + seconds
    while True:
        try:
            return ended.wait(max(0.0, until - monotonic()))
        except KeyboardInterrupt:
            until = until if stopped is None else min(until, monotonic() + stopped)


def _cancel(connection: psycopg.Connection[Any]) -> None:
    with contextlib.suppress(psycopg.Error, OSError):
        connection.cancel_safe(timeout=CANCELLED_SECONDS)


def _cut(connection: psycopg.Connection[Any]) -> None:
    """Shut the socket, so that whoever waits for it is told that the server is gone."""
    with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=_copied(connection)) as cut:
        cut.shutdown(socket.SHUT_RDWR)


def _copied(connection: psycopg.Connection[Any]) -> int:
    return socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM).detach()
