"""Postgres' types: how its columns are spelt and travel, and how rows go through COPY as CSV."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import csv

from sqldeid.engine.base import COMPOSED, Kind
from sqldeid.errors import UnreadError

_SPELT: dict[str, tuple[str, Kind]] = {
    "int2": ("SMALLINT", "integer"),
    "int4": ("INTEGER", "integer"),
    "int8": ("BIGINT", "integer"),
    "float4": ("FLOAT", "float"),
    "float8": ("DOUBLE", "float"),
    "bool": ("BOOLEAN", "boolean"),
    "date": ("DATE", "date"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), ("VARCHAR", "text")),
    "uuid": ("UUID", "text"),
    "time": ("TIME", "text"),
    "timetz": ("TIME WITH TIME ZONE", "text"),
    "timestamptz": ("TIMESTAMP WITH TIME ZONE", "text"),
    **dict.fromkeys(("bit", "varbit"), ("BIT", "text")),
    "bytea": ("BLOB", "other"),
    "interval": ("INTERVAL", "other"),
}
"""Name of a system type → DuckDB's spelling and how its values travel. Equal values of these have equal texts."""

_ARROW: dict[str, pa.DataType] = {
    **dict.fromkeys(("int2", "int4", "int8"), pa.int64()),
    **dict.fromkeys(("float4", "float8"), pa.float64()),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


_PLACE = re.compile(r"In CSV column #(\d+)")


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type of the catalogue (`engine/list_types`)."""

    name: str
    system: bool
    kind: str
    base: int
    base_modifier: int
    element: int


def spell(oid: int, modifier: int, types: Mapping[int, PostgresType]) -> tuple[str, Kind]:
    """A column's type as DuckDB spells it, and how its values travel.

    Numbers without a stated scale are "other": equal ones (1.0 and 1.00) have different texts.
    """
    t = types[oid]
    if t.kind == "d":
        return spell(t.base, t.base_modifier, types)
    if t.kind == "e":
        return "ENUM()", "text"
    if t.kind in ("c", "r", "m") and not t.system:
        return f"{COMPOSED}{t.name}", "other"
    if t.element:
        return f"{spell(t.element, -1, types)[0]}[]", "other"
    if t.system and t.name == "numeric":
        if modifier < 0:
            return "NUMERIC", "other"
        precision, scale = ((modifier - 4) >> 16) & 0xFFFF, (((modifier - 4) & 0x7FF) ^ 1024) - 1024
        return (f"DECIMAL({precision}, {scale})", "number") if scale >= 0 else ("NUMERIC", "other")
    return _SPELT.get(t.name, (t.name.upper(), "other")) if t.system else (t.name, "other")


def arrow_type(oid: int, types: Mapping[int, PostgresType]) -> pa.DataType:
    """The Arrow type in which values of a type come out; text for what has none of its own."""
    t = types[oid]
    if t.kind == "d":
        return arrow_type(t.base, types)
    return _ARROW.get(t.name, pa.string()) if t.system else pa.string()


def from_csv(data: bytes, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """What COPY gave out, with the columns' own names; an unquoted empty field is NULL, a quoted one the empty text.

    Raises
    ------
    UnreadError
        If a date or time is infinite, or not of the years 1 to 9999.
    """
    if not data:
        return schema.empty_table().rename_columns(names)
    try:
        read = csv.read_csv(
            io.BytesIO(data),
            read_options=csv.ReadOptions(column_names=schema.names, block_size=max(1 << 20, _longest(data))),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=schema,
                null_values=[""],
                true_values=["t"],
                false_values=["f"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ).cast(schema)
    except pa.ArrowInvalid as error:
        place = _PLACE.match(str(error))
        raise UnreadError(
            "holds a date or time that does not travel (infinity, or not of the years 1 to 9999); mend it in a source "
            "query",
            names[int(place[1])] if place else "",
        ) from None
    return read.rename_columns(names)


def _longest(data: bytes) -> int:
    """Enough bytes for any row: Arrow reads by blocks, and a row must lie within one."""
    return min(len(data), 1 << 26) + 1


def to_csv(rows: pa.Table | pa.RecordBatchReader) -> Iterator[tuple[int, bytes]]:
    """Rows as COPY takes them in, batch by batch, with how many there are."""
    batches = rows.to_batches(max_chunksize=65_536) if isinstance(rows, pa.Table) else rows
    for batch in batches:
        sink = io.BytesIO()
        csv.write_csv(_plain(batch), sink, csv.WriteOptions(include_header=False, quoting_style="needed"))
        yield batch.num_rows, sink.getvalue()


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries as their values, NULLs alone as text: what the CSV writer takes."""
    types = [
        t.value_type if pa.types.is_dictionary(t) else pa.string() if pa.types.is_null(t) else t
        for t in batch.schema.types
    ]
    return batch.cast(pa.schema(list(zip(batch.schema.names, types, strict=True))))


def column_type(type_: pa.DataType) -> str:
    """What a column of Arrow's type is called where a temporary table is made for it, as DuckDB spells it."""
    if pa.types.is_dictionary(type_):
        return column_type(type_.value_type)
    for test, name in _MADE:
        if test(type_):
            return name
    return "VARCHAR"


_MADE = (
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_floating, "DOUBLE"),
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_timestamp, "TIMESTAMP"),
)
