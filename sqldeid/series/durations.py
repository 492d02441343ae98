"""Common lengths: each series is shortened so that at least k persons share the length of every one. Pure.

`optimal` loses the fewest records, exactly: with lengths in descending order some optimum cuts them into runs of k to
2k − 1 persons, each shortened to its last, because a run of 2k or more splits in two without loss. `source` is
algorithm 3 of Mazzone 2020 with a first-in-first-out queue.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import JobError, UnknownKindError


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """How a length singles people out (Mazzone 2020, §6.1): persons alone with it, and persons in groups below k."""

    alone: int
    below_k: int
    lengths: int


@dataclass(frozen=True, slots=True)
class DurationReport:
    """What common lengths cost, in steps of persons' series (a step with any record or none counts as one).

    `steps_lost` and its mean and standard deviation are per released person; `share_lost` and its own are of a person's
    steps, 0 … 1. `dropped` persons are not released (algorithm 3 only). `weighed` is the share of all steps.
    """

    k: int
    method: str
    persons: int
    dropped: int
    moved: int
    classes: int
    steps_lost: int
    steps_lost_mean: float
    steps_lost_sd: float
    share_lost_mean: float
    share_lost_sd: float
    weighed: float
    before: Uniqueness
    after: Uniqueness
    records_lost: int = 0

    def released_with(self, lengths: int) -> DurationReport:
        """The same, with how many lengths are in the release: one whose people keep no variable is not."""
        return replace(self, classes=lengths, after=replace(self.after, lengths=lengths))


def assign(lengths: Ints, k: int, method: Literal["optimal", "source"]) -> Ints:
    """The released length of each series; 0 where it is not released.

    Parameters
    ----------
    lengths
        (persons,): steps of each series, at least 1.
    k
        The least number of persons per released length.

    Raises
    ------
    JobError
        If there are fewer than k persons.
    """
    if len(lengths) < k:
        raise JobError.at(
            "durations.k",
            f"{k} persons must share each length, and there are {len(lengths)}; lower k or widen the cohort",
        )
    order = np.argsort(-lengths, kind="stable")
    falling = lengths[order]
    released = np.zeros(len(lengths), dtype=np.int64)
    match method:
        case "optimal":
            released[order] = _optimal(falling, k)
        case "source":
            released[order] = _mazzone2020(falling, k)
        case unknown:
            raise UnknownKindError(unknown, "method of common lengths")
    return released


def _optimal(falling: Ints, k: int) -> Ints:
    """Exact dynamic programme over descending lengths: fewest steps lost, then fewest persons shortened.

    cost[i] is the least loss of the first i series in whole runs; the last run is of k … 2k−1 series and is shortened
    to its last. Work: persons × k.
    """
    count = len(falling)
    total = np.concatenate(([0], np.cumsum(falling)))
    edge = np.searchsorted(-falling, -falling, side="left")  # the first of those with the same length
    unit = count + 1
    far = np.iinfo(np.int64).max // 4
    cost, back = np.full(count + 1, far), np.zeros(count + 1, dtype=np.int64)
    cost[0] = 0
    for i in range(k, count + 1):
        first, last = max(0, i - 2 * k + 1), i - k
        starts = np.arange(first, last + 1)
        lost = total[i] - total[starts] - (i - starts) * falling[i - 1]
        moved = np.maximum(edge[i - 1] - starts, 0)
        costs = np.where(cost[starts] >= far, far, cost[starts] + lost * unit + moved)
        best = int(np.argmin(costs))
        cost[i], back[i] = costs[best], starts[best]
    released = np.empty(count, dtype=np.int64)
    i = count
    while i > 0:
        released[back[i] : i] = falling[i - 1]
        i = back[i]
    return released


def _mazzone2020(falling: Ints, k: int) -> Ints:
    """Algorithm 3, first in, first out; who is left over goes back to the own length, and rare lengths are dropped."""
    released = np.zeros(len(falling), dtype=np.int64)
    queue: deque[int] = deque()
    size: dict[int, int] = {}
    at = 0
    while at < len(falling):
        length = int(falling[at])
        end = int(np.searchsorted(-falling, -length, side="right"))
        queue.extend(range(at, end))
        at = end
        if len(queue) < k:
            continue
        while queue and size.get(length, 0) < k:
            released[queue.popleft()] = length
            size[length] = size.get(length, 0) + 1
    for index in queue:
        released[index] = falling[index]
        size[int(falling[index])] = size.get(int(falling[index]), 0) + 1
    rare = np.array([size[int(length)] < k for length in released], dtype=bool)
    released[rare] = 0
    return released


def report(lengths: Ints, released: Ints, k: int, method: str, groups: Ints | None = None) -> DurationReport:
    """What was cut (Mazzone 2020, §6.1).

    Parameters
    ----------
    groups
        (persons,) what is known of each beside the length, such as the class of a linked table; it narrows the search.
    """
    kept = released > 0
    lost = (lengths - released)[kept]
    share = lost / np.maximum(lengths[kept], 1)
    return DurationReport(
        k=k,
        method=method,
        persons=len(lengths),
        dropped=int((~kept).sum()),
        moved=int((lost > 0).sum()),
        classes=len(np.unique(released[kept])),
        steps_lost=int(lost.sum()),
        steps_lost_mean=float(lost.mean()) if len(lost) else 0.0,
        steps_lost_sd=float(lost.std()) if len(lost) else 0.0,
        share_lost_mean=float(share.mean()) if len(lost) else 0.0,
        share_lost_sd=float(share.std()) if len(lost) else 0.0,
        weighed=float((lengths.sum() - released.sum()) / max(int(lengths.sum()), 1)),
        before=uniqueness(lengths, k, groups),
        after=uniqueness(released[kept], k, None if groups is None else groups[kept]),
    )


def uniqueness(lengths: Ints, k: int, groups: Ints | None = None) -> Uniqueness:
    """How many persons a length singles out, among all or in their own group."""
    pairs = np.stack([lengths if groups is None else groups, lengths], axis=1)
    sizes = np.unique(pairs, axis=0, return_counts=True)[1]
    return Uniqueness(int((sizes == 1).sum()), int(sizes[sizes < k].sum()), len(np.unique(lengths)))
