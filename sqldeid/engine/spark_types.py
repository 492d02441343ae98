"""Spark's types as DuckDB spells them, and its rows as Arrow of the few types in which values travel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.engine.base import Column
from sqldeid.engine.duckdb_types import kind_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_SPELT = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}
"""What both have. Text of another collation than that of bytes is left out: values that differ would be one."""

_CUT = re.compile(r"(decimal|char|varchar)(\(.*\))")


def column_of(name: str, type_: str) -> Column:
    """A column by its name and Spark's type of it, as ``simpleString`` writes it."""
    cut = _CUT.fullmatch(type_)
    if cut is not None:
        spelt = f"DECIMAL{cut[2].replace(',', ', ')}" if cut[1] == "decimal" else "VARCHAR"
        return Column(name, spelt, kind_of(spelt))
    if type_ in _SPELT:
        return Column(name, _SPELT[type_], kind_of(_SPELT[type_]))
    return Column(name, type_.upper(), "other")


def uncommented(type_: DataType) -> DataType:
    """A type without comments, and whatever else is noted, of the fields within it."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    match type_:
        case StructType():
            return StructType([StructField(f.name, uncommented(f.dataType), f.nullable) for f in type_.fields])
        case ArrayType():
            return ArrayType(uncommented(type_.elementType), type_.containsNull)
        case MapType():
            return MapType(uncommented(type_.keyType), uncommented(type_.valueType), type_.valueContainsNull)
        case _:
            return type_


def plain(rows: pa.Table) -> pa.Table:
    """Rows of BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE and TIMESTAMP; exact and other numbers become text."""
    arrays = [_travelling(column) for column in rows.columns]
    return pa.Table.from_arrays(arrays, names=rows.column_names)


def sendable(rows: pa.Table) -> pa.Table:
    """Rows as Spark takes them: no dictionaries, no unsigned numbers, no columns without a type."""
    types = [_sendable(t) for t in rows.schema.types]
    return rows.cast(pa.schema(list(zip(rows.column_names, types, strict=True))))


def _travelling(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_integer(type_):
        return column.cast(pa.int64())
    if pa.types.is_floating(type_):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(type_):
        naive = column if type_.tz is None else pc.local_timestamp(column.cast(pa.timestamp("us", tz="UTC")))
        return naive.cast(pa.timestamp("us"))
    if pa.types.is_decimal(type_) or pa.types.is_large_string(type_) or pa.types.is_null(type_):
        return column.cast(pa.string())
    return column


def _sendable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _sendable(type_.value_type)
    if pa.types.is_null(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_integer(type_):
        return pa.int64()
    return pa.timestamp("us") if pa.types.is_timestamp(type_) else type_
