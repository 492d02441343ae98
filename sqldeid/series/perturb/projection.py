"""Meet mean, variance, minimum and maximum: exactly, or by the iterations of Mazzone (2020).

`project`: the records that are the series' own minimum and maximum are pinned to the target's; all others become
clip(c + r·x, minimum, maximum). For a given r the c that meets the mean is found by Newton's method on a function that
is piecewise linear; the r that meets the variance by a bracketing method around it. Where no series with so many
records has all four, mean and variance are met and the extremes are moved as little as they must
(`sqldeid.series.feasible`).

Source
------
Mazzone 2020, §5.5 (`iterate`); `project` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.series.feasible import greatest_shape, greatest_variance, nearest_extremes
from sqldeid.series.perturb.draws import generator

JITTER = 1e-6
"""Standard deviation of what parts equal values, in units of the series' own (a constant series has nothing else)."""
BLOCK = 2048
"""Series worked on at once, so that they stay in the cache; no result depends on it."""


def project(values: Floats, targets: Floats, seed: int | bytes, person: Ints, variable: Ints) -> Floats:
    """Nearest series of the form clip(c + r·x) that has the target features; NaN stays NaN.

    Parameters
    ----------
    values
        (series, length), NaN where there is no record; at least one record a row.
    targets
        (series, 4): mean, variance, minimum, maximum; finite.
    seed, person, variable
        Ties are parted by a jitter drawn for each person and variable.

    Returns
    -------
    (series, length)
        Mean and variance to 1e-6 for two records or more; of one record, the mean alone.
    """
    released = np.full_like(values, np.nan)
    for start in range(0, len(values), BLOCK):
        rows = slice(start, start + BLOCK)
        shape = _standardised(values[rows], seed, person[rows], variable[rows])
        released[rows] = meet(shape, targets[rows])
    return released


def meet(shape: Floats, targets: Floats) -> Floats:
    """Give each standardised row (mean 0, sd 1, no ties, NaN where there is no record) the target features."""
    there = ~np.isnan(shape)
    n = there.sum(axis=1)
    mean, variance = targets[:, 0], targets[:, 1]
    below, above = nearest_extremes(mean - targets[:, 2], targets[:, 3] - mean, variance, np.maximum(n, 2))
    x = np.where(there, shape, 0.0)
    rows = np.arange(len(x))
    lowest = np.argmin(np.where(there, shape, np.inf), axis=1)
    highest = np.argmax(np.where(there, shape, -np.inf), axis=1)
    free = there.copy()
    free[rows, lowest] = free[rows, highest] = False
    deviations = _solve(x, free, below, above, n, variance)
    deviations[rows, lowest], deviations[rows, highest] = -below, above
    full = np.flatnonzero((greatest_variance(below, above, n) <= variance * (1 + 1e-9)) & (n > 2))
    deviations[full] = _at_extremes(shape[full], n[full], below[full], above[full])
    deviations[n == 1] = 0.0
    return np.where(there, deviations + mean[:, None], np.nan)


def _at_extremes(shape: Floats, n: Ints, below: Floats, above: Floats) -> Floats:
    """Deviations of greatest variance: by rank, all records but one at an extreme, that one where the mean wants it."""
    rank = np.argsort(np.argsort(shape, axis=1), axis=1)  # NaN last
    high, between = greatest_shape(below, above, n)
    first_high = (n - high)[:, None]
    low_or_between = np.where(rank == first_high - 1, between[:, None], -below[:, None])
    return np.where(rank >= first_high, above[:, None], low_or_between)


def _standardised(values: Floats, seed: int | bytes, person: Ints, variable: Ints) -> Floats:
    """Rows of mean 0 and sd 1, ties parted by a jitter; a constant row is jitter alone."""
    n = (~np.isnan(values)).sum(axis=1, keepdims=True)
    x = values - _sum(values) / n
    sd = np.sqrt(_sum(x**2) / n)
    x = x / np.where(sd > 0, sd, 1.0)
    for row in range(len(x)):
        x[row] += JITTER * generator(seed, "jitter", int(person[row]), int(variable[row])).standard_normal(x.shape[1])
    x -= _sum(x) / n
    spread = np.sqrt(_sum(x**2) / n)
    return np.asarray(x / np.where(spread > 0, spread, 1.0), dtype=np.float64)


def _sum(values: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(values), 0.0, values).sum(axis=1, keepdims=True), dtype=np.float64)


def _solve(x: Floats, free: Flags, below: Floats, above: Floats, n: Ints, variance: Floats) -> Floats:
    """Deviations clip(c + r·x, −below, above) of the free records so that all records have mean 0 and `variance`.

    First the cheap way: guess which records are clipped, solve for r and c, look which are clipped then, and so on.
    Where that does not settle, bracket r, and solve once more for what lies between the bounds.
    """
    bounds = _Bounds(below, above, below - above, np.maximum(n * variance - below**2 - above**2, 0.0))
    result = np.zeros_like(x)
    live = np.flatnonzero(free.any(axis=1))
    y, settled = _settle(x[live], free[live], bounds.of(live))
    result[live] = y
    live = live[~settled]
    if len(live):
        part = bounds.of(live)
        y = _bracket(x[live], free[live], part, np.sqrt(variance[live]))
        between = free[live] & (y > -part.below[:, None]) & (y < part.above[:, None])
        result[live] = np.clip(_affine(y, between, y, free[live], part), -part.below[:, None], part.above[:, None])
    return np.where(free, result, 0.0)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """By series: the extremes, and the sum and sum of squares that the free records' deviations must have."""

    below: Floats
    above: Floats
    sum: Floats
    square: Floats

    def of(self, rows: Ints) -> _Bounds:
        return _Bounds(self.below[rows], self.above[rows], self.sum[rows], self.square[rows])


def _settle(x: Floats, free: Flags, bounds: _Bounds) -> tuple[Floats, Flags]:
    """Give deviations, and whether the guess which records are clipped was confirmed within a few rounds."""
    result, settled = np.zeros_like(x), np.zeros(len(x), dtype=bool)
    live = np.arange(len(x))
    low, high = np.zeros_like(free), np.zeros_like(free)
    for _ in range(12):
        part = bounds.of(live)
        floor, ceiling = -part.below[:, None], part.above[:, None]
        known = np.where(low, floor, np.where(high, ceiling, 0.0))
        y = _affine(x[live], free[live] & ~low & ~high, known, free[live], part, stretch_all=True)
        new_low, new_high = free[live] & (y <= floor), free[live] & (y >= ceiling)
        same = (new_low == low).all(axis=1) & (new_high == high).all(axis=1)
        result[live[same]] = np.clip(y, floor, ceiling)[same]
        settled[live[same]] = True
        live, low, high = live[~same], new_low[~same], new_high[~same]
        if len(live) == 0:
            break
    return result, settled


def _affine(
    x: Floats, between: Flags, known: Floats, free: Flags, bounds: _Bounds, *, stretch_all: bool = False
) -> Floats:
    """Stretch and shift x so that `between`, with the other free records at `known`, have the sum and square wanted.

    Where nothing between can have them (too little square is left), it is made constant; without a spread, moved.
    """
    fixed = np.where(free & ~between, known, 0.0)
    m = np.maximum(between.sum(axis=1), 1)
    mean = (bounds.sum - fixed.sum(axis=1)) / m
    square = (bounds.square - (fixed * fixed).sum(axis=1)) / m - mean**2
    inner = np.where(between, x, 0.0)
    middle = inner.sum(axis=1) / m
    spread = np.where(between, x - middle[:, None], 0.0)
    own = (spread * spread).sum(axis=1) / m
    r = np.sqrt(np.maximum(square, 0.0) / np.where(own > 0, own, 1.0))
    y = (x - middle[:, None]) * r[:, None] + mean[:, None]
    return y if stretch_all else np.where(between, y, known)


def _bracket(x: Floats, free: Flags, bounds: _Bounds, scale: Floats) -> Floats:
    """Solve for r by a bracketing method on its logarithm, with c inside (`_offset`)."""
    result = np.zeros_like(x)
    live = np.arange(len(x))
    low, high = np.full(len(x), -40.0), np.full(len(x), 50.0)
    low_gap, high_gap = -bounds.square, np.maximum(bounds.square, 1.0)
    c = np.zeros(len(x))
    for step in range(120):
        part, mask = bounds.of(live), free[live]
        weight = np.clip(low_gap[live] / (low_gap[live] - high_gap[live]), 0.05, 0.95) if step % 3 else 0.5
        middle = low[live] + weight * (high[live] - low[live])
        rx = np.where(mask, x[live] * (scale[live] * np.exp2(middle))[:, None], 0.0)
        c[live] = _offset(rx, mask, part, c[live])
        y = np.where(mask, np.clip(rx + c[live, None], -part.below[:, None], part.above[:, None]), 0.0)
        gap = (y * y).sum(axis=1) - part.square
        result[live] = y
        few = gap < 0
        low[live], low_gap[live] = np.where(few, (middle, gap), (low[live], low_gap[live]))
        high[live], high_gap[live] = np.where(few, (high[live], high_gap[live]), (middle, gap))
        done = (np.abs(gap) <= 1e-9 * np.maximum(part.square, 1e-30)) | (high[live] - low[live] < 1e-12)
        live = live[~done]
        if len(live) == 0:
            break
    return result


def _offset(rx: Floats, free: Flags, bounds: _Bounds, start: Floats) -> Floats:
    """Find c with Σ clip(rx + c, −below, above) = sum over the free records: Newton, kept inside a bracket."""
    floor, ceiling = -bounds.below, bounds.above
    low = floor - np.where(free, rx, -np.inf).max(axis=1)
    high = ceiling - np.where(free, rx, np.inf).min(axis=1)
    c = np.clip(start, low, high)
    tolerance = 1e-12 * free.sum(axis=1) * np.maximum(ceiling - floor, 1e-30)
    for _ in range(100):
        moved = rx + c[:, None]
        inside = free & (moved > floor[:, None]) & (moved < ceiling[:, None])
        gap = np.where(free, np.clip(moved, floor[:, None], ceiling[:, None]), 0.0).sum(axis=1) - bounds.sum
        done = np.abs(gap) <= tolerance
        if done.all():
            break
        low, high = np.where(gap < 0, c, low), np.where(gap < 0, high, c)
        slope = inside.sum(axis=1)
        newton = c - gap / np.maximum(slope, 1)
        good = (slope > 0) & (newton > low) & (newton < high)
        c = np.where(done, c, np.where(good, newton, (low + high) / 2))
    return c


def iterate(
    values: Floats, targets: Floats, iterations: int, seed: int | bytes, person: Ints, variable: Ints
) -> Floats:
    """Perturb by Mazzone's iterations: clip, push the extremes, shift to the mean, stretch to the variance.

    The source's "divide by the ratio of the standard deviations" is about the mean; its small Gaussian noise has
    a standard deviation of `JITTER`, drawn for each person and variable.
    """
    released = values.copy()
    for start in range(0, len(values), BLOCK):
        rows = slice(start, start + BLOCK)
        released[rows] = _iterated(values[rows], targets[rows], iterations, seed, person[rows], variable[rows])
    return released


def _iterated(
    values: Floats, targets: Floats, iterations: int, seed: int | bytes, person: Ints, variable: Ints
) -> Floats:
    draws = [generator(seed, "iterate", int(p), int(v)) for p, v in zip(person, variable, strict=True)]
    mean, variance, minimum, maximum = (targets[:, i : i + 1] for i in range(4))
    there = ~np.isnan(values)
    n = there.sum(axis=1, keepdims=True)
    rows = np.arange(len(values))
    x = np.where(there, values, 0.0)
    for _ in range(iterations):
        x = np.clip(x, minimum, maximum)
        x[rows, np.argmin(np.where(there, x, np.inf), axis=1)] = minimum[:, 0]
        x[rows, np.argmax(np.where(there, x, -np.inf), axis=1)] = maximum[:, 0]
        x += JITTER * np.stack([draw.standard_normal(x.shape[1]) for draw in draws])
        x = np.where(there, x, 0.0)
        x = x - x.sum(axis=1, keepdims=True) / n
        x = np.where(there, x, 0.0)
        sd = np.sqrt((x**2).sum(axis=1, keepdims=True) / n)
        x = np.where(there, x * np.sqrt(variance) / np.where(sd > 0, sd, 1.0) + mean, 0.0)
    return np.where(there, x, np.nan)
