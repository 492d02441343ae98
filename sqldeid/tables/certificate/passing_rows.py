"""Bound how many rows of a failing class can pass below it, recomputed for a certificate. Pure.

The same largest parts as `surviving`, by other formulas: dense counts, values cut by `minimum`, rows bisected.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sqldeid.tables.criteria import ClassCriterion, refuse_unknown, terms_of
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.criteria.t_closeness import TCloseness

Whole = npt.NDArray[np.int64]
Holds = npt.NDArray[np.bool_]

_AT_ONCE = 3_000_000
"""Entries of a matrix of classes by values."""


def passing_rows(criterion: ClassCriterion, first: Whole, place: Whole, rows: Whole, whole: Whole) -> Whole:
    """The most rows of each class that can be released in specialisations of it; shape (classes,).

    Parameters
    ----------
    first
        Where each class begins in `place` and `rows`.
    whole
        Rows of the whole table by place.
    """
    ends = np.append(first[1:], len(rows))
    at_once = max(1, _AT_ONCE // max(len(whole), 1))
    found = []
    for start in range(0, len(first), at_once):
        some = slice(start, start + at_once)
        begin, end = first[some][0], ends[some][-1]
        counts = np.zeros((len(first[some]), len(whole)), dtype=np.int64)
        owner = np.repeat(np.arange(len(counts)), ends[some] - first[some])
        counts[owner, place[begin:end]] = rows[begin:end]
        found.append(_largest(criterion, counts, whole))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _largest(criterion: ClassCriterion, counts: Whole, whole: Whole) -> Whole:
    n = counts.sum(axis=1)
    least = terms_of(criterion).l
    if isinstance(criterion, TCloseness):
        return _bisected(lambda x: _near(criterion, counts, whole, x), n)
    enough = (counts > 0).sum(axis=1) >= least
    if isinstance(criterion, DistinctLDiversity):
        return np.where(enough, n, 0)
    if isinstance(criterion, RecursiveLDiversity):
        height = _bisected(lambda h: _tailed(criterion.c, criterion.l, counts, h), counts.max(axis=1))
        return np.asarray(np.minimum(counts, height[:, None]).sum(axis=1))
    if not isinstance(criterion, EntropyLDiversity):
        refuse_unknown(criterion)
    height = _bisected(lambda h: _even(counts, h, np.zeros_like(h), criterion.l), counts.max(axis=1))
    next_, above = height + 1, (counts > height[:, None]).sum(axis=1)
    kept = _bisected(lambda i: _even(counts, next_, above - i, criterion.l), np.maximum(above - 1, 0))
    whole_rows = np.minimum(counts, height[:, None]).sum(axis=1)
    more = np.where(_even(counts, next_, above - kept, criterion.l), kept, 0)
    return np.where(enough, whole_rows + more, 0)


def _bisected(holds: Callable[[Whole], Holds], most: Whole) -> Whole:
    """The greatest number from 0 to `most` that holds, of those that hold up to one number; 0 where none does."""
    low, high = np.zeros_like(most), most + 1
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        good = holds(middle)
        low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
    return low


def _even(counts: Whole, height: Whole, lowered: Whole, l: int) -> Holds:
    """Entropy of the counts cut to a height, `lowered` of those at it by one more row, against ln l."""
    cut = np.minimum(counts, height[:, None])
    n = cut.sum(axis=1) - lowered
    sums = (cut * np.log(np.maximum(cut, 1))).sum(axis=1)
    below = np.maximum(height - 1, 0)
    sums = sums - lowered * (height * np.log(np.maximum(height, 1)) - below * np.log(np.maximum(below, 1)))
    safe = np.maximum(n, 1)
    return np.asarray((n > 0) & (np.log(safe) - sums / safe >= np.log(l) - 1e-9))


def _tailed(c: Fraction, l: int, counts: Whole, height: Whole) -> Holds:
    cut = -np.sort(-np.minimum(counts, height[:, None]), axis=1)
    return np.asarray(cut[:, 0] * c.denominator < c.numerator * cut[:, l - 1 :].sum(axis=1))


def _near(criterion: TCloseness, counts: Whole, whole: Whole, rows: Whole) -> Holds:
    """Whether `rows` rows of the class may be as near to the whole table as asked, by what they must exceed it."""
    n, share, x = counts.sum(axis=1), whole / whole.sum(), rows[:, None]
    if criterion.distance == "equal":
        least = np.maximum(counts - x * share, 0).sum(axis=1) - (n - rows)
        most = float(criterion.t) * rows
    else:
        below = np.cumsum(counts, axis=1)
        fewest, most_below = np.maximum(below - (n - rows)[:, None], 0), np.minimum(below, x)
        wanted = x * np.cumsum(share)
        least = np.maximum(np.maximum(fewest - wanted, wanted - most_below), 0).sum(axis=1)
        most = float(criterion.t) * rows * max(len(whole) - 1, 1)
    return np.asarray(least <= most + 1e-9 * n)
