"""The protecting option: release what the members of a feature class share, never a series' own shape.

A release that is nearly an affine image of the series it comes from gives its owner away to whoever knows a few raw
points, the order of the values, when the extremes were, or when was measured. Here, for each feature class and
variable:

1. **window**: all members get records from the class's mean first to its mean last position;
2. **values**: one multiset for all members: the mean of their sorted values (quantile by quantile), rounded to the
   public grid of the targets, brought to the class's targets by projection, and rounded to the device's resolution;
3. **order**: in which these values come follows the class's mean standardised series, mixed with noise of the class's
   autocorrelation that is drawn for each member from the secret seed alone.

Notes
-----
*Guarantee*: what is released of a class is a function of the class as a whole and of independent draws. The releases of
its members who have the same variables are therefore exchangeable: whatever an attacker knows, be it all original
series, the right one is no likelier than any other of them. Mean, variance, minimum and maximum are equal for all, to
the last bit.

*Assumes*: the seed is secret; feature classes were formed from what is the same for anyone in them (Mondrian); which
variables a person lacks is the same for at least k persons of the class (NULL mode `null-pattern`), for a variable that
is absent stays absent.

*Does not protect*: what all members have in common (a homogeneous class discloses it); class means from k − 1 members
who pool what they know; that a person is in the data.

Source
------
Ours: microaggregation (Domingo-Ferrer and Mateo-Sanz 2002) of distribution and shape, within the feature classes of
Mazzone 2020, §4.1.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.series.perturb.draws import generator
from sqldeid.series.perturb.projection import meet
from sqldeid.series.perturb.settings import PerturbSettings

LEAST_RECORDS = 3


def share(
    values: Floats,
    targets: Floats,
    settings: PerturbSettings,
    seed: int | bytes,
    variable: Ints,
    feature_class: Ints,
    person: Ints,
    steps: Floats | None = None,
) -> Floats:
    """Release each (feature class, variable) as a whole.

    Parameters
    ----------
    values
        (series, length), NaN where there is no record; at least one record a row; all rows of a class at once.
    targets
        (series, 4); equal for all rows of a class and variable.
    settings
        `noise` and `resolution`.
    steps
        (series,): of the public grid that the members' mean values are rounded to, equal for all rows of a class and
        variable; 0 for none.

    Returns
    -------
    (series, length)
        NaN outside the class's window. Features are met up to the resolution.
    """
    released = np.full_like(values, np.nan)
    resolution = dict(settings.resolution)
    order = np.lexsort((person, variable, feature_class))
    starts = np.flatnonzero(np.diff(feature_class[order], prepend=-1) | np.diff(variable[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        name = int(feature_class[rows[0]]), int(variable[rows[0]])
        draw = generator(seed, "shared", *name)
        first, last = _window(values[rows])
        step = 0.0 if steps is None else float(steps[rows[0]])
        content = _content(values[rows], targets[rows[0]], last - first + 1, resolution.get(name[1]), draw, step)
        released[rows, first : last + 1] = content[_order(values[rows], first, last, settings.noise, draw)]
    return released


def _window(values: Floats) -> tuple[int, int]:
    """Mean first and mean last position of the members, rounded; at least three positions where there are so many."""
    there = ~np.isnan(values)
    length = values.shape[1]
    first = round(float(np.argmax(there, axis=1).mean()))
    last = round(float((length - 1 - np.argmax(there[:, ::-1], axis=1)).mean()))
    last = min(length - 1, max(last, first + LEAST_RECORDS - 1))
    return max(0, min(first, last - LEAST_RECORDS + 1)), last


def _content(
    values: Floats, target: Floats, n: int, resolution: float | None, draw: np.random.Generator, step: float = 0.0
) -> Floats:
    """(n,): the values that every member gets, ascending."""
    at = (np.arange(n) + 0.5) / n
    profile = np.sort(np.mean([_quantiles(row[~np.isnan(row)], at) for row in values], axis=0))
    if step > 0:  # else two releases of one source would give a newcomer's quantiles by difference
        profile = np.round(profile / step) * step
    profile = profile - profile.mean()
    spread = profile.std()
    shape = (profile / spread if spread > 0 else profile) + 1e-6 * np.sort(draw.standard_normal(n))
    shape = (shape - shape.mean()) / (shape.std() or 1.0)
    met = np.sort(meet(shape[None, :], target[None, :])[0])
    return met if resolution is None else np.round(met / resolution) * resolution


def _quantiles(values: Floats, at: Floats) -> Floats:
    """Quantiles of one series at probabilities `at`, linear between its sorted values."""
    ordered = np.sort(values)
    return np.interp(at, (np.arange(len(ordered)) + 0.5) / len(ordered), ordered)


def _order(values: Floats, first: int, last: int, noise: float, draw: np.random.Generator) -> Ints:
    """(members, n): for each member which of the ascending values comes at each position."""
    inside = values[:, first : last + 1]
    shape, autocorrelation = _class_shape(values, first, last)
    random = _autocorrelated(draw.standard_normal(inside.shape), autocorrelation)
    ties = 1e-9 * draw.standard_normal(inside.shape[1])
    mixed = np.sqrt(1 - noise) * (shape + ties)[None, :] + np.sqrt(noise) * random
    return np.asarray(np.argsort(np.argsort(mixed, axis=1, kind="stable"), axis=1, kind="stable"), dtype=np.int64)


def _class_shape(values: Floats, first: int, last: int) -> tuple[Floats, float]:
    """(n,) mean of the members' standardised series, of mean 0 and sd 1; and their mean lag-1 autocorrelation."""
    there = ~np.isnan(values)
    n = there.sum(axis=1, keepdims=True)
    x = np.where(there, values, 0.0)
    x = np.where(there, x - x.sum(axis=1, keepdims=True) / n, 0.0)
    sd = np.sqrt((x**2).sum(axis=1, keepdims=True) / n)
    x = x / np.where(sd > 0, sd, 1.0)
    square = (x**2).sum()
    autocorrelation = float((x[:, 1:] * x[:, :-1]).sum() / square) if square > 0 else 0.0
    shape = x[:, first : last + 1].sum(axis=0) / np.maximum(there[:, first : last + 1].sum(axis=0), 1)
    shape = shape - shape.mean()
    spread = shape.std()
    return shape / (spread if spread > 0 else 1.0), float(np.clip(autocorrelation, 0.0, 0.98))


def _autocorrelated(noise: Floats, autocorrelation: float) -> Floats:
    """Rows of a stationary first-order autoregression of sd 1 from rows of independent standard normal draws."""
    result = noise.copy()
    for position in range(1, noise.shape[1]):
        fresh = np.sqrt(1 - autocorrelation**2) * noise[:, position]
        result[:, position] = autocorrelation * result[:, position - 1] + fresh
    return result
