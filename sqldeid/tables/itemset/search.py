"""Find the cut that loses least with what it must suppress, and a bound of what any cut loses. Pure.

What single items ask for is a sum over the nodes of a cut, so the best cut by them is exact, for any price of a
suppressed pair (`CodeTree.cheapest`). As larger sets only ask for more, that is a lower bound of every cut; with the
price as a multiplier it holds within the limit, too (Lagrangian relaxation). Cuts are proposed by it: each cut that was
judged tells what larger sets cost at its nodes, and the next one is the best by all that is known. Where there are few
cuts, all are judged that could be the best, and the result is exact for this kind of release.

Source: Iyengar 2002 (the loss); Geoffrion 1974 (the bound).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.tables.itemset.tree import CodeTree

ALL_CUTS = 400
"""So many cuts are judged all, where pairs are few."""

FEW_PAIRS = 200_000
PAIRS_JUDGED = 60_000_000
MOST_CHECKS, LEAST_CHECKS = 200, 4
PROPOSED = 24
"""Cuts that are proposed, at most, before the best one is bettered node by node."""
PRICES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
"""What a suppressed pair costs beyond its loss, where cuts are proposed and bounds sought."""

BEYOND = 10.0
"""What a pair that is suppressed beyond the limit costs, while cuts are bettered."""

CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Totals:
    """Of each node: pairs of cells that k persons have, and the other pairs; shape (nodes,).

    Parameters
    ----------
    rare
        Nodes of fewer pairs have too few with another one like them in a class of middling size, where items are
        independent: a guess by which cuts are proposed where each one costs much.
    """

    kept: Floats
    failing: Floats
    rare: float = 0.0

    def costs(self, tree: CodeTree, price: float, beyond: Floats | float = 0.0) -> Floats:
        """What each node costs: pairs that are shown, and those suppressed at 1 + price each, `beyond` among them."""
        more = np.minimum(beyond, self.kept)
        return np.asarray(tree.losses * (self.kept - more) + (1 + price) * (self.failing + more))


@dataclass(frozen=True, slots=True)
class Judged:
    """A cut with what must be suppressed.

    Parameters
    ----------
    cut
        The node that each leaf is shown as.
    loss, bound
        Of the release; of any suppression of whole cells under this cut. 0 … 1.
    suppressed, fewest
        Pairs of person and item: suppressed; by any such suppression.
    dropped
        Numbers of the cells that are suppressed though k persons have them.
    beyond, released
        Pairs of these by node, and the pairs that are shown; shape (nodes,).
    """

    cut: Ints
    loss: float
    bound: float
    suppressed: int
    fewest: float
    dropped: Ints
    beyond: Floats
    released: Floats


class Judging(Protocol):
    """What judges a cut."""

    def judge(self, cut: Ints, *, by_count: bool = False) -> Judged | None:
        """A cut with what must be suppressed; None where that cannot be told."""


@dataclass(frozen=True, slots=True)
class Found:
    """The cut that was found; `best` is None where none keeps within the limit.

    Parameters
    ----------
    bound
        What any cut loses at least, with any suppression of whole cells within the limit.
    checks
        Cuts that were judged.
    nearest
        Where there is none: the fewest pairs that a cut suppressed.
    hopeful
        A cut that would lose less, and suppress more than the limit; of these the one with the fewest. None where
        none was seen.
    """

    best: Judged | None
    bound: float
    checks: int
    nearest: int = 0
    hopeful: Judged | None = None


def find_cut(tree: CodeTree, totals: Totals, total: int, judging: Judging, limit: Fraction) -> Found:
    """Find the least loss.

    Parameters
    ----------
    total
        Pairs of person and item.
    limit
        The greatest share of them that may be suppressed.
    """
    seeking = _Seeking(tree, totals, total, judging, int(limit * total))
    if total <= FEW_PAIRS and tree.count_cuts(ALL_CUTS) <= ALL_CUTS:
        seeking.all_cuts()
    else:
        seeking.some_cuts(max(LEAST_CHECKS, min(MOST_CHECKS, PAIRS_JUDGED // max(total, 1))))
    best = seeking.best
    bound = max(0.0, min(seeking.bound(), best.loss if best is not None else 1.0))
    return Found(best, bound, seeking.checks, seeking.nearest, seeking.hopeful())


class _Seeking:
    """A search on its way."""

    def __init__(self, tree: CodeTree, totals: Totals, total: int, judging: Judging, allowed: int) -> None:
        self.tree, self.totals, self.total = tree, totals, total
        self.judging, self.allowed = judging, allowed
        self.best: Judged | None = None
        self.checks, self.nearest = 0, total
        guessed = total > FEW_PAIRS
        self.known = np.where(guessed & (totals.kept + totals.failing < totals.rare), totals.kept, 0.0)
        self.least: float | None = None
        self._seen = set[bytes]()
        self._judged: list[Judged] = []

    def bound(self) -> float:
        """What any cut loses at least."""
        if self.least is not None:
            return self.least
        return max(self._relaxed(price)[1] for price in PRICES)

    def hopeful(self) -> Judged | None:
        """What a greater limit would let be found."""
        over = [j for j in self._judged if j.suppressed > self.allowed and self.best and j.loss < self.best.loss]
        return min(over, key=lambda j: (j.suppressed, j.loss), default=None)

    def _relaxed(self, price: float) -> tuple[Ints, float]:
        """The best cut by single items at a price, and the bound that follows."""
        cut, cost = self.tree.cheapest(self.totals.costs(self.tree, price))
        return cut, (cost - price * self.allowed) / self.total * (1 - CLOSE)

    def _lowest(self, cut: Ints) -> float:
        """What a cut loses at least, by single items alone."""
        return float(self.totals.costs(self.tree, 0.0)[np.unique(cut)].sum()) / self.total

    def all_cuts(self) -> None:
        """Judge each cut that could be the best; the bound is then of them all."""
        listed = sorted(((self._lowest(cut), at, cut) for at, cut in enumerate(self.tree.cuts())), key=lambda c: c[:2])
        least = 1.0
        for low, _, cut in listed:
            if self.best is not None and low >= self.best.loss * (1 - CLOSE):
                least = min(least, low)
                break
            judged = self._judge(cut)
            if judged is None:
                least = min(least, low)
            elif judged.fewest <= self.allowed + CLOSE:
                least = min(least, max(low, judged.bound))
        self.least = least

    def some_cuts(self, checks: int) -> None:
        """Judge cuts as they are proposed, then the single levels that could be better."""
        price = 0.0
        while self.checks < min(checks, PROPOSED):
            cut, _ = self.tree.cheapest(self.totals.costs(self.tree, price, self.known))
            if not self._new(cut):
                later = [p for p in PRICES if p > price]
                if not later:
                    break
                price = later[0]
                continue
            judged = self._judge(cut)
            if judged is None or judged.suppressed > self.allowed:
                price = next((p for p in PRICES if p > price), price)
        for level in reversed(range(len(self.tree.groups))):
            self._further(self.tree.finest(self.tree.at(level)), checks)
        self._climb(checks)

    def _climb(self, checks: int) -> None:
        """Better the best cut, or the nearest to the limit, by one node at a time, as long as that helps."""
        here = min(self._judged, key=self._worth, default=None)
        while here is not None:
            better = next((j for j in self._neighbours(here, checks) if self._worth(j) < self._worth(here)), None)
            here = better

    def _neighbours(self, here: Judged, checks: int) -> Iterator[Judged]:
        """The cuts that are one node finer or coarser, judged one after the other; those of most pairs first."""
        nodes = np.unique(here.cut)
        busy = nodes[np.argsort(-(self.totals.kept + self.totals.failing)[nodes], kind="stable")]
        parents = dict.fromkeys(self.tree.parent[busy].tolist())
        cuts = [self.tree.split(here.cut, node) for node in busy.tolist()]
        cuts += [self.tree.merge(here.cut, node) for node in parents if node >= 0]
        for cut in map(self.tree.finest, cuts):
            if self.checks >= checks:
                return
            hopeful = self.best is None or self._lowest(cut) < self.best.loss
            if hopeful and self._new(cut) and (judged := self._judge(cut)) is not None:
                yield judged

    def _worth(self, judged: Judged) -> float:
        """By what cuts are compared: the loss, and what is suppressed beyond the limit at a price."""
        return judged.loss + BEYOND * max(0, judged.suppressed - self.allowed) / self.total

    def _further(self, cut: Ints, checks: int) -> None:
        """Judge a cut that could be better; where none is admissible yet, whatever was judged before."""
        hopeful = self.best is None or self._lowest(cut) < self.best.loss
        if hopeful and self._new(cut) and (self.checks < checks or self.best is None):
            self._judge(cut)

    def _new(self, cut: Ints) -> bool:
        """Whether a cut was not seen before."""
        mark = cut.tobytes()
        if mark in self._seen:
            return False
        self._seen.add(mark)
        return True

    def _judge(self, cut: Ints) -> Judged | None:
        self.checks += 1
        judged = self.judging.judge(cut)
        if judged is None:
            nodes = np.unique(cut)
            self.known[nodes] = self.totals.kept[nodes]  # so many sets fail that nothing may be left of it
            return None
        if judged.suppressed > self.allowed:
            fewer = self.judging.judge(cut, by_count=True)
            if fewer is not None:
                self.nearest = min(self.nearest, fewer.suppressed)
                self._take(fewer)
                judged = replace(
                    fewer if fewer.suppressed < judged.suppressed else judged, fewest=fewer.fewest, bound=judged.bound
                )
        self.nearest = min(self.nearest, judged.suppressed)
        nodes = np.unique(cut)
        self.known[nodes] = judged.beyond[nodes]
        self._take(judged)
        self._judged.append(judged)
        return judged

    def _take(self, judged: Judged) -> None:
        if judged.suppressed <= self.allowed and (self.best is None or judged.loss < self.best.loss):
            self.best = judged
