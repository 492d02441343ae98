"""Many nodes as arrays, from the least mean loss up; the order reads quasi-identifying values alone. Pure."""

from __future__ import annotations

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
        return _priced(grid, levels[np.lexsort(levels.T[::-1])]).rising(grid, rows)

    def rising(self, grid: Grid, rows: Ints, most: int | None = None, above: int = -1) -> Nodes:
        """From the least mean loss of these rows up, ties as they stand; those where some may lose what is asked.

        Parameters
        ----------
        rows
            Of each combination; shape (combinations,).
        most, above
            Units that it loses at most, and more than.
        """
        here = np.flatnonzero(rows)
        least = self._summed([units[:, here].min(axis=1, initial=grid.row) for units in grid.units])
        greatest = self._summed([units[:, here].max(axis=1, initial=0) for units in grid.units])
        some = np.flatnonzero((least <= (grid.row if most is None else most)) & (greatest > above))
        levels = self.levels[some]
        mean = sum((units @ rows)[levels[:, j]] for j, units in enumerate(grid.units))
        chosen = some[np.argsort(np.asarray(mean), kind="stable")]
        return Nodes(self.levels[chosen], self.masks[chosen], self.least[chosen])

    def _summed(self, by_level: list[Ints]) -> Ints:
        """What the levels of each node come to, where each level of a column has a number."""
        parts = (found[self.levels[:, j]] for j, found in enumerate(by_level))
        return np.asarray(sum(parts, np.zeros(len(self), dtype=np.int64)))

    def node(self, i: int) -> Node:
        """One of the nodes."""
        return tuple(self.levels[i].tolist())

    def every(self) -> list[Node]:
        """All nodes."""
        return [tuple(levels) for levels in self.levels.tolist()]

    def __len__(self) -> int:
        return len(self.levels)


def every_node(grid: Grid, rows: Ints, columns: tuple[int, ...] | None = None) -> Nodes:
    """All nodes of a lattice from the least mean loss up; with `columns` those that have all others at the top."""
    return listed(grid, columns).rising(grid, rows)


def listed(grid: Grid, columns: tuple[int, ...] | None = None) -> Nodes:
    """The same nodes in the order of their levels."""
    heights = grid.lattice.heights
    some = range(len(heights)) if columns is None else columns
    levels = np.zeros((1, 0), dtype=np.int64)
    for j, height in enumerate(heights):  # column by column, for NumPy's grids have 32 dimensions at most
        own = np.arange(height) if j in some else np.array([height - 1])
        levels = np.column_stack([np.repeat(levels, len(own), axis=0), np.tile(own, len(levels))])
    return _priced(grid, levels)


def _priced(grid: Grid, levels: Ints) -> Nodes:
    """Nodes as masks, with the least that a row loses there."""
    masks = np.zeros((len(levels), grid.coding.words), dtype=np.int64)
    for j, field in enumerate(grid.coding.fields):
        by_level = np.array([field.mask(x) for x in range(len(field.bits))], dtype=np.int64)
        masks[:, field.word] |= by_level[levels[:, j]]
    least = sum(units.min(axis=1)[levels[:, j]] for j, units in enumerate(grid.units))
    return Nodes(levels, masks, np.asarray(least, dtype=np.int64))
