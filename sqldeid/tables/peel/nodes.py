"""Many nodes as arrays, from the least mean loss up; the order reads quasi-identifying values alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.grid import Grid

LISTED = 60_000
"""Nodes of a lattice that is visited as a whole."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes in the order in which they are visited.

    Parameters
    ----------
    levels
        Of each column; shape (nodes, columns).
    masks
        Each node as a mask per word; shape (nodes, words).
    least
        The fewest units that a row loses there; shape (nodes,).
    """

    levels: Ints
    masks: Ints
    least: Ints

    @classmethod
    def of(cls, grid: Grid, levels: Ints, rows: Ints) -> Nodes:
        """Nodes from the least mean loss up, ties by node."""
        mean = sum((units @ rows)[levels[:, j]] for j, units in enumerate(grid.units))
        levels = levels[np.lexsort((*levels.T[::-1], mean))]
        masks = np.zeros((len(levels), grid.coding.words), dtype=np.int64)
        for j, field in enumerate(grid.coding.fields):
            by_level = np.array([field.mask(x) for x in range(len(field.bits))], dtype=np.int64)
            masks[:, field.word] |= by_level[levels[:, j]]
        least = sum(units.min(axis=1)[levels[:, j]] for j, units in enumerate(grid.units))
        return cls(levels, masks, np.asarray(least, dtype=np.int64))

    def node(self, i: int) -> Node:
        """One of the nodes."""
        return tuple(self.levels[i].tolist())

    def __len__(self) -> int:
        return len(self.levels)

    def __iter__(self) -> Iterator[tuple[Node, list[int], int]]:
        """Each node, its masks and its least units."""
        listed = zip(self.levels.tolist(), self.masks.tolist(), self.least.tolist(), strict=True)
        return ((tuple(node), masks, least) for node, masks, least in listed)


def every_node(grid: Grid, rows: Ints, columns: tuple[int, ...] | None = None) -> Nodes:
    """All nodes of a lattice; with `columns` only those that have all other columns at the top."""
    heights = grid.lattice.heights
    some = range(len(heights)) if columns is None else columns
    ranges = [np.arange(h) if j in some else np.array([h - 1]) for j, h in enumerate(heights)]
    levels = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(heights))
    return Nodes.of(grid, levels, rows)
