"""Moves of combinations between the classes of a block that lose less: join, give on, swap, dissolve a class. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.block import NEVER, Block


@dataclass(frozen=True, slots=True)
class Move:
    """Combinations that go to other classes, both by their place in the block.

    Parameters
    ----------
    units
        What all lose more, below 0.
    to
        Pairs of a combination and its new class.
    dissolved
        The class that ends, or -1.
    """

    units: int
    to: tuple[tuple[int, int], ...]
    dissolved: int = -1

    def classes(self, owner: Ints) -> set[int]:
        """Every class that it touches."""
        return {c for i, target in self.to for c in (int(owner[i]), target)}


def chosen_moves(block: Block) -> list[Move]:
    """Moves that touch different classes, the most saving ones first."""
    found = sorted(_moves(block), key=lambda move: (move.units, move.to))
    touched: set[int] = set()
    kept = []
    for move in found:
        classes = move.classes(block.owner)
        combinations = {i for i, _ in move.to}
        if touched.isdisjoint(classes) and len(combinations) == len(move.to) and _clean(move):
            touched |= classes
            kept.append(move)
    return kept


def _clean(move: Move) -> bool:
    """Whether nothing goes into a class that ends, and no class takes up two: their costs were not added up so."""
    targets = [target for _, target in move.to]
    return move.dissolved not in targets and len(set(targets)) == len(targets)


def _moves(block: Block) -> Iterator[Move]:
    """Every single move that saves; each alone."""
    here = np.arange(len(block.owner))
    joining, leaving = block.joining(), block.leaving()
    target = joining.argmin(axis=1)
    join = joining[here, target]
    replacing = block.replacing()
    for i in np.flatnonzero(join + leaving < 0).tolist():
        yield Move(int(join[i] + leaving[i]), ((i, int(target[i])),))
    yield from _swaps(block, replacing)
    handed = np.add(replacing, join, out=replacing)
    handed[block.inside(target)] = NEVER
    via = handed.argmin(axis=1)
    hand = handed[here, via]
    for i in np.flatnonzero(hand + leaving < 0).tolist():
        yield Move(int(hand[i] + leaving[i]), _handed(block, i, target, via))
    yield from _dissolved(block, (join, hand), target, via)


def _swaps(block: Block, replacing: Ints) -> Iterator[Move]:
    """Two combinations of different classes change places."""
    both = np.add(replacing, replacing.T, out=block.room.matrix("both", replacing.shape, np.int64))
    best = both.argmin(axis=1)
    units = both[np.arange(len(best)), best]
    for i in np.flatnonzero(units < 0).tolist():
        j = int(best[i])
        if i < j or int(best[j]) != i:
            yield Move(int(units[i]), ((i, int(block.owner[j])), (j, int(block.owner[i]))))


def _handed(block: Block, i: int, target: Ints, via: Ints) -> tuple[tuple[int, int], ...]:
    """A combination takes the place of another, which joins a third class."""
    j = int(via[i])
    return (i, int(block.owner[j])), (j, int(target[j]))


def _dissolved(block: Block, costs: tuple[Ints, Ints], target: Ints, via: Ints) -> Iterator[Move]:
    """Classes that end: each member joins another, directly or in place of a combination that joins a third."""
    cost = np.minimum(*costs)
    units = np.add.reduceat(np.minimum(cost, NEVER // 1024), block.first) - block.lost
    for c in np.flatnonzero(units < 0).tolist():
        members = range(int(block.first[c]), int(block.first[c] + block.sizes[c]))
        to: list[tuple[int, int]] = []
        for i in members:
            to += [(i, int(target[i]))] if costs[0][i] <= costs[1][i] else _handed(block, i, target, via)
        yield Move(int(units[c]), tuple(to), c)
