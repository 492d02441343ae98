"""Rows of the workbench batch by batch, so that they are never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.duckdb_errors import heard, translate
from sqldeid.errors import EngineError


@contextmanager
def read_batches(engine: DuckDBEngine, sql: str, most: int) -> Iterator[pa.RecordBatchReader]:
    """What a statement gives, in batches of at most so many rows; nothing else may be asked of the engine meanwhile.

    Raises
    ------
    EngineError
        If it fails, or what is read is damaged.
    """
    engine.statements += 1
    try:
        newer = getattr(engine.connection.sql(sql), "to_arrow_reader", None)
        read = newer or getattr(engine.connection.execute(sql), "fetch_record_batch")  # noqa: B009 - of DuckDB 1.4
        with heard(), read(most) as rows:
            yield rows
    except duckdb.Error as error:
        raise translate(error) from None
    except (pa.ArrowInvalid, OSError):
        raise EngineError("what was written cannot be read again (the reason may hold data and is not shown)") from None
