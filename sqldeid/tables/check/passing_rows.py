"""Bound how many rows of a failing class can pass in a specialisation: the stronger core of each criterion. Pure.

At a specialisation, the rows of a class that are released lie in classes that pass, and each criterion is closed under
union: together they pass. So no more rows survive than the largest part of the class that would pass, and all others
are suppressed. Largest parts, by number of rows n'. Each criterion counts its own (`ClassCriterion.survivors`):

- entropy, recursive: of all parts of n' rows, the one with its most frequent values cut to one height is majorised by
  every other, so it passes if any does. Heights are bisected: the lower one, the more even. Between two heights rows
  go one by one; the surplus of entropy is convex on the way, so that is bisected, too.
- t, equal distance: Σ max(c − n'·q, 0) − (n − n') <= t·n', for a row that goes lowers the excess by at most one.
- t, ordered distance: at each cut, A − (n − n') … A rows of the part lie below it, where it should be n'·Q.

The last two are convex in n' and 0 at n' = 0: Newton's steps fall from n to the greatest root and never pass it.

Source: soundness.md 9, sharpened: its ⌈n·(EMD − t)⌉ and "at least one" are lower bounds of this.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import ClassCriterion, known
from sqldeid.tables.criteria.histograms import Histograms

_AT_ONCE = 3_000_000
"""Entries of a matrix of classes by values."""


def survivors(criterion: ClassCriterion, classes: Histograms, reference: Ints) -> Ints:
    """The most rows of each class that can be released in specialisations of it.

    Parameters
    ----------
    reference
        Rows of the whole table by code; shape (values,).

    Returns
    -------
    Shape (classes,): the class's size where it passes, and never less than what can be.
    """
    asked = known(criterion)
    at_once = max(1, _AT_ONCE // max(len(reference), 1))
    found = []
    for start in range(0, len(classes.first), at_once):
        part = classes.part(start, min(start + at_once, len(classes.first)))
        found.append(asked.survivors(part, reference))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
