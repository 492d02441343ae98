"""The minimality attack as arrays: what the choice of a node tells beside the classes. Pure.

*What the reader knows*: the released table, the quasi-identifying values of everybody in the source, the hierarchies,
criteria, limit and loss; that who is suppressed at the released node is so at every finer one (which follows for k and
distinct l, and is taken for granted for other criteria); and that no direct predecessor of the node (one column, one
level finer) was preferred: it suppressed more than allowed, or lost more. Before that all ways to give the rows of a
class to its persons are equally likely to him. He knows less than all: other nodes were refused, too.

*What is computed*: ways are drawn class by class, those are kept by which every predecessor is refused, and the share
of the kept ways in which a person has a value is the reader's belief. Each is an independent draw from his belief, so
the shares of all values lie in their intervals together with 95 % (Chernoff). And where a share a of all ways is kept,
no belief is farther than 1 - a from the class's share, for that is the distance between the kept ways and all.

Source: Wong et al. 2007, *Minimality Attack in Privacy Preserving Data Publishing*; soundness.md 20.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.attacked import sampled
from sqldeid.tables.criteria import ClassCriterion
from sqldeid.tables.criteria.histograms import Histograms
from sqldeid.tables.model.lattice import Node

STEPS = 40
"""Of the bisection for the ends of an interval; each halves it."""

DRAWN_ROWS = 4_000_000
"""Rows that are given to persons in all draws together, about."""

MOST_DRAWN_ROWS = 20_000_000
"""The same, where a hundred draws give more of them than that."""

TRIED = 10
"""Ways by which it is seen whether any agrees with the release."""

Preference = tuple[int, int, Node]
"""By what a search compares nodes: units lost, rows suppressed, the node."""


@dataclass(frozen=True, slots=True)
class Finer:
    """A direct predecessor of the released node, on the persons who are released.

    Parameters
    ----------
    node
        Its levels.
    owner
        Its class of each combination, of those that are released; shape (combinations,).
    size, cost
        Persons of each class, and what its rows lose at this node if released; shape (classes,).
    lost, suppressed
        Units lost and rows suppressed if all classes of k and more were released, the others suppressed.
    suppressed_row
        Units that a suppressed row loses; 0 where suppressing costs nothing.
    """

    node: Node
    owner: Ints
    size: Ints
    cost: Ints
    lost: int
    suppressed: int
    suppressed_row: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader has.

    Parameters
    ----------
    group, owner
        Combination and class of each released row, by class; shape (rows,).
    values
        What the rows show of each column that a criterion speaks of, in any order within a class;
        shape (columns, rows).
    criteria
        By place of their column, with the whole table's rows by value.
    k, allowed, chosen
        Asked for, allowed to be suppressed, and how the released node compares.
    finer
        Its direct predecessors.
    """

    group: Ints
    owner: Ints
    values: Ints
    criteria: tuple[tuple[int, ClassCriterion, Ints], ...]
    k: int
    allowed: int
    chosen: Preference
    finer: tuple[Finer, ...]

    def telling(self) -> tuple[Finer, ...]:
        """The predecessors that may be preferred, by some way to give values: of the others sizes alone say no."""
        return tuple(f for f in self.finer if f.suppressed <= self.allowed)

    def moved(self) -> Flags:
        """The rows whose class has, at such a predecessor, a class of k and more; of the others nothing is learnt."""
        moved = np.zeros(int(self.owner.max(initial=-1)) + 1, dtype=np.bool_)
        for f in self.telling():
            moved[self.owner[f.size[f.owner[self.group]] >= self.k]] = True
        return np.asarray(moved[self.owner])

    def trials(self) -> tuple[Trial, ...]:
        """What of each telling predecessor is the same whatever way values are given."""
        return tuple(self._trial(f) for f in self.telling())

    def _trial(self, f: Finer) -> Trial:
        own = f.owner[self.group]
        rows = np.flatnonzero(f.size[own] >= self.k)
        return Trial(f, rows, own[rows])

    def refuses(self, values: Ints, trials: Sequence[Trial] | None = None) -> bool:
        """Whether every predecessor is refused, or loses to the released node, if the rows are given so."""
        return not any(self._preferred(t, values) for t in (self.trials() if trials is None else trials))

    def _preferred(self, t: Trial, values: Ints) -> bool:
        f, failing = t.finer, np.zeros(len(t.finer.size), dtype=np.bool_)
        for place, criterion, whole in self.criteria:
            if len(t.rows):
                classes, histograms = _histograms(t.owner, values[place, t.rows], len(whole))
                failing[classes[~criterion.hold(histograms, whole)]] = True
        rows = f.suppressed + int(f.size[failing].sum())
        if rows > self.allowed:
            return False
        lost = f.lost
        if f.suppressed_row:
            lost += int((f.size[failing] * f.suppressed_row - f.cost[failing]).sum())
        return (lost, rows, f.node) < self.chosen


@dataclass(frozen=True, slots=True)
class Trial:
    """A predecessor, the released rows in its classes of k and more, and the class of each."""

    finer: Finer
    rows: Ints
    owner: Ints


def _histograms(owner: Ints, value: Ints, values: int) -> tuple[Ints, Histograms]:
    """The classes that there are, and their rows by value."""
    counts = np.bincount(owner * values + value)
    keys = np.flatnonzero(counts)
    rows = counts[keys]
    own = keys // values
    first = np.flatnonzero(np.diff(own, prepend=-1))
    return own[first], Histograms(first.astype(np.int64), keys % values, rows.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Belief:
    """What the reader believes of the rows that are moved.

    Parameters
    ----------
    kept, drawn
        Ways to give values that agree with the release, and all that were drawn.
    rows
        Per column, how often each combination's rows had each value in the kept ways, in all;
        shape (combinations, values).
    """

    kept: int
    drawn: int
    rows: tuple[Ints, ...]


def believe(reading: Reading, draws: int, seed: int) -> Belief:
    """Draw ways to give the rows of each class to its persons, and keep those that agree with the release."""
    rng = np.random.Generator(np.random.PCG64(seed))
    moved, kept, trials = np.flatnonzero(reading.moved()), 0, reading.trials()
    values, groups = reading.values.copy(), int(reading.group.max(initial=-1)) + 1
    widths = [int(reading.values[i].max(initial=-1)) + 1 for i in range(len(values))]
    found = [np.zeros(groups * width, dtype=np.int64) for width in widths]
    owner = reading.owner[moved]
    # one integer sorts several times faster than a class and a number; two rows of a class seldom draw the same one
    bits = 62 - int(owner.max(initial=0)).bit_length()
    base = owner << np.int64(bits)
    for _ in range(draws):
        order = np.argsort(base | rng.integers(0, 1 << bits, len(moved)))
        values[:, moved] = reading.values[:, moved[order]]
        if reading.refuses(values, trials):
            kept += 1
            for i, width in enumerate(widths):
                keys = reading.group[moved] * width + values[i, moved]
                found[i] += np.bincount(keys, minlength=groups * width)
    return Belief(kept, draws, tuple(f.reshape(groups, w) for f, w in zip(found, widths, strict=True)))


def believe_within(reading: Reading, seed: int) -> Belief:
    """What is believed, by as many ways as are worth drawing.

    First a few are drawn, from which nothing is told but whether any agrees; then others, by another seed. Where none
    of the few agrees, so small a share would agree of the others that nothing could be told of them: they are not
    drawn, and the few stand, by which every belief is left open (`sharpened`).
    """
    rows = int(reading.moved().sum())
    tried = believe(reading, TRIED, seed)
    return believe(reading, draws_for(rows), seed + 1) if tried.kept else tried


def draws_for(rows: int) -> int:
    """How many ways are drawn of so many rows: between 20 and 2,000."""
    least = max(20, min(100, MOST_DRAWN_ROWS // max(rows, 1)))
    return max(least, min(2000, DRAWN_ROWS // max(rows, 1)))


@dataclass(frozen=True, slots=True)
class Sharpened:
    """Rows of the release by what is believed of them.

    Parameters
    ----------
    alone
        Rows of which the class alone gives some value a share above the threshold.
    least, most
        Rows of which the reader's belief is sure to be above it, and may be; both are exact where no row is moved.
    told, rows
        Rows of which some belief is sure to be another than the class's share; all rows.
    """

    alone: int
    least: int
    most: int
    told: int
    rows: int


def sharpened(reading: Reading, belief: Belief, place: int, threshold: float) -> Sharpened:
    """Compare what is believed of a column with what classes show, against a threshold."""
    width = belief.rows[place].shape[1]
    sizes = np.bincount(reading.owner)
    counted = np.bincount(reading.owner * width + reading.values[place], minlength=len(sizes) * width)
    shares = counted.reshape(len(sizes), width) / np.maximum(sizes, 1)[:, None]
    persons = np.bincount(reading.group, minlength=len(belief.rows[place]))
    of = np.zeros(len(persons), dtype=np.int64)
    of[reading.group] = reading.owner
    moved = np.zeros(len(persons), dtype=np.bool_)
    moved[reading.group] = reading.moved()
    own = shares[of]
    drawn = max(belief.kept, 1)
    lowest, highest = np.zeros_like(own), np.ones_like(own)
    if belief.kept:
        lowest, highest = _within(belief.rows[place] / np.maximum(persons * drawn, 1)[:, None], drawn)
    apart = 1 - sampled(belief.kept, belief.drawn).low
    low = np.where(moved[:, None], np.maximum(lowest, own - apart), own)
    high = np.where(moved[:, None], np.minimum(highest, own + apart), own)
    above = threshold + 1e-9

    def rows(these: Flags) -> int:
        return int(persons[these.any(axis=1)].sum())

    return Sharpened(
        alone=rows(own > above),
        least=rows(low > above),
        most=rows(high > above),
        told=rows((low > own + 1e-9) | (high < own - 1e-9)),
        rows=int(persons.sum()),
    )


def _within(share: Floats, draws: int) -> tuple[Floats, Floats]:
    """Between what all these shares of draws lie with 95 %, each missed in less than 2.5 % over their number on a side.

    By Chernoff's bound for means of numbers from 0 to 1 (Hoeffding 1963, theorem 1): a share p is drawn where q is true
    with at most exp(-draws * KL(p, q)). It holds for rare values, too, for which Wilson's interval is too narrow.
    """
    far = log(2 * max(share.size, 1) / 0.05) / draws
    each, at = np.unique(share, return_inverse=True)  # shares of few rows in few draws: most of them are equal
    ends = []
    for end in (0.0, 1.0):
        near, out = each.copy(), np.full_like(each, end)
        for _ in range(STEPS):
            middle = (near + out) / 2
            apart = _divergence(each, middle) > far
            near, out = np.where(apart, near, middle), np.where(apart, middle, out)
        ends.append(out[at].reshape(share.shape))
    return ends[0], ends[1]


def _divergence(p: Floats, q: Floats) -> Floats:
    """KL(p, q) of two coins."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(heads + tails)


def predecessors(node: Node) -> Iterator[Node]:
    """The nodes one column and one level finer."""
    for i, level in enumerate(node):
        if level:
            yield (*node[:i], level - 1, *node[i + 1 :])


def number_columns(shown: Sequence[Ints]) -> Ints:
    """Number the different tuples of several columns, from 0 on, in their order; each of shape (entries,)."""
    number = np.zeros(len(shown[0]) if shown else 0, dtype=np.int64)
    for column in shown:  # two at a time: their product stays below 2**63
        number = _ranks(number * (int(column.max(initial=0)) + 1) + column)
    return number


def _ranks(number: Ints) -> Ints:
    """The place of each among the different ones; without sorting, where they are few beside their greatest."""
    most = int(number.max(initial=-1)) + 1
    if most > 8 * len(number):
        return np.asarray(np.unique(number, return_inverse=True)[1].reshape(-1))
    there = np.zeros(most, dtype=np.bool_)
    there[number] = True
    return np.asarray((np.cumsum(there) - 1)[number])
