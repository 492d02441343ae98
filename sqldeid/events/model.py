"""The ensemble as the generator reads it: rows of entries in arrays. Pure.

A weighted mean of models is drawn by drawing a model by its weight, and then from it. Weights are one divided by the
support of the model, over the models that have the row.

Source: Shaked & Rokach 2016, §4; events.md, *Pipeline*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation, in hours or parts."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class Days:
    """Days since 1970 on which objects start, and how many."""

    day: Ints
    objects: Ints


@dataclass(frozen=True, slots=True)
class Chain:
    """Entries (targets with counts) in rows (level, cluster, value, origin), rows in the order of their keys.

    Parameters
    ----------
    shape, low
        How a row's numbers make its key: extents, and least numbers, of level, cluster, value and origin.
    keys
        Of the rows, ascending.
    first
        The first entry of each row, and the number of entries at the end.
    ends
        Running sum of counts up to and including each entry.
    support
        Of each row: total count of its model (level, cluster, value).
    """

    shape: tuple[int, int, int, int]
    low: tuple[int, int, int, int]
    keys: Ints
    first: Ints
    ends: Ints
    support: Floats
    target: npt.NDArray[np.int32]
    mean: npt.NDArray[np.float32]
    sd: npt.NDArray[np.float32]

    def rows(self, level: int, cluster: Ints | int, value: Ints | int, origin: Ints | int) -> Ints:
        """Row of each request, −1 where the model has none."""
        if not len(self.keys):
            return np.full(np.broadcast(cluster, value, origin).shape, -1, dtype=np.int64)
        inside: Flags | bool = True
        key: Ints | int = level - self.low[0]
        if not 0 <= key < self.shape[0]:
            return np.full(np.broadcast(cluster, value, origin).shape, -1, dtype=np.int64)
        for number, low, extent in zip((cluster, value, origin), self.low[1:], self.shape[1:], strict=True):
            shifted = np.asarray(number, dtype=np.int64) - low
            inside = inside & (shifted >= 0) & (shifted < extent)
            key = key * extent + shifted
        found: Ints = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(inside & (self.keys[found] == key), found, -1)

    def draw(self, rng: np.random.Generator, rows: Sequence[Ints]) -> Ints:
        """One entry for each request, −1 where no model has its row.

        Parameters
        ----------
        rows
            For each model of the ensemble, the row of each request, from `rows`.
        """
        if not len(self.keys):
            return np.full(rows[0].shape, -1, dtype=np.int64)
        weights = np.stack([np.where(r >= 0, 1.0 / self.support[r], 0.0) for r in rows])
        steps = np.cumsum(weights, axis=0)
        chance = rng.random(steps.shape[1]) * steps[-1]
        model = np.minimum((steps <= chance).sum(axis=0), len(rows) - 1)
        row = np.take_along_axis(np.stack(rows), model[None, :], axis=0)[0]
        there = steps[-1] > 0
        row = np.where(there, row, 0)
        below = np.where(self.first[row] > 0, self.ends[self.first[row] - 1], 0)
        total = self.ends[self.first[row + 1] - 1] - below
        point = below + (rng.random(len(row)) * total).astype(np.int64)
        return np.where(there, np.searchsorted(self.ends, point, side="right"), -1)


def make_chain(
    level: Ints, cluster: Ints, value: Ints, origin: Ints, target: Ints, n: Ints, mean: Floats, sd: Floats
) -> Chain:
    """A chain from entries in the order of level, cluster, value, origin."""
    parts = (level, cluster, value, origin)
    low = tuple(int(p.min()) if len(p) else 0 for p in parts)
    shape = tuple(int(p.max()) - least + 1 if len(p) else 1 for p, least in zip(parts, low, strict=True))
    key = np.zeros(len(level), dtype=np.int64)
    for part, least, extent in zip(parts, low, shape, strict=True):
        key = key * extent + (part - least)
    keys, first = np.unique(key, return_index=True)
    ends = np.cumsum(n)
    model = keys // shape[3]
    _, place = np.unique(model, return_inverse=True)
    sizes = np.diff(np.concatenate([[0], ends])) if len(ends) else ends
    totals = np.add.reduceat(sizes, first) if len(first) else sizes
    support = np.bincount(place, weights=totals).astype(np.float64)[place] if len(keys) else np.zeros(0)
    return Chain(
        shape=(shape[0], shape[1], shape[2], shape[3]),
        low=(low[0], low[1], low[2], low[3]),
        keys=keys,
        first=np.concatenate([first, [len(key)]]).astype(np.int64),
        ends=ends.astype(np.int64),
        support=support,
        target=target.astype(np.int32),
        mean=mean.astype(np.float32),
        sd=sd.astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class Model:
    """All chains of a source, as far as its protection lets them be used.

    Parameters
    ----------
    start, finish
        Numbers of START and END among the states.
    states
        Chain of states; levels 0 all, 1 cluster, 2f factor f, 2f + 1 both.
    clusters
        Chain of clusters; levels 0 and 2f; START is −1, END −2.
    hours
        Hours of the day at which parts start.
    values
        Of factors that hold for a whole part: their values.
    state_pairs, cluster_pairs
        Where to go when no step is left.
    steps
        Spread of times between states (``step``) and parts (``jump``), of parts (``part``), their number (``parts``).
    factors, part_factors
        What the chains of states and of clusters depend on, with their numbers.
    dated
        Whether the release shows days alone: parts are then told from each other by days, too.
    most_us
        No step within a part is longer.
    events_most
        No object that is made has more events.
    """

    timed: bool
    dated: bool
    by_duration: bool
    start: int
    finish: int
    states: Chain
    clusters: Chain
    hours: Chain | None
    values: Mapping[str, Chain]
    state_pairs: Chain
    cluster_pairs: Chain
    days: Days
    steps: Mapping[str, Spread]
    factors: tuple[tuple[str, int], ...]
    part_factors: tuple[tuple[str, int], ...]
    most_us: int | None
    events_most: int
