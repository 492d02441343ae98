"""Set the features that all series of a class get: the class means, or the nearest that each of the series can have.

Class means of variances are often out of reach: what a series can have of mean, variance, minimum and maximum at once
is not convex (two series 0, 0, 20, 20 and 10, 10, 10, 10 have the mean features 10, 50, 5, 15; with those extremes no
variance exceeds 25). With standard deviations it nearly is; what then remains infeasible is moved here to what is not.

Source
------
Mazzone 2020, §4.1 (targets) and §5.5 (features); `reachable` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.series.feasible import draw_in, greatest_variance, least_variance
from sqldeid.series.rounding import digits_step, round_means, round_reachable

TargetMode: TypeAlias = Literal["reachable", "source"]
LEAST_RECORDS = 3
"""Two records leave no choice once mean and variance are given; one leaves none at all."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of series: one entry a person and variable that has at least one record, in any order.

    `n` counts records (BIGINT), `variance` is the population variance. All arrays have the same length.
    """

    person_number: Ints
    variable_number: Ints
    n: Ints
    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats


@dataclass(frozen=True, slots=True)
class Targets:
    """What `make_targets` gives; row i belongs to row i of the features.

    Attributes
    ----------
    values
        (rows, 4): mean, variance, minimum, maximum to be met. NaN where dropped.
    class_mean
        (rows, 4): the class means of the same four, as the source's targets are; NaN where dropped.
    dropped
        (rows,): the person's variable is released as NULL.
    step
        (rows,): of the grid that `values` lie on; 0 where they are not rounded.
    """

    values: Floats
    class_mean: Floats
    dropped: Flags
    step: Floats


def make_targets(
    features: Features,
    feature_class: Ints,
    mode: TargetMode = "reachable",
    *,
    least_members: int = 1,
    steps: Floats | None = None,
) -> Targets:
    """Targets of every series from the members of its feature class that have the variable.

    Parameters
    ----------
    features
        One entry a person and variable.
    feature_class
        Entry i is the feature class of the person of row i; numbers distinct over all duration classes.
    mode
        `source`: class means of mean, variance, minimum and maximum. `reachable`: the variance is the squared mean
        standard deviation; members with fewer than 3 records lose the variable; extremes are drawn towards the mean,
        or the variance is lowered, until every member can meet them exactly.
    least_members
        A target of fewer members than this (k) is not made: all of them lose the variable. Dropping here may thin a
        class out, so with `reachable` features of fewer than 3 records are better made NULL before Mondrian.
    steps
        (rows,) the step of the public grid that targets are rounded to; NaN for three significant digits, and 0, the
        default, for none.

    Notes
    -----
    *Guarantee*: every target is that of at least `least_members` persons, and lies on the grid. *Does not protect*:
    against k − 1 members who pool what they know (a mean can be solved for, as far as the grid is fine), nor a class
    whose members are all alike.

    Source
    ------
    Mazzone 2020, §4.1.
    """
    dropped = (features.n < LEAST_RECORDS) if mode == "reachable" else np.zeros(len(features.n), dtype=bool)
    group = _groups(feature_class, features.variable_number)
    members = np.bincount(group[~dropped], minlength=group.max(initial=-1) + 1)
    dropped = dropped | (members[group] < max(least_members, 1))
    kept = np.flatnonzero(~dropped)
    names, inverse = np.unique(group[kept], return_inverse=True)
    size = np.bincount(inverse, minlength=len(names))
    stacked = np.stack([features.mean, features.variance, features.minimum, features.maximum], axis=1)[kept]
    means = _group_means(stacked, inverse, size)
    chosen = means.copy()
    if mode == "reachable" and len(kept):
        sd = _group_means(np.sqrt(np.maximum(stacked[:, 1:2], 0.0)), inverse, size)[:, 0]
        chosen = _reachable(means, sd, features.n[kept], inverse)
    step = np.zeros(len(names))
    if steps is not None:
        step[inverse] = steps[kept]
        chosen, step = _rounded(chosen, step, features.n[kept], inverse, mode)
    values, class_mean = (np.full((len(features.n), 4), np.nan) for _ in range(2))
    values[kept], class_mean[kept] = chosen[inverse], means[inverse]
    rounded = np.zeros(len(features.n))
    rounded[kept] = step[inverse] if len(kept) else 0.0
    return Targets(values, class_mean, dropped, rounded)


def _rounded(chosen: Floats, step: Floats, n: Ints, group: Ints, mode: TargetMode) -> tuple[Floats, Floats]:
    """Targets on their grids, and the step of each group: where none is stated, that of three significant digits."""
    step = np.where(np.isnan(step), digits_step(np.abs(chosen[:, [0, 2, 3]]).max(axis=1, initial=0.0)), step)
    rounded = round_reachable(chosen, step, n, group) if mode == "reachable" else round_means(chosen, step)
    return rounded, step


def _groups(feature_class: Ints, variable_number: Ints) -> Ints:
    """A dense number for each (feature class, variable)."""
    pairs = np.stack([feature_class, variable_number], axis=1)
    return np.asarray(np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def _group_means(values: Floats, group: Ints, size: Ints) -> Floats:
    """Means by group; summed in the order of the values, so that the order of the rows changes no bit."""
    result = np.empty((len(size), values.shape[1]))
    for column in range(values.shape[1]):
        order = np.lexsort((values[:, column], group))
        sums = np.bincount(group[order], weights=values[order, column], minlength=len(size))
        result[:, column] = sums / np.maximum(size, 1)
    return result


def _reachable(means: Floats, sd: Floats, n: Ints, group: Ints) -> Floats:
    """(groups, 4): extremes drawn in, or the variance lowered, until each member of each group can meet all four."""
    mean = means[:, 0]
    below, above = np.maximum(mean - means[:, 2], 0.0), np.maximum(means[:, 3] - mean, 0.0)
    variance = sd**2
    fewest = np.full(len(mean), np.iinfo(np.int64).max)
    np.minimum.at(fewest, group, n)
    for _ in range(50):
        below, above = np.minimum(below, (fewest - 1) * above), np.minimum(above, (fewest - 1) * below)
        room = np.full(len(mean), np.inf)
        np.minimum.at(room, group, greatest_variance(below[group], above[group], n))
        variance = np.minimum(variance, room)
        if not (least_variance(below, above, fewest) > variance * (1 + 1e-12)).any():
            break
        below, above = draw_in(below, above, variance, fewest)
    else:  # never seen: alike on both sides, which members of any number of records can meet
        below = above = np.sqrt(fewest * variance / 2)
    return np.stack([mean, variance, mean - below, mean + above], axis=1)
