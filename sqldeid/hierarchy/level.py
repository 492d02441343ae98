"""One level of a rule: which group each data value has, and the groups' labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqldeid.arrays import Flags, Ints
from sqldeid.hierarchy.model import Labels, label_array


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Groups of the data values on one level.

    Parameters
    ----------
    ids
        Per value the number of its label, -1 where the rule does not cover the value.
    labels
        The labels, each once.
    """

    ids: Ints
    labels: Labels

    @classmethod
    def of(cls, ids: Ints, labels: Sequence[Any], covered: Flags) -> Level:
        """A level on which only the values in `covered` have a group."""
        return cls(np.where(covered, ids, -1), label_array(labels))

    @classmethod
    def from_text(cls, texts: pa.Array) -> Level:
        """A level whose label is a text per value; NULL is uncovered."""
        coded = texts.dictionary_encode()
        ids = coded.indices.fill_null(-1).to_numpy().astype(np.int64)
        return cls(ids, label_array(coded.dictionary.to_pylist()))

    def taken(self, covered: Flags) -> Level:
        """The level of these values alone, with the labels they have."""
        used, ids = np.unique(self.ids[covered], return_inverse=True)
        return Level(ids.astype(np.int64), self.labels[used])


def numbered(keys: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """Number equal keys from 0 in the order in which they come; the numbers, and the key of each."""
    found, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[which], found[order]
