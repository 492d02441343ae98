"""Find which mean, variance, minimum and maximum n records can have together, and the nearest that they can have.

Written by deviations from the mean: ``below`` = mean − minimum, ``above`` = maximum − mean. A series of n ≥ 3 records
with these extremes exists if and only if ``above ≤ (n−1)·below``, ``below ≤ (n−1)·above`` and its variance lies between
`least_variance` and `greatest_variance`. All arguments broadcast; all results are exact up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sqldeid.arrays import Floats, Ints

Way: TypeAlias = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]


def least_variance(below: Floats, above: Floats, n: Ints) -> Floats:
    """Variance with one record at each extreme and all others equal (population variance; n ≥ 3)."""
    others = np.maximum(n - 2, 1)
    return np.asarray((below**2 + above**2 + (above - below) ** 2 / others) / n, dtype=np.float64)


def greatest_variance(below: Floats, above: Floats, n: Ints) -> Floats:
    """Variance with all records but one at an extreme, at least one at each (population variance; n ≥ 2).

    Without the remainder that a whole number of records leaves it would be below · above (Bhatia and Davis 2000).
    """
    high, between = greatest_shape(below, above, n)
    return np.asarray((high * above**2 + (n - 1 - high) * below**2 + between**2) / n, dtype=np.float64)


def greatest_shape(below: Floats, above: Floats, n: Ints) -> tuple[Floats, Floats]:
    """How many records lie at the maximum, and the deviation of the one that need not lie at an extreme."""
    width = np.maximum(below + above, np.finfo(np.float64).tiny)
    high = np.clip(np.floor(n * below / width + 1e-12), 1, np.maximum(n - 1, 1))
    between = np.where(high < n - 1, (n - 1 - high) * below - high * above, -below)
    return high, between


def nearest_extremes(below: Floats, above: Floats, variance: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Extremes with which mean and `variance` can be met exactly, moved little more than they must (sum of both moves).

    Parameters
    ----------
    below, above, variance, n
        One entry a series; n ≥ 2. Two records have no choice: both lie one standard deviation off the mean.

    Returns
    -------
    below, above
        Unchanged where they were feasible.
    """
    sd = np.sqrt(variance)
    below, above = _room_for_mean(np.maximum(below, 0.0), np.maximum(above, 0.0), n)
    below, above = draw_in(below, above, variance, n)
    below, above = _widen(below, above, variance, n)
    two = n == 2
    return np.where(two, sd, below), np.where(two, sd, above)


def _room_for_mean(below: Floats, above: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Raise the smaller deviation until n − 1 records there balance one at the other extreme."""
    others = np.maximum(n - 1, 1)
    return np.maximum(below, above / others), np.maximum(above, below / others)


def draw_in(below: Floats, above: Floats, variance: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Extremes drawn in until one record at each fits `variance`: the larger deviation first, then both alike."""
    small, large = np.minimum(below, above), np.maximum(below, above)
    others = np.maximum(n - 2, 1)
    too_much = least_variance(below, above, n) > variance
    # the larger alone: (1 + 1/o)·L² − 2·s·L/o + (1 + 1/o)·s² = n·variance
    a = 1 + 1 / others
    b = small / others
    root = np.sqrt(np.maximum(b**2 - a * (a * small**2 - n * variance), 0.0))
    alone = (b + root) / a
    both = np.sqrt(n * variance / 2)
    new_large = np.where(alone >= small, np.minimum(alone, large), both)
    new_small = np.where(alone >= small, small, both)
    new_small = np.minimum(new_small, small)
    below_is_large = below >= above
    return (
        np.where(too_much, np.where(below_is_large, new_large, new_small), below),
        np.where(too_much, np.where(below_is_large, new_small, new_large), above),
    )


def _widen(below: Floats, above: Floats, variance: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Push extremes out until `variance` fits between them, by the least of three ways (bisection on each).

    The smaller deviation first, then both; one alone; the other alone. Whole numbers of records make either the least.
    """
    few = np.flatnonzero(greatest_variance(below, above, n) < variance)
    if len(few) == 0:
        return below, above
    below, above = below.copy(), above.copy()
    b, a, v, m = below[few], above[few], variance[few], n[few]
    enough = 2 * np.sqrt(m * v) + np.abs(a - b)
    least = _least(b, a, v, m, _raised, enough)
    best_b, best_a = _raised(b, a, least)
    for one, room in ((_below_alone, (m - 1) * a - b), (_above_alone, (m - 1) * b - a)):
        most = np.clip(room, 0.0, enough)
        more = _least(b, a, v, m, one, most)
        better = (more < least) & (greatest_variance(*one(b, a, more), m) >= v)
        new_b, new_a = one(b, a, more)
        best_b, best_a = np.where(better, new_b, best_b), np.where(better, new_a, best_a)
        least = np.where(better, more, least)
    below[few], above[few] = best_b, best_a
    return below, above


def _least(b: Floats, a: Floats, v: Floats, n: Ints, way: Way, most: Floats) -> Floats:
    """Spend the least in 0 … `most` on a way so that the variance fits; `most` where nothing does."""
    low, high = np.zeros(len(b)), most
    for _ in range(60):
        middle = (low + high) / 2
        fits = greatest_variance(*way(b, a, middle), n) >= v
        high, low = np.where(fits, middle, high), np.where(fits, low, middle)
    return high


def _raised(below: Floats, above: Floats, more: Floats) -> tuple[Floats, Floats]:
    """Spend `more` on the smaller deviation until they are alike, and what is left on both."""
    gap = above - below
    to_smaller = np.minimum(more, np.abs(gap))
    half = (more - to_smaller) / 2
    return below + half + np.where(gap > 0, to_smaller, 0.0), above + half + np.where(gap < 0, to_smaller, 0.0)


def _below_alone(below: Floats, above: Floats, more: Floats) -> tuple[Floats, Floats]:
    return below + more, above


def _above_alone(below: Floats, above: Floats, more: Floats) -> tuple[Floats, Floats]:
    return below, above + more
