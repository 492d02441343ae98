"""Names of the arrays that rooms pass to each other, by what one entry is; and their different rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def unique_rows(rows: Ints) -> Ints:
    """Each different row once, ascending by the first column first; shape (rows, columns).

    As `np.unique` with an axis, which compares rows as records: a Ctrl-C meanwhile comes out of that as a TypeError.
    """
    ordered = rows[np.lexsort(rows.T[::-1])]
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[first]
