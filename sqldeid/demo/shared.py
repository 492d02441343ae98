"""Whole schemas with the names and types that hospitals share: what is generated, and every other table empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.demo.draw import text
from sqldeid.schemas import SchemaTable, SharedSchema

ARROW = {
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DOUBLE": pa.float64(),
}
DAY = 86_400

Columns: TypeAlias = Mapping[str, "pa.Array | Ints | Floats | int | str"]
"""Columns by name; a number or text stands in each row. What a table has besides is NULL."""


def arrow_schema(table: SchemaTable) -> pa.Schema:
    """The columns of a table, in their order."""
    return pa.schema([(c.name, ARROW[c.type]) for c in table.columns])


def batch(table: SchemaTable, count: int, columns: Columns) -> pa.RecordBatch:
    """Rows of a table from some of its columns; KeyError for a column that it does not have."""
    schema = arrow_schema(table)
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise KeyError(f"{table.name} has no {sorted(unknown)}")
    return pa.RecordBatch.from_arrays([_array(columns.get(f.name), count, f.type) for f in schema], schema=schema)


def _array(given: object, count: int, kind: pa.DataType) -> pa.Array:
    if given is None:
        return pa.nulls(count, kind)
    if isinstance(given, int | str):
        return pa.repeat(pa.scalar(given, kind), count)
    return (given if isinstance(given, pa.Array) else pa.array(given)).cast(kind)


def rows(table: SchemaTable, count: int, columns: Columns) -> pa.Table:
    """`batch`, as a table."""
    return pa.Table.from_batches([batch(table, count, columns)])


def streamed(table: SchemaTable, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Rows that are made while they are written."""
    return pa.RecordBatchReader.from_batches(arrow_schema(table), batches)


def completed(
    shared: SharedSchema, made: Mapping[str, pa.Table | pa.RecordBatchReader]
) -> dict[tuple[str, str], pa.Table | pa.RecordBatchReader]:
    """Every table of the schema by schema and name: as `made`, else empty."""
    return {(t.schema, t.name): made[t.name] if t.name in made else rows(t, 0, {}) for t in shared.tables.values()}


def dates(days: Ints, null: Flags | None = None) -> pa.Array:
    """An Arrow date column from days since 1970; NULL where `null` is set."""
    return pa.array(days.astype(np.int32), pa.int32(), mask=null).cast(pa.date32())


def words(rng: np.random.Generator, count: int, choices: Sequence[str], weights: Sequence[float]) -> pa.Array:
    """Texts drawn by weight; the empty text is NULL."""
    share = np.asarray(weights) / np.sum(weights)
    drawn = rng.choice(len(choices), count, p=share).astype(np.int64)
    return text(choices, drawn, np.asarray([not w for w in choices])[drawn])


def numbered(prefix: str, numbers: Ints) -> pa.Array:
    """Texts of a prefix and a number."""
    return pa.array([f"{prefix}{n}" for n in numbers.tolist()], pa.string())


def icd_codes(rng: np.random.Generator, count: int) -> Ints:
    """Positions in `ICD10` and `ICD9`, the common ones far more often."""
    weights = 1 / np.arange(1, len(ICD10) + 1)
    return rng.choice(len(ICD10), count, p=weights / weights.sum()).astype(np.int64)


ICD10 = tuple(
    """I10 E785 Z87891 K219 F329 I2510 N179 F419 Z7901 E039 E119 Z794 G4733 D649 F17210 I4891 J449 Z66 N390 D62 I480
    M810 E1122 N189 Y929 I130 J45909 A419 K5900 I110 R6521 J189 E876 E871 G8929 J9601 I252 J690 K7460 S72001A T814XXA
    C3490 B182 O80 Z3800 P0739 H409 L89154 M1711 Q211""".split()
)
"""Codes of ICD-10-CM as MIMIC-IV writes them: without a dot."""

ICD9 = tuple(
    """4019 2724 V1582 53081 311 41401 5849 30000 V5861 2449 25000 V5867 32723 2859 3051 42731 496 V4986 5990 2851
    42731 73300 25040 5859 E8497 40491 49390 0389 56400 40211 78552 486 2768 2761 33829 51881 412 5070 5715 82000 99859
    1629 07054 650 V3000 76518 3659 70703 71596 7455""".split()
)
"""Codes of ICD-9-CM, a year or so older; each at the position of a like one in `ICD10`."""
