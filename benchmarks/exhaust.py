"""Every node of a lattice, for several k at once: slow, obvious, and sharing nothing with losses and searches.

Classes are merged column by column, so a node costs a sort of the classes of a node below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod

import numpy as np
import numpy.typing as npt

from benchmarks.classes import Column

Ints = npt.NDArray[np.int64]
Node = tuple[int, ...]
Classes = tuple[Ints, Ints]
"""Code and rows of each class."""

_TIE = 1e-12
"""Share of the top's entropy within which two nodes lose the same."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """What every node is, in lexicographic order.

    Parameters
    ----------
    ks
        The k that were counted.
    classes, squares
        Classes, and the sum of their squared sizes, before suppression; shape (nodes,).
    failing
        Rows in classes smaller than k; shape (ks, nodes).
    leaves
        Sum over these rows of the leaves of the generalised value less one; shape (ks, nodes, columns).
    logs
        The same of their logarithms, in whole millionths of a bit.
    """

    columns: Sequence[Column]
    ks: tuple[int, ...]
    classes: Ints
    squares: Ints
    failing: Ints
    leaves: Ints
    logs: Ints

    @property
    def heights(self) -> Node:
        """Levels of each column."""
        return tuple(len(c.masks) for c in self.columns)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return len(self.columns[0].codes)

    def losses(self, name: str, k: int) -> Ints:
        """A loss of every node, in units in which equal losses are equal numbers; shape (nodes,)."""
        levels = np.stack([x.ravel() for x in np.indices(self.heights)], axis=1)
        if name == "dm_star":
            return self.squares
        if name == "prec":
            common = lcm(*(max(h - 1, 1) for h in self.heights))
            return levels @ np.array([common // max(h - 1, 1) for h in self.heights])
        if name == "class_size":
            return self.rows - self.classes
        if name == "height":
            return levels.sum(axis=1)
        if name in _BITS:
            tables = [_BITS[name](c) for c in self.columns]
            total = sum(table[levels[:, j]] for j, table in enumerate(tables))
            return np.rint(total / (_TIE * sum(table[-1] for table in tables))).astype(np.int64)
        if name in ("loss", "payout"):
            return (self._iyengar if name == "loss" else self._payout)(levels, self.ks.index(k))
        raise ValueError(name)

    def _iyengar(self, levels: Ints, at: int) -> Ints:
        domains = [max(len(np.flatnonzero(c.leaves[0])) - 1, 1) for c in self.columns]
        common = lcm(*domains)
        total = self.failing[at] * (common * len(domains))
        for j, (column, domain) in enumerate(zip(self.columns, domains, strict=True)):
            own = np.array(
                [
                    (leaves[column.codes & mask] - 1).sum()
                    for leaves, mask in zip(column.leaves, column.masks, strict=True)
                ]
            )
            total = total + (own[levels[:, j]] - self.leaves[at, :, j]) * (common // domain)
        return total

    def _payout(self, levels: Ints, at: int) -> Ints:
        domain = sum(int(_millionths(np.array([len(np.flatnonzero(c.leaves[0]))]))[0]) for c in self.columns)
        total = self.failing[at] * domain
        for j, column in enumerate(self.columns):
            both = zip(column.leaves, column.masks, strict=True)
            own = np.array([_millionths(leaves[column.codes & mask]).sum() for leaves, mask in both])
            total = total + own[levels[:, j]] - self.logs[at, :, j]
        return total

    def optimum(self, name: str, k: int, allowed: int) -> Node | None:
        """The admissible node that loses least; then suppresses least; then comes first."""
        failing = self.failing[self.ks.index(k)]
        admissible = np.flatnonzero(failing <= allowed)
        if not len(admissible):
            return None
        losses = self.losses(name, k)[admissible]
        best = admissible[np.lexsort((admissible, failing[admissible], losses))[0]]
        return tuple(int(x) for x in np.unravel_index(best, self.heights))


def exhaust(columns: Sequence[Column], ks: Sequence[int]) -> Exhausted:
    """Look at every node of the lattice."""
    nodes = prod(len(c.masks) for c in columns)
    found = Exhausted(
        columns,
        tuple(sorted(ks)),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.zeros((len(ks), nodes), dtype=np.int64),
        np.zeros((len(ks), nodes, len(columns)), dtype=np.int64),
        np.zeros((len(ks), nodes, len(columns)), dtype=np.int64),
    )
    words = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        words |= column.codes << column.shift
    _descend(found, (), _merge(words, np.ones(len(words), dtype=np.int64)))
    return found


def _descend(found: Exhausted, node: Node, classes: Classes) -> None:
    """Go through the levels of the next column, or write down the node when all columns have theirs."""
    if len(node) == len(found.columns):
        _note(found, node, classes)
        return
    column = found.columns[len(node)]
    for level, mask in enumerate(column.masks):
        if level:
            gone = ((1 << column.bits) - 1 ^ mask) << column.shift
            classes = _merge(classes[0] & ~np.int64(gone), classes[1])
        _descend(found, (*node, level), classes)


def _merge(words: Ints, rows: Ints) -> Classes:
    order = np.argsort(words)
    words, rows = words[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    return words[starts], np.add.reduceat(rows, starts)


def _note(found: Exhausted, node: Node, classes: Classes) -> None:
    words, rows = classes
    at = int(np.ravel_multi_index(node, found.heights))
    found.classes[at], found.squares[at] = len(rows), (rows**2).sum()
    small = np.flatnonzero(rows < found.ks[-1])
    words, rows = words[small], rows[small]
    first = np.searchsorted(found.ks, rows, side="right")  # the smallest k that fails the class
    shape = len(found.ks)
    found.failing[:, at] = np.bincount(first, rows, shape).cumsum()
    for j, (column, level) in enumerate(zip(found.columns, node, strict=True)):
        leaves = column.leaves[level][(words >> column.shift) & ((1 << column.bits) - 1)]
        found.leaves[:, at, j] = np.bincount(first, (leaves - 1) * rows, shape).cumsum()
        found.logs[:, at, j] = np.bincount(first, _millionths(leaves) * rows, shape).cumsum()


def _millionths(leaves: Ints) -> Ints:
    """log2 to the nearest millionth of a bit."""
    units: Ints = np.floor(np.log(leaves) / np.log(2) * 1e6 + 0.5).astype(np.int64)
    return units


def _entropy(column: Column) -> npt.NDArray[np.float64]:
    """Bits that a column loses at each level, summed over rows."""
    own = np.bincount(column.codes)
    bits = []
    for mask in column.masks:
        group = np.bincount(column.codes & mask)
        values = np.flatnonzero(own)
        bits.append(-(own[values] * np.log2(own[values] / group[values & mask])).sum())
    return np.array(bits)


def _ambiguity(column: Column) -> npt.NDArray[np.float64]:
    """Bits of the leaves that values stand for at each level, summed over rows."""
    every = zip(column.leaves, column.masks, strict=True)
    return np.array([np.log2(leaves[column.codes & mask]).sum() for leaves, mask in every])


def _share(column: Column) -> npt.NDArray[np.float64]:
    """Entropy at each level as a share of that at the top."""
    bits = _entropy(column)
    return bits / bits[-1] if bits[-1] else bits


_BITS = {"entropy": _entropy, "ambiguity": _ambiguity, "normalised_entropy": _share}
"""Losses that are logarithms: of a column, by level."""
