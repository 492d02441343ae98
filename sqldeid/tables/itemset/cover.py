"""Choose cells so that each set of cells holds a chosen one, as cheaply as can be, with a proven lower bound. Pure.

A cell is an item, as it is shown, within a class of persons. A set of cells is what too few persons have; it is broken
where one of its cells is suppressed for the whole class. That is a minimum weight hitting set (for pairs: a vertex
cover), which is hard; so small connected parts are solved exactly by branch and bound, and of the others the bound is
that of the dual: weights that sets are given so that no cell bears more than its own weight.

Source: Bar-Yehuda and Even 1981 (local ratio, the dual bound); Hochbaum 1982 (covering sets).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Floats, Ints

EXACT_CELLS = 48
"""Connected parts of at most so many cells are solved exactly, if it takes at most `EXACT_STEPS`."""

EXACT_STEPS = 4000
ROUNDS = 64
TIGHT = 1e-12


@dataclass(frozen=True, slots=True)
class Cover:
    """What was chosen.

    Parameters
    ----------
    chosen
        Cells, ascending.
    weight, bound
        Of the chosen cells together; what any choice weighs at least.
    """

    chosen: Ints
    weight: float
    bound: float


def cover(sets: Ints, weights: Floats) -> Cover:
    """Choose cells that break all sets.

    Parameters
    ----------
    sets
        Cells of each set; shape (sets, cells in a set).
    weights
        Of each cell, 0 or more; shape (cells,).
    """
    if not len(sets):
        return Cover(np.zeros(0, dtype=np.int64), 0.0, 0.0)
    chosen, bound = _dual(sets, weights)
    chosen = _lean(sets, weights, chosen)
    part = _parts(sets, len(weights))[sets[:, 0]]
    order = np.argsort(part, kind="stable")
    edges = np.flatnonzero(np.diff(part[order])) + 1
    kept = np.zeros(len(weights), dtype=np.bool_)
    kept[chosen] = True
    total, least = 0.0, 0.0
    for rows in np.split(order, edges):
        own, cells = sets[rows], np.unique(sets[rows])
        found = cells[kept[cells]]
        weight, low = float(weights[found].sum()), float(bound[rows].sum())
        if len(cells) <= EXACT_CELLS and low < weight:
            best, proven = _exact(own, weights, found)
            if proven:
                kept[cells] = False
                kept[best] = True
                weight = low = float(weights[best].sum())
        total, least = total + weight, least + min(low, weight)
    return Cover(np.flatnonzero(kept).astype(np.int64), total, least)


def _dual(sets: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Cells that the sets' weights use up, and those weights: an upper and a lower bound in one."""
    left, given = weights.astype(np.float64).copy(), np.zeros(len(sets))
    chosen = weights <= 0
    open_ = ~chosen[sets].any(axis=1)
    for _ in range(ROUNDS):
        rows = np.flatnonzero(open_)
        if not len(rows):
            break
        there = sets[rows]
        degree = np.bincount(there.ravel(), minlength=len(weights))
        share = left / np.maximum(degree, 1)
        more = share[there].min(axis=1)
        given[rows] += more
        left -= np.bincount(there.ravel(), weights=np.repeat(more, there.shape[1]), minlength=len(weights))
        chosen |= (left <= TIGHT * weights) & (degree > 0)
        open_ &= ~chosen[sets].any(axis=1)
    for row in np.flatnonzero(open_):  # what is left after many rounds
        if not chosen[sets[row]].any():
            chosen[sets[row][np.argmin(left[sets[row]])]] = True
    return np.flatnonzero(chosen).astype(np.int64), given * (1 - 1e-9)


def _lean(sets: Ints, weights: Floats, chosen: Ints) -> Ints:
    """Leave out cells, the heaviest first, whose sets others break."""
    kept = np.zeros(len(weights), dtype=np.bool_)
    kept[chosen] = True
    broken = kept[sets].sum(axis=1)
    flat, rows = sets.ravel(), np.repeat(np.arange(len(sets)), sets.shape[1])
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(len(weights) + 1))
    for cell in chosen[np.argsort(-weights[chosen], kind="stable")]:
        mine = rows[order[starts[cell] : starts[cell + 1]]]
        if (broken[mine] > 1).all():
            kept[cell] = False
            broken[mine] -= 1
    return np.flatnonzero(kept).astype(np.int64)


def _parts(sets: Ints, cells: int) -> Ints:
    """A number for each connected part of the cells: the least cell in it."""
    least = np.arange(cells)
    while True:
        low = least[sets].min(axis=1)
        new = least.copy()
        for place in range(sets.shape[1]):
            np.minimum.at(new, sets[:, place], low)
        new = new[new]
        if (new == least).all():
            return least
        least = new


def _exact(sets: Ints, weights: Floats, found: Ints) -> tuple[Ints, bool]:
    """The lightest cells of one part, and whether that is proven: branch and bound on an unbroken set."""
    steps = _Branching([tuple(row) for row in sets.tolist()], weights, frozenset(found.tolist()))
    proven = steps.run()
    return np.array(sorted(steps.best), dtype=np.int64), proven


class _Branching:
    """Which cell of an unbroken set is chosen first; those before it in the set are not chosen then."""

    def __init__(self, sets: list[tuple[int, ...]], weights: Floats, best: frozenset[int]) -> None:
        self.sets, self.weights = sets, {cell: float(weights[cell]) for one in sets for cell in one}
        self.best, self.weight = best, sum(float(weights[cell]) for cell in best)
        self.left = EXACT_STEPS

    def run(self) -> bool:
        """Look until nothing lighter can be there; False where that takes too long."""
        stack: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
        while stack:
            if self.left <= 0:
                return False
            self.left -= 1
            chosen, never = stack.pop()
            stack.extend(self._further(chosen, never))
        return True

    def _further(
        self, chosen: frozenset[int], never: frozenset[int]
    ) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        open_ = [one for one in self.sets if chosen.isdisjoint(one)]
        weight = sum(self.weights[cell] for cell in chosen)
        if weight + self._least(open_, never) >= self.weight - 1e-12 * max(self.weight, 1.0):
            return
        if not open_:
            self.best, self.weight = chosen, weight
            return
        free = min(([c for c in one if c not in never] for one in open_), key=len)
        degree = defaultdict(int, {c: sum(c in one for one in open_) for c in free})
        free.sort(key=lambda cell: (degree[cell], cell))  # the last one is looked at first
        for place, cell in enumerate(free):
            yield chosen | {cell}, never | frozenset(free[place + 1 :])

    def _least(self, open_: list[tuple[int, ...]], never: frozenset[int]) -> float:
        """What breaking the open sets weighs at least: sets without a common cell, each by its lightest."""
        used, total = set[int](), 0.0
        for one in open_:
            if not used.isdisjoint(one):
                continue
            used.update(one)
            total += min((self.weights[c] for c in one if c not in never), default=float("inf"))
        return total
