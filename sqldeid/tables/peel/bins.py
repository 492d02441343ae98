"""Which cells of a batch can be in a class that counts, found by a hash before anything is sorted. Pure.

A cell is a node and a combination. What it agrees in at its node decides its bin, so a class lies in one bin, and what
is in the bin weighs at least as much as the class: where the bin weighs too little, so does the class. Bins are a few
passes over an array; sorting takes ten times as long, and nine cells of ten need not be sorted.

Source
    Counting by hash to leave out what cannot be frequent: Park, Chen and Yu 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.peel.grid import Grid
from sqldeid.tables.peel.nodes import Nodes

_BITS = 16
"""Of the number of a bin: as many bins as a batch has cells."""

_SLACK = 1 - 1e-9
"""Sums in a bin are of rounded numbers, each off by less than 1e-11 of itself."""

_NODE = np.uint64(15098003192110181357)
"""An odd number that tells the bins of nodes apart."""


@dataclass(frozen=True, slots=True)
class Least:
    """What a class must come to; of others nothing is asked.

    Parameters
    ----------
    rows
        Of each combination; shape (combinations,).
    k
        Rows that a class must have, at least.
    beyond
        Then instead: rows times what each one's limit is beyond its loss sum to more than k times the loss.
    """

    rows: Ints
    k: int
    beyond: bool = False


class Bins:
    """Cells of some combinations at nodes, by bin.

    Parameters
    ----------
    at
        Which combinations.
    limit
        Of each of them; shape as `at`.
    """

    def __init__(self, grid: Grid, nodes: Nodes, at: Ints, limit: Any, least: Least) -> None:
        self.words = [word[at].view(np.uint64) for word in grid.words]
        self.masks = nodes.masks.view(np.uint64)
        self.factors = [_odd(i) for i in range(len(self.words))]
        self.limit, self.k, self.beyond = limit, least.k, least.beyond
        self.rows = np.minimum(least.rows[at], least.k).astype(np.float64)

    def heavy(self, start: int, near: Flags, cost: Any) -> Flags:
        """Which cells are near and in a bin that weighs enough; all near cells of a class are, or none.

        Parameters
        ----------
        start
            Place of the first node.
        near
            Which cells count: those that lose less than their limit; shape (nodes, combinations), these from the first
            on.
        cost
            Units that each cell loses; shape as `near`.
        """
        place, width = self._places(start, near), near.shape[1]
        if self.beyond:
            less = self.limit[:width] - cost  # above 0 where a cell is near
            weight = np.maximum(less, 0, out=less) * self.rows[:width]
        else:
            weight = near * self.rows[:width]
        sums = np.bincount(place, weight.reshape(-1), minlength=1 << _BITS)
        if self.beyond:
            enough = sums.take(place).reshape(near.shape) > cost * (self.k * _SLACK)
        else:
            enough = (sums >= self.k).take(place).reshape(near.shape)
        enough &= near
        return np.asarray(enough)

    def _places(self, start: int, near: Flags) -> Ints:
        """The bin of each cell; shape (cells,)."""
        count, width = near.shape
        node: Any = (np.arange(count, dtype=np.uint64) * _NODE)[:, None]
        place: Any = None
        for i, (word, factor) in enumerate(zip(self.words, self.factors, strict=True)):
            part = word[:width] & self.masks[start : start + count, i, None]
            part *= factor
            part += node if place is None else place
            place = part
        place >>= np.uint64(64 - _BITS)
        return np.asarray(place.reshape(-1).view(np.int64))


def _odd(i: int) -> np.uint64:
    """An odd number near 2**64 / 1.618, which spreads keys (Knuth 1998, §6.4); another one for each word."""
    return np.uint64(11400714819323198485 + 2 * 7919 * i)
