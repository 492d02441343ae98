"""The thread in which DuckDB runs statements, so that Ctrl-C reaches a long one within a second."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import duckdb

from sqldeid.engine.duckdb_errors import INTERRUPTED, is_interruption, translate
from sqldeid.errors import Interrupted

T = TypeVar("T")


class Worker:
    """One thread for the statements of one connection.

    Parameters
    ----------
    connection
        Nobody else runs anything on it.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._interrupted = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqldeid-sql")
        self._thread.submit(int).result()  # an interrupted start could leave two threads, and `_drain` counts on one

    def run(self, work: Callable[[], T]) -> T:
        """Do what runs a statement; Ctrl-C interrupts it.

        Raises
        ------
        Interrupted
            If it was.
        SqldeidError
            Ours for DuckDB's.
        """
        try:
            return self._thread.submit(work).result()
        except KeyboardInterrupt:
            self._interrupted = True
            self._drain(interrupting=True)
            raise Interrupted(INTERRUPTED) from None
        except duckdb.Error as error:
            if self._interrupted:  # what is cleared up meets the transaction that the interruption aborted
                raise Interrupted(INTERRUPTED) from None
            raise translate(error) from None
        except RuntimeError as error:  # DuckDB's, of rows that were being fetched
            if self._interrupted or is_interruption(error):
                raise Interrupted(INTERRUPTED) from None
            raise

    def finish(self, sql: str) -> None:
        """Run a statement that ends something: Ctrl-C waits until it is done, so that we know what became of it.

        Raises
        ------
        SqldeidError
            Ours for DuckDB's.
        """
        ended: list[duckdb.Error | None] = []

        def work() -> None:
            try:
                self._connection.execute(sql).fetchall()
                ended.append(None)
            except duckdb.Error as error:
                ended.append(error)

        while not ended:
            try:
                self._thread.submit(work).result()
            except KeyboardInterrupt:
                self._drain(interrupting=False)
        if ended[0] is not None:
            raise translate(ended[0])

    def _drain(self, *, interrupting: bool) -> None:
        """Wait until the thread has nothing left to do.

        Ctrl-C may come while a statement is being handed over, so that nobody knows whether it was: what is handed over
        after it ends after it.
        """
        last: Future[int] | None = None
        while last is None or not last.done():
            try:
                last = last or self._thread.submit(int)
                if interrupting:
                    self._connection.interrupt()
                last.result(timeout=0.2)
            except (TimeoutError, KeyboardInterrupt):
                continue

    def close(self) -> None:
        """End the thread; nothing is run any more."""
        self._thread.shutdown(wait=True)
