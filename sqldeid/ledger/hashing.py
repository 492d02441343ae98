"""What the ledger keeps of persons and values: keyed hashes, made in this process (see `sqldeid.keys`).

The ledger is private; if it is lost all the same, nobody without the key can tell whose it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

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


def hash_persons(key: Key, persons: pa.ChunkedArray) -> pa.Array:
    """128 bits in hexadecimal digits for each person key."""
    digest = key.hasher(_PERSON)
    return pa.array([digest(str(p).encode())[:_DIGITS] for p in persons.to_pylist()], pa.string())


def hash_values(key: Key, column: str, values: pa.ChunkedArray) -> pa.Array:
    """63 bits for each value of a column; NULL is a value. Each different value is hashed once."""
    digest = key.hasher(_VALUE + column.encode() + b"\0")
    coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    of = [int(digest(b"\0" if v is None else b"\1" + v.encode())[:16], 16) >> 1 for v in coded.dictionary.to_pylist()]
    table = np.array(of, dtype=np.int64) if of else np.zeros(0, dtype=np.int64)
    return pa.array(table[coded.indices.to_numpy()], pa.int64())
