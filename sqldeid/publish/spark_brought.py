"""Rows of a release from Spark into a file here, and what the file holds back to Spark (`sqldeid.publish.brought`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Column
from sqldeid.engine.spark import SparkEngine
from sqldeid.sql import identifier, render

_VALUE = 32
"""Bytes that a value is taken for."""

_ZONED = exp.DataType.build("TIMESTAMPLTZ")
"""What Spark calls a moment with a zone where, as in our sessions, TIMESTAMP is one without."""


@dataclass(frozen=True, slots=True)
class ByPortions:
    """Rows leave by a statement for each portion of their hash, for Spark's driver gathers all rows of a statement."""

    engine: SparkEngine

    def parts(
        self, staged: exp.Table, columns: Sequence[Column], coded: Set[str], *, most: int
    ) -> Generator[pa.Table, None, None]:
        """The rows of a temporary table, each part in the table's order; text is told apart as it is.

        Cost: a scan of the table, which Spark keeps, for each part.
        """
        rows = self.engine.read("engine/count_rows", table=staged)[0]["rows"]
        portions = max(1, -(-rows * len(columns) * _VALUE // most))
        asked = [{"name": identifier(c.name), "zoned": c.type == "TIMESTAMP WITH TIME ZONE"} for c in columns]
        for portion in range(portions):
            yield self.engine.query(
                render("publish/read_part", "spark", table=staged, columns=asked, portions=portions, portion=portion)
            )

    def put(self, name: str, rows: pa.RecordBatchReader, types: Sequence[exp.DataType]) -> exp.Table:
        """A temporary table with these rows."""
        names = [identifier(f.name) for f in rows.schema]
        columns = [{"name": n, "type": _spelt(t)} for n, t in zip(names, types, strict=True)]
        sent = self.engine.put(name, rows)
        return self.engine.make("publish/take_back", name, rows=sent, columns=columns)


def _spelt(type_: exp.DataType) -> exp.DataType:
    return _ZONED if type_.is_type(exp.DataType.Type.TIMESTAMPTZ) else type_
