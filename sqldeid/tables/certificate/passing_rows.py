"""Bound how many rows of a failing class can pass below it, recomputed for a certificate. Pure.

The same largest parts as `check.passing_rows`, by other formulas: dense counts, values cut by `minimum`, rows bisected.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import ClassCriterion, known

_AT_ONCE = 3_000_000
"""Entries of a matrix of classes by values."""


def passing_rows(criterion: ClassCriterion, first: Ints, place: Ints, rows: Ints, whole: Ints) -> Ints:
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


def _largest(criterion: ClassCriterion, counts: Ints, whole: Ints) -> Ints:
    return known(criterion).passing_rows(counts, whole)
