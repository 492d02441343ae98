"""Bound how many rows of a failing class can pass in a specialisation: the stronger core of l and t. Pure.

At a specialisation, the rows of a class that are released lie in classes that pass, and each criterion is closed under
union: together they pass. So no more rows survive than the largest part of the class that would pass, and all others
are suppressed. Largest parts, by number of rows n':

- entropy, recursive: of all parts of n' rows, the one with its most frequent values cut to one height is majorised by
  every other, so it passes if any does. Heights are bisected: the lower one, the more even. Between two heights rows
  go one by one; the surplus of entropy is convex on the way, so that is bisected, too.
- t, equal distance: Σ max(c − n'·q, 0) − (n − n') <= t·n', for a row that goes lowers the excess by at most one.
- t, ordered distance: at each cut, A − (n − n') … A rows of the part lie below it, where it should be n'·Q.

The last two are convex in n' and 0 at n' = 0: Newton's steps fall from n to the greatest root and never pass it.

Source: soundness.md 9, sharpened: its ⌈n·(EMD − t)⌉ and "at least one" are lower bounds of this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sqldeid.tables.criteria import ClassCriterion, refuse_unknown, terms_of
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.criteria.t_closeness import TCloseness

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_AT_ONCE = 3_000_000
"""Entries of a matrix of classes by values."""

_STEPS = 60

_ROUNDING = 1e-9
"""Rows, as a share of the class, that rounding may keep; the entropy's tolerance is the criterion's."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """Rows of some classes by sensitive value.

    Parameters
    ----------
    first
        Where each class begins in `value` and `rows`; shape (classes,).
    value, rows
        Code and rows of each value there; shape (cells,).
    """

    first: Whole
    value: Whole
    rows: Whole

    @property
    def size(self) -> Whole:
        """Rows of each class."""
        return np.add.reduceat(self.rows, self.first) if len(self.first) else self.first

    def part(self, start: int, stop: int) -> Histograms:
        """Some of the classes."""
        begin = self.first[start]
        end = self.first[stop] if stop < len(self.first) else len(self.rows)
        return Histograms(self.first[start:stop] - begin, self.value[begin:end], self.rows[begin:end])

    def owner(self) -> Whole:
        """The class of each cell."""
        return np.repeat(np.arange(len(self.first)), np.diff([*self.first.tolist(), len(self.rows)]))

    def falling(self) -> Whole:
        """Counts of each class, falling, padded by 0; shape (classes, most values)."""
        owner = self.owner()
        order = np.lexsort((-self.rows, owner))
        width = int(np.diff([*self.first.tolist(), len(self.rows)]).max())
        found = np.zeros((len(self.first), width), dtype=np.int64)
        found[owner, np.arange(len(owner)) - self.first[owner]] = self.rows[order]
        return found

    def dense(self, values: int) -> Whole:
        """Counts by code; shape (classes, values)."""
        found = np.zeros((len(self.first), values), dtype=np.int64)
        found[self.owner(), self.value] = self.rows
        return found


def survivors(criterion: ClassCriterion, classes: Histograms, reference: Whole) -> Whole:
    """The most rows of each class that can be released in specialisations of it.

    Parameters
    ----------
    reference
        Rows of the whole table by code; shape (values,).

    Returns
    -------
    Shape (classes,): the class's size where it passes, and never less than what can be.
    """
    at_once = max(1, _AT_ONCE // max(len(reference), 1))
    found = []
    for start in range(0, len(classes.first), at_once):
        part = classes.part(start, min(start + at_once, len(classes.first)))
        found.append(_of_some(criterion, part, reference))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _of_some(criterion: ClassCriterion, classes: Histograms, reference: Whole) -> Whole:
    terms_of(criterion)  # a distance that is not known raises
    if isinstance(criterion, TCloseness):
        return _close(criterion, classes.dense(len(reference)), reference)
    if isinstance(criterion, DistinctLDiversity):
        return np.where((classes.falling() > 0).sum(axis=1) >= criterion.l, classes.size, 0)
    flat = _Flat(classes.falling())
    if isinstance(criterion, EntropyLDiversity):
        return _uncertain(criterion, flat)
    if isinstance(criterion, RecursiveLDiversity):
        return _recursive(criterion, flat)
    refuse_unknown(criterion)


class _Flat:
    """Classes whose most frequent values are cut to a height, by sums from the front."""

    def __init__(self, falling: Whole) -> None:
        self.falling = falling
        self.n = falling.sum(axis=1)
        self.rows = _from_front(falling)
        self.logs = _from_front(_log(falling))
        self.at = np.arange(len(falling))

    def cut(self, height: Whole) -> Whole:
        """How many values are above a height."""
        return np.asarray((self.falling > height[:, None]).sum(axis=1))

    def left(self, height: Whole) -> Whole:
        """Rows that are left."""
        above = self.cut(height)
        return np.asarray(above * height + self.n - self.rows[self.at, above])

    def surplus(self, height: Whole, removed: Whole, l: int) -> Floats:
        """n·ln n − Σ c·ln c − n·ln l of what is left, after `removed` more values lost one row of the height."""
        above = self.cut(height)
        logs = above * _log(height) + self.logs[self.at, -1] - self.logs[self.at, above]
        logs = logs - removed * (_log(height) - _log(height - 1))
        n = self.left(height) - removed
        return np.asarray(_log(n) - logs - n * (np.log(l) - 1e-9))


def _uncertain(criterion: EntropyLDiversity, flat: _Flat) -> Whole:
    none, top = np.zeros_like(flat.n), flat.falling[:, 0]
    passes = flat.surplus(top, none, criterion.l) >= 0
    low, high = np.ones_like(top), top.copy()
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        good = flat.surplus(middle, none, criterion.l) >= 0
        low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
    high = np.maximum(high, low + 1)
    fewest, most = none.copy(), np.maximum((flat.falling >= high[:, None]).sum(axis=1), 1)
    while (open_ := most - fewest > 1).any():
        middle = (fewest + most) // 2
        good = flat.surplus(high, middle, criterion.l) >= 0
        most, fewest = np.where(open_ & good, middle, most), np.where(open_ & ~good, middle, fewest)
    enough = (flat.falling > 0).sum(axis=1) >= criterion.l
    return np.where(passes, flat.n, np.where(enough, flat.left(high) - most, 0))


def _recursive(criterion: RecursiveLDiversity, flat: _Flat) -> Whole:
    num, den, fewer = criterion.c.numerator, criterion.c.denominator, criterion.l - 1
    fewer = min(fewer, flat.falling.shape[1])

    def good(height: Whole) -> npt.NDArray[np.bool_]:
        above = flat.cut(height)
        rest = flat.n - flat.rows[flat.at, np.maximum(above, fewer)]
        tail = np.maximum(above - fewer, 0) * height + rest
        return np.asarray(height * den < num * tail)

    low, high = np.zeros_like(flat.n), flat.falling[:, 0] + 1
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        fine = good(middle)
        low, high = np.where(open_ & fine, middle, low), np.where(open_ & ~fine, middle, high)
    return flat.left(low)


def _close(criterion: TCloseness, counts: Whole, reference: Whole) -> Whole:
    n, q, t = counts.sum(axis=1), reference / reference.sum(), float(criterion.t)
    below, share = np.cumsum(counts, axis=1)[:, :-1], np.cumsum(q)[:-1]
    x, steps = n.astype(np.float64), max(len(reference) - 1, 1)
    for _ in range(_STEPS):
        if criterion.distance == "equal":
            over = counts - x[:, None] * q
            excess = np.maximum(over, 0).sum(axis=1) - n + x - t * x
            slope = 1 - t - (q * (over > 0)).sum(axis=1)
        else:
            short = x[:, None] * share - below
            far = below - n[:, None] + x[:, None] * (1 - share)
            excess = np.maximum(np.maximum(short, far), 0).sum(axis=1) - t * x * steps
            slope = np.where(short > np.maximum(far, 0), share, np.where(far > 0, 1 - share, 0)).sum(axis=1) - t * steps
        step = np.where((excess > _ROUNDING * n) & (slope > 0), excess / np.where(slope > 0, slope, 1), 0)
        if not step.any():
            break
        x = np.maximum(x - step, 0)
    return np.asarray(np.minimum(np.floor(x + 2 * _ROUNDING * n).astype(np.int64), n))


def _from_front(falling: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Sums of the first 0, 1, 2 … entries of each row."""
    found = np.zeros((falling.shape[0], falling.shape[1] + 1), dtype=falling.dtype)
    np.cumsum(falling, axis=1, out=found[:, 1:])
    return found


def _log(n: Whole) -> Floats:
    """n·ln n, 0 at 0."""
    return np.asarray(n * np.log(np.maximum(n, 1)))
