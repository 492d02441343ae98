"""Feature-similarity disagreement: how far the releases that look like a series are from what it really was.

For each original series the releases of its duration class are sorted by feature distance; the disagreement at a
threshold is the mean distance of series over all that are not farther. Algorithm 2 of the source, with its slip mended
(it sorts by *feature* distance). Rows are worked on in blocks: memory grows with the class, not with its square.

Distances: of features √Σ difference² over features that both have; of series √Σ difference² / number of compared values
(positions and variables that both have). Pairs with nothing to compare are left out.

Source
------
Mazzone 2020, §3.3 (equations 3.5 to 3.8), §4.3 (algorithm 2), §5.6 (summaries by inclusion percentage).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sqldeid.arrays import Floats, Ints

BLOCK = 256
"""Original series compared at once."""
TIE = 1e-6
"""Releases whose feature distances differ by no more join at one threshold."""
GRID = 200
"""Most inclusion shares at which summaries are kept."""

SeriesDistances: TypeAlias = Callable[[Ints], Floats]
"""Gives for rows of the originals the (rows, releases) distances; NaN where nothing can be compared."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, minimum and maximum of all curves at each inclusion share; NaN before any curve begins."""

    mean: Floats
    minimum: Floats
    maximum: Floats


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Disagreement of one duration class.

    Attributes
    ----------
    rows
        Which originals were looked at (all, or a sample).
    first
        (rows,) the value at the least threshold that includes any release: the first disagreement.
    auc
        (rows,) Δ-AUC; from the least threshold to the greatest plus the mean feature distance.
    inclusion
        (points,) shares of the class included, 0…1.
    curve, normalised
        Summaries over all rows; normalised by each curve's value when all are included.
    curves
        (some rows, points) single curves, for plots.
    """

    rows: Ints
    first: Floats
    auc: Floats
    inclusion: Floats
    curve: Summary
    normalised: Summary
    curves: Floats


def measure_disagreement(
    original_features: Floats,
    released_features: Floats,
    series_distances: SeriesDistances,
    *,
    rows: Ints | None = None,
    scale: Floats | None = None,
    keep_curves: int = 100,
) -> Disagreement:
    """Disagreement of `rows` of the originals (default all) with all releases of the class.

    Parameters
    ----------
    original_features, released_features
        (persons, features), NaN where a variable is absent; for "before", the same array twice.
    series_distances
        `euclidean(original, released)` or `warped(original, released, band)`.
    rows
        Numbers of originals; a sample where a distance is expensive (DTW).
    scale
        (features,) what features are divided by; none: as they are, as in the source.
    keep_curves
        Of how many rows single curves are kept.
    """
    rows = np.arange(len(original_features)) if rows is None else rows
    divisor = 1.0 if scale is None else scale
    known, released = original_features / divisor, released_features / divisor
    persons = len(released)
    counts = np.unique(np.round(np.geomspace(1, persons, GRID)).astype(np.int64))
    first, auc = np.empty(len(rows)), np.empty(len(rows))
    plain, normal = _Collector(len(counts)), _Collector(len(counts))
    curves = np.full((min(keep_curves, len(rows)), len(counts)), np.nan)
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        block = _curves(feature_distances(known[part], released), series_distances(part), counts)
        first[start : start + len(part)], auc[start : start + len(part)] = block.first, block.auc
        plain.add(block.values)
        normal.add(block.values / np.where(block.final > 0, block.final, np.nan)[:, None])
        room = max(0, min(len(part), len(curves) - start))
        curves[start : start + room] = block.values[:room]
    return Disagreement(rows, first, auc, counts / persons, plain.summary(), normal.summary(), curves)


def feature_distances(known: Floats, released: Floats) -> Floats:
    """(rows, releases) √Σ difference²; ∞ if nothing is common. By direct difference: a matrix product breaks ties."""
    total = np.zeros((len(known), len(released)))
    some = np.zeros(total.shape, dtype=bool)
    for column in range(known.shape[1]):
        difference = known[:, column, None] - released[None, :, column]
        there = ~np.isnan(difference)
        some |= there
        np.add(total, difference * difference, out=total, where=there)
    return np.where(some, np.sqrt(total), np.inf)


def euclidean(original: Floats, released: Floats) -> SeriesDistances:
    """√Σ difference² / number of compared values, by matrix products.

    Parameters
    ----------
    original, released
        (persons, variables, length), NaN where there is no record.
    """
    x, y = (part.reshape(len(part), -1) for part in (original, released))
    there_y = ~np.isnan(y)
    middle = np.where(there_y, y, 0.0).sum(axis=0) / np.maximum(there_y.sum(axis=0), 1)  # less is lost near zero
    y = np.where(there_y, y - middle, 0.0)
    mask_y, square_y = there_y.astype(np.float64).T, (y * y).T

    def distances(rows: Ints) -> Floats:
        there = ~np.isnan(x[rows])
        known = np.where(there, x[rows] - middle, 0.0)
        mask = there.astype(np.float64)
        total = (known * known) @ mask_y + mask @ square_y - 2 * (known @ y.T)
        count = mask @ mask_y
        return np.where(count > 0, np.sqrt(np.maximum(total, 0.0)) / np.maximum(count, 1), np.nan)

    return distances


def warped(original: Floats, released: Floats, band: int) -> SeriesDistances:
    """Dynamic time warping: the same distance along the cheapest alignment that strays at most `band` positions.

    Dear: about `length` · (2 · band + 1) passes over all pairs of a block; use it on a sample of rows.

    Parameters
    ----------
    original, released
        (persons, variables, length) of one length, NaN where there is no record.
    """
    columns = np.ascontiguousarray(np.moveaxis(released, 2, 0))

    def distances(rows: Ints) -> Floats:
        return np.concatenate([_warp(original[[row]], columns, band) for row in rows])

    return distances


def _warp(known: Floats, columns: Floats, band: int) -> Floats:
    """(1, releases) of one original (1, variables, length); `columns` are (length, releases, variables)."""
    length = len(columns)
    infinite = (np.full(columns.shape[1], np.inf), np.zeros(columns.shape[1]))
    before: dict[int, tuple[Floats, Floats]] = {-1: (np.zeros(columns.shape[1]), np.zeros(columns.shape[1]))}
    for i in range(length):
        now: dict[int, tuple[Floats, Floats]] = {}
        for j in range(max(0, i - band), min(length, i + band + 1)):
            cost, count = _cell(known[0, :, i], columns[j])
            ways = (before.get(j - 1, infinite), before.get(j, infinite), now.get(j - 1, infinite))
            total, compared = ways[0]
            for other, other_compared in ways[1:]:
                less = other < total
                total, compared = np.where(less, other, total), np.where(less, other_compared, compared)
            now[j] = total + cost, compared + count
        before = now
    total, compared = before[length - 1]
    return np.where(compared > 0, np.sqrt(total) / np.maximum(compared, 1), np.nan)[None, :]


def _cell(known: Floats, column: Floats) -> tuple[Floats, Floats]:
    difference = column - known
    there = ~np.isnan(difference)
    return (np.where(there, difference, 0.0) ** 2).sum(axis=1), there.sum(axis=1).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Block:
    first: Floats
    auc: Floats
    values: Floats
    final: Floats


def _curves(features: Floats, series: Floats, counts: Ints) -> _Block:
    """First disagreement, Δ-AUC, values at inclusion `counts` and when all are included, of a block of rows."""
    features = np.where(np.isnan(series), np.inf, features)
    order = np.argsort(features, axis=1, kind="stable")
    t = np.take_along_axis(features, order, axis=1)
    able = np.isfinite(t)
    running = np.cumsum(np.where(able, np.take_along_axis(series, order, axis=1), 0.0), axis=1)
    value = running / np.maximum(np.cumsum(able, axis=1), 1)
    n = able.sum(axis=1)
    last = np.maximum(n - 1, 0)
    rows = np.arange(len(t))
    shown = np.where(able, t, 0.0)
    others = np.maximum(n - 1, 1)
    t_max = shown[rows, last] + shown.sum(axis=1) / others
    following = np.concatenate([t[:, 1:], np.full((len(t), 1), np.inf)], axis=1)
    following = np.where(np.isfinite(following), following, t_max[:, None])
    auc = np.where(able, value * np.where(able, following - shown, 0.0), 0.0).sum(axis=1)
    ends = able & (np.concatenate([t[:, 1:], np.full((len(t), 1), np.inf)], axis=1) > t + TIE)
    position = np.arange(t.shape[1])
    latest = np.maximum.accumulate(np.where(ends, position, -1), axis=1)
    at = latest[:, counts - 1]
    values = np.where(at >= 0, np.take_along_axis(value, np.maximum(at, 0), axis=1), np.nan)
    some = n > 0
    first = np.where(some, value[rows, np.argmax(ends, axis=1)], np.nan)
    return _Block(first, np.where(some, auc, np.nan), values, np.where(some, value[rows, last], np.nan))


class _Collector:
    """Mean, minimum and maximum by column over blocks of rows, NaN left out."""

    def __init__(self, points: int) -> None:
        self._sum, self._count = np.zeros(points), np.zeros(points)
        self._low, self._high = np.full(points, np.inf), np.full(points, -np.inf)

    def add(self, values: Floats) -> None:
        there = ~np.isnan(values)
        self._sum += np.where(there, values, 0.0).sum(axis=0)
        self._count += there.sum(axis=0)
        self._low = np.minimum(self._low, np.where(there, values, np.inf).min(axis=0))
        self._high = np.maximum(self._high, np.where(there, values, -np.inf).max(axis=0))

    def summary(self) -> Summary:
        some = self._count > 0
        mean = np.where(some, self._sum / np.maximum(self._count, 1), np.nan)
        return Summary(mean, np.where(some, self._low, np.nan), np.where(some, self._high, np.nan))


def first_disagreement_shares(first: Floats, at: Floats) -> Floats:
    """Share of series, 0…1, whose first disagreement is not larger than each value of `at` (figure 6.6)."""
    known: Floats = np.sort(first[~np.isnan(first)])
    return np.searchsorted(known, at, side="right") / max(len(known), 1)
