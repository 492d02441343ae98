"""A generalisation hierarchy bound to the values of a column, and its prefix codes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError

Labels = npt.NDArray[np.object_]

WORD_BITS = 63
"""Bits of a code: a BIGINT without its sign."""


class UncoveredValues(HierarchyError):
    """Data values that a hierarchy does not cover.

    Parameters
    ----------
    message
        Where, how many, and the mend.
    indices
        Positions of the uncovered values in the array given to `bind`, ascending.
    """

    def __init__(self, message: str, indices: Ints, *, key: str = "") -> None:
        super().__init__(message, key=key)
        self.indices = indices


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """A tree of groups over leaves: level 0 has one group per leaf, the last level one group.

    Parameters
    ----------
    name
        For messages and column comments.
    height
        Number of levels, level 0 and the top included.
    leaves
        Number of leaves, present in the data or not.
    values
        The distinct data values, at most one of them NULL.
    leaf
        Leaf of each of `values`.
    groups
        Per level, the group of each leaf; `groups[0]` is 0 … leaves-1, the last is all 0.
    labels
        Per level, the label of each group; None is NULL. At level 0 the text of the value.
    level_names
        Readable name of each level.

    Raises
    ------
    HierarchyError
        If a group lies in two groups of the next level, or the last level is not a single group.
    """

    name: str
    height: int
    leaves: int
    values: pa.Array
    leaf: Ints
    groups: tuple[Ints, ...]
    labels: tuple[Labels, ...]
    level_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.labels[-1]) != 1:
            raise HierarchyError(f"hierarchy {self.name}: the last level has {len(self.labels[-1])} labels, not one")
        for level in range(self.height - 1):
            torn = torn_groups(self.groups[level], self.groups[level + 1], len(self.labels[level]))
            if len(torn):
                raise HierarchyError(nesting_message(self.name, level, len(torn)))

    def group_sizes(self, level: int) -> Ints:
        """Number of leaves of each group of `level`."""
        return np.bincount(self.groups[level], minlength=len(self.labels[level])).astype(np.int64)

    def codes(self) -> tuple[Ints, tuple[int, ...]]:
        """Number the leaves so that every ancestor is a bit prefix.

        Returns
        -------
        codes
            One code per leaf, at most 63 bits.
        bits
            Per level, the number of low bits to clear: leaves share a group of `level` exactly when their
            `code >> bits[level]` are equal. The top clears all bits.

        Raises
        ------
        HierarchyError
            If the codes need more than 63 bits.

        Source
        ------
        Per level ceil(log2(most children of one parent)) bits; the path from the top, written down.
        """
        parents = [
            representatives(self.groups[x + 1], self.groups[x], len(self.labels[x])) for x in range(self.height - 1)
        ]
        ranks = [_rank_within(parent) for parent in parents]
        widths = [int(rank.max(initial=0)).bit_length() for rank in ranks]
        bits = (0, *np.cumsum(widths, dtype=np.int64).tolist())
        if bits[-1] > WORD_BITS:
            raise HierarchyError(
                f"hierarchy {self.name}: its codes need {bits[-1]} bits, {WORD_BITS} is the most. "
                f"It has {self.leaves} leaves on {self.height} levels; use fewer levels"
            )
        code = np.zeros(1, dtype=np.int64)
        for parent, rank, width in zip(reversed(parents), reversed(ranks), reversed(widths), strict=True):
            code = (code[parent] << width) | rank
        return code, bits


def representatives(of: Ints, groups: Ints, count: int) -> Ints:
    """Per group 0 … count-1, the value of `of` at one of its leaves."""
    result = np.zeros(count, dtype=np.int64)
    result[groups] = of
    return result


def torn_groups(lower: Ints, upper: Ints, count: int) -> Ints:
    """Groups of the lower level that lie in more than one group of the upper level, ascending."""
    parent = representatives(upper, lower, count)
    return np.unique(lower[parent[lower] != upper])


def nesting_message(name: str, level: int, torn: int, where: str = "") -> str:
    """The message for a hierarchy whose levels do not nest; counts and places, no labels."""
    have = "labels have" if torn != 1 else "label has"
    return (
        f"hierarchy {name}: level {level} does not nest in level {level + 1}: {torn} {have} several parents{where}. "
        "Give each label one parent"
    )


def _rank_within(parent: Ints) -> Ints:
    """Number the children of each parent from 0, in the order of their group numbers."""
    order = np.argsort(parent, kind="stable")
    counts = np.bincount(parent)
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(parent), dtype=np.int64)
    rank[order] = np.arange(len(parent)) - starts[parent[order]]
    return rank


def label_array(labels: Sequence[Any]) -> Labels:
    """Labels as an object array, one element a label."""
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result
