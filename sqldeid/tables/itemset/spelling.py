"""Items that differ in their spelling alone, of which a data holder must hear: each counts as an item of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints


@dataclass(frozen=True, slots=True)
class Spelled:
    """What is written in several ways.

    Parameters
    ----------
    items
        Different items of which another one is the same but for blanks, dots and case.
    alike
        How many they would be.
    rows
        Rows of the source that have one of them.
    """

    items: int = 0
    alike: int = 0
    rows: int = 0


def spelled_apart(values: pa.Array, rows: Ints) -> Spelled:
    """Compare a column's different texts without their blanks and dots, and in lower case.

    Cost: none for the database: it looks at the different values that the hierarchy was bound to.

    Parameters
    ----------
    values
        Different values, at most one of them NULL; what is no text is never spelled apart.
    rows
        Rows of each; shape (values,).
    """
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return Spelled()
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    plain = pc.utf8_lower(pc.replace_substring_regex(values.take(pa.array(there)), r"[\s.]+", ""))
    group = plain.dictionary_encode().indices.to_numpy().astype(np.int64)
    if not len(group):
        return Spelled()
    apart = np.bincount(group)[group] > 1
    return Spelled(int(apart.sum()), len(np.unique(group[apart])), int(rows[there][apart].sum()))
