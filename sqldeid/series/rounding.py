"""The public grid that targets of feature classes are rounded to, so that no target is an exact function of persons.

Two releases of one source, or two overlapping cohorts, give a newcomer's features as n₂·f₂ − n₁·f₁; of rounded targets
that difference is uncertain by half a step for every person of both classes. Steps come from the job or from what a map
of variables says of a device, never from data.

Source
------
soundness.md 18; the rules for steps and the choice among reachable targets of the grid are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.errors import JobError
from sqldeid.series.feasible import greatest_variance, least_variance
from sqldeid.series.variables import MOST, VariableMap

PARTS = 50
"""Of a plausible range there are at least as many steps."""
DIGITS = 3
"""Significant digits of targets of a variable of which neither a step nor a resolution nor a range is stated."""
NEAR = 2
"""Steps around the wish that are looked at for extremes that every member can have."""
SLACK = 1e-9
"""Of a step: what roots of sums may be off."""


def steps_of(variables: VariableMap, given: float | Mapping[str, float] | None, key: str) -> Floats:
    """(variables,): the step of each variable's targets; NaN where nothing is stated, and `DIGITS` digits are kept.

    The variable's `round`, or the job's for it; else the finer of its resolution and the greatest power of ten of which
    its plausible range has `PARTS`; else the job's `round` for all.

    Raises
    ------
    JobError
        If the job names a variable that is not there.
    """
    named = given if isinstance(given, Mapping) else {}
    for name in named:
        if name not in variables.names:
            raise JobError.at(f"{key}.round", f'there is no variable "{name}"')
    rest = float("nan") if given is None or isinstance(given, Mapping) else float(given)
    return np.array([_step(variables, name, named, rest) for name in variables.names], dtype=np.float64)


def _step(variables: VariableMap, name: str, named: Mapping[str, float], rest: float) -> float:
    if name in named:
        return float(named[name])
    if name in variables.round:
        return variables.round[name]
    own = [variables.resolution[name]] if name in variables.resolution else []
    bounds = [(i.low, i.high) for i in variables.items if i.variable == name]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    if low > -MOST and high < MOST and low < high:
        own.append(float(10.0 ** np.floor(np.log10((high - low) / PARTS))))
    return min(own, default=rest)


def digits_step(greatest: Floats) -> Floats:
    """The step with which numbers up to `greatest` keep `DIGITS` significant digits."""
    place = np.floor(np.log10(np.where(greatest > 0, greatest, 1.0)))
    return np.asarray(10.0 ** (place - (DIGITS - 1)), dtype=np.float64)


def snap(values: Floats, step: Floats) -> Floats:
    """The nearest numbers of a grid; a step of 0 leaves a value as it is."""
    there = step > 0
    return np.asarray(np.where(there, times(np.round(values / np.where(there, step, 1.0)), step), values))


def times(cells: Floats, step: Floats) -> Floats:
    """Whole numbers of steps; of a step such as 0.1 as a quotient, so that 3 of them are 0.3."""
    inverse = np.round(1 / np.where(step > 0, step, 1.0))
    tenth = (step > 0) & (step < 1) & (np.abs(inverse * step - 1) < 1e-12)
    return np.asarray(np.where(tenth, cells / np.where(tenth, inverse, 1.0), cells * step), dtype=np.float64)


def round_means(means: Floats, step: Floats) -> Floats:
    """(groups, 4) class means of mean, variance, minimum and maximum on the grid: the variance by its root."""
    root = np.sqrt(np.maximum(means[:, 1:2], 0.0))
    found = snap(np.hstack([means[:, :1], root, means[:, 2:]]), step[:, None])
    found[:, 1] = found[:, 1] ** 2
    return found


def round_reachable(wished: Floats, step: Floats, n: Ints, group: Ints) -> Floats:
    """(groups, 4) the nearest targets on the grid that each member of each group can meet exactly.

    Parameters
    ----------
    wished
        (groups, 4): mean, variance, minimum, maximum that can be met.
    step
        (groups,): 0 leaves a group's targets as they are.
    n, group
        Records and group of each member.

    Mean, minimum and maximum become whole numbers of steps, and so does the standard deviation. With few records there
    may be no whole number that goes with the extremes; then it is the least or greatest that does, which follows from
    the rounded others and the numbers of records alone. Extremes as far below as above the mean are always in reach.
    """
    on = np.flatnonzero(step > 0)
    if len(on) == 0:
        return wished
    unit, mean = step[on], np.round(wished[on, 0] / step[on])
    below, above = mean - wished[on, 2] / unit, wished[on, 3] / unit - mean
    root = np.round(np.sqrt(np.maximum(wished[on, 1], 0.0)) / unit)
    place = np.full(len(step), -1)
    place[on] = np.arange(len(on))
    pairs = np.unique(np.stack([place[group], n], axis=1)[place[group] >= 0], axis=0)
    best, cost = np.zeros((3, len(on))), np.full(len(on), np.inf)
    for b, a in _extremes(below, above):
        low, high = root_range(b, a, pairs)
        least, most = np.ceil(low - SLACK), np.floor(high + SLACK)
        s = np.where(least <= most, np.clip(root, least, most), np.clip(root, low, high))
        price = np.abs(b - below) + np.abs(a - above) + np.abs(s - root)
        better = (low <= high) & (price < cost)
        best[:, better], cost[better] = np.stack([b, a, s])[:, better], price[better]
    found = wished.copy()
    found[on, 0], found[on, 1] = times(mean, unit), times(best[2], unit) ** 2
    found[on, 2], found[on, 3] = times(mean - best[0], unit), times(mean + best[1], unit)
    return found


def _extremes(below: Floats, above: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Whole numbers of steps near a wish; and some that are alike, of which one is always in reach."""
    low, high = np.floor(below), np.floor(above)
    for one, other in product(range(1 - NEAR, NEAR + 1), repeat=2):
        yield np.maximum(low + one, 0.0), np.maximum(high + other, 0.0)
    middle = np.maximum(np.floor((below + above) / 2), 0.0)
    for more in (0.0, 1.0):
        yield middle + more, middle + more


def root_range(below: Floats, above: Floats, pairs: Ints) -> tuple[Floats, Floats]:
    """Least and greatest standard deviation that all members of each group can have; the greatest below it if none.

    Parameters
    ----------
    below, above
        (groups,): deviations of the extremes from the mean.
    pairs
        (pairs, 2): group and number of records, each combination once.
    """
    at, n = pairs[:, 0], pairs[:, 1]
    least, room = np.zeros(len(below)), np.full(len(below), np.inf)
    np.maximum.at(least, at, least_variance(below[at], above[at], n))
    np.minimum.at(room, at, greatest_variance(below[at], above[at], n))
    fewest = np.full(len(below), np.iinfo(np.int64).max)
    np.minimum.at(fewest, at, n)
    balanced = (above <= (fewest - 1) * below) & (below <= (fewest - 1) * above)
    low, high = np.sqrt(np.maximum(least, 0.0)), np.sqrt(np.maximum(room, 0.0))
    alike = np.abs(high - low) <= SLACK * np.maximum(low, 1.0)
    return low, np.where(balanced, np.where(alike, low, high), -1.0)
