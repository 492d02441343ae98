"""Rows on their way into Spark, and rows that Spark keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def register(session: Any, rows: pa.Table, name: str, *, kept: bool) -> None:
    """Make a temporary view of rows; where it is kept, Spark holds them apart from the session's own statements."""
    frame = session.createDataFrame(rows, _schema(rows))
    (cut_off(session, frame) if kept else frame).createOrReplaceTempView(name)


def _schema(rows: pa.Table) -> Any:
    """What the columns are, where there is no row: Connect does not ask Arrow for it."""
    if rows.num_rows:
        return None
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)


def cut_off(session: Any, rows: Any) -> Any:
    """A frame of the session, its rows kept by Spark without the plan that made them, until nothing reads them."""
    active = getattr(type(session), "_active_session", None)
    if active is None:
        return rows.localCheckpoint()
    before = getattr(active, "session", None)  # the client of Connect gives the rows to whatever session is active
    active.session = session
    try:
        return rows.localCheckpoint()
    finally:
        active.session = before


def by_size(rows: pa.Table | pa.RecordBatchReader, most: int) -> Iterator[pa.Table]:
    """Rows as they are; those of a reader in tables of some `most` bytes, at least one."""
    if isinstance(rows, pa.Table):
        yield rows
        return
    held: list[pa.RecordBatch] = []
    told = False
    for batch in rows:
        held.append(batch)
        if sum(b.nbytes for b in held) >= most:
            yield pa.Table.from_batches(held)
            held, told = [], True
    if held or not told:
        yield pa.Table.from_batches(held, rows.schema)
