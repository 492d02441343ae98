"""What the ledger keeps of persons and values: keyed hashes, made in this process (see `sqldeid.keys`).

The ledger is private; if it is lost all the same, nobody without the key can tell whose it is.

What is hashed is the value of its type, never how a session happens to spell it: whole numbers as numbers, floats by
their bits, moments in UTC, each with the name of its type before it. Values reach this process as text of a pinned
session (`sqldeid.engine.duckdb.NEUTRAL`); a moment of any other zone is refused as a defect.

Source: soundness.md 19.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sqldeid.engine.base import Column
from sqldeid.keys import Key

_PERSON, _VALUE, _CHECK = b"sqldeid ledger person\0", b"sqldeid ledger value\0", b"sqldeid ledger key\0"
_DIGITS = 32
"""128 bits of a person's hash: two of a billion persons share one with probability 1e-21."""


def key_check(key: Key) -> str:
    """What tells whether a ledger was made with this key."""
    return key.hasher(_CHECK)(b"")[:_DIGITS]


def label_of(column: str) -> str:
    """What a released column is called in the ledger: jobs may spell it in upper or lower case."""
    return column.casefold()


_BEFORE_CHRIST = " BC"
_WHOLE = ("HUGEINT", "UHUGEINT", "UBIGINT", "BIGNUM")
"""Types of whole numbers that travel as text."""


def spelling(source: Column) -> str:
    """The type under which values of two loads can be compared: integers of any width are one, VARCHAR and ENUM one.

    Every other type is its own: the text of a UUID, a time or a moment is another value than what it spells.
    """
    if source.kind == "integer" or source.type in _WHOLE:
        return "integer"
    return "text" if source.type == "VARCHAR" or source.is_enum else source.shown_type


def hash_persons(key: Key, type_: str, persons: pa.ChunkedArray) -> pa.Array:
    """128 bits in hexadecimal digits for each person key.

    Parameters
    ----------
    type_
        Of the key's column, as `spelling` names it; the ledger keeps it, and takes no other.
    persons
        The keys as text of a pinned session.
    """
    digest, bits = key.hasher(_PERSON + type_.encode() + b"\0"), _bits_of(type_)
    return pa.array([digest(bits(str(p)))[:_DIGITS] for p in persons.to_pylist()], pa.string())


def hash_values(key: Key, column: str, type_: str, values: pa.ChunkedArray) -> pa.Array:
    """63 bits for each value of a column; NULL is a value. Each different value is hashed once.

    Parameters
    ----------
    column, type_
        Its name in the ledger, and its type as `spelling` names it.
    values
        As text of a pinned session.
    """
    digest, bits = key.hasher(_VALUE + column.encode() + b"\0" + type_.encode() + b"\0"), _bits_of(type_)
    coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    of = [int(digest(b"\0" if v is None else b"\1" + bits(v))[:16], 16) >> 1 for v in coded.dictionary.to_pylist()]
    table = np.array(of, dtype=np.int64) if of else np.zeros(0, dtype=np.int64)
    return pa.array(table[coded.indices.to_numpy()], pa.int64())


def hash_of_null(key: Key, column: str, type_: str) -> int:
    """What `hash_values` makes of NULL."""
    [found] = hash_values(key, column, type_, pa.chunked_array([pa.array([None], pa.string())])).to_pylist()
    return int(found)


def _bits_of(type_: str) -> Callable[[str], bytes]:
    """What tells a value of a type from the others of it, from its text."""
    if type_ == "integer":
        return lambda text: str(int(text)).encode()
    if type_ in ("FLOAT", "DOUBLE"):
        return _float_bits
    return _moment if type_ == "TIMESTAMP WITH TIME ZONE" else str.encode


def _float_bits(text: str) -> bytes:
    """The eight bytes of a float; both zeros are one value, and every NaN is."""
    number = float(text)
    return struct.pack(">d", math.nan if math.isnan(number) else number + 0.0)


def _moment(text: str) -> bytes:
    """A moment in UTC; infinity has no zone, and Postgres writes BC after it."""
    moment, zone, era = text.partition("+00")
    if (not zone and not text.endswith("infinity")) or era not in ("", _BEFORE_CHRIST):
        raise AssertionError("a moment reached the ledger in another zone than UTC")
    return (moment + era).encode()
