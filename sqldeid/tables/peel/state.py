"""A release in the making: the node of each combination, and what it loses. Mutable; steps improve it in place."""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.grid import Classes, Grid


class State:
    """Which node each combination is released at.

    Parameters
    ----------
    at
        Number of the node of each combination in `nodes`, -1 while it is left; shape (combinations,).
    cost
        Units that one row of it loses there, those of a suppressed row while it is left; shape (combinations,).
    """

    def __init__(self, grid: Grid, rows: Ints) -> None:
        self.grid, self.rows = grid, rows
        self.nodes: list[Node] = []
        self._number: dict[Node, int] = {}
        self.at = np.full(len(rows), -1, dtype=np.int64)
        self.cost = np.full(len(rows), grid.row, dtype=np.int64)

    @property
    def units(self) -> int:
        """What all rows lose."""
        return int((self.cost * self.rows).sum())

    @property
    def left(self) -> Ints:
        """Combinations that are not released."""
        return np.flatnonzero(self.at < 0)

    def release(self, node: Node, members: Ints) -> None:
        """Put combinations at a node."""
        if node not in self._number:
            self._number[node] = len(self.nodes)
            self.nodes.append(node)
        self.at[members] = self._number[node]
        self.cost[members] = self.grid.cost(node, members)

    def clear(self) -> None:
        """Forget everything that is released."""
        self.nodes, self._number = [], {}
        self.withdraw(np.arange(len(self.at)))

    def withdraw(self, members: Ints) -> None:
        """Take combinations out of the release."""
        self.at[members] = -1
        self.cost[members] = self.grid.row

    def classes(self) -> Classes:
        """The released classes: combinations of one node that agree there."""
        number = np.full(len(self.at), -1, dtype=np.int64)
        base = 0
        for i, node in enumerate(self.nodes):
            members = np.flatnonzero(self.at == i)
            found = Classes.of(self.grid.keys(node, members), members)
            number[found.members] = base + found.owner()
            base += len(found.first)
        released = np.flatnonzero(number >= 0)
        return Classes.of(number[released], released)
