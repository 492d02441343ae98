"""Choose the next nodes to check: those whose answer is expected to close most of what is open."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.prediction import Levels, Prediction, Real
from sqldeid.tables.search.region import Region, outer_sum

Single = npt.NDArray[np.float32]
Words = npt.NDArray[np.unsignedinteger[Any]]
Box = tuple[slice, ...]

_CANDIDATES = (400, 2000)
"""Nodes looked at closely in a round, at least and at most; a five-hundredth of the lattice between."""

_SAMPLE = 3000
"""Open nodes on which overlaps between the candidates are judged."""

_DEVIATION = 0.35
"""Deviation of predicted logits, where a round looks at every node at once."""

_WORTH = 0.3
"""Open nodes that a further check of the statement must be expected to close."""

_LARGE = 200_000
"""Nodes of a lattice from which a round costs more than the checks that a smaller statement would spare."""

_FALL = (0.3, 0.05)
"""Share of the first check's closing that a further check must be expected to reach, in small and large lattices."""

_HARDLY = 0.001
"""The same share where each statement asks as many as it may: a node expected to close less is not worth its part."""

_SORTED = 8192
"""Entries that are sorted at most to find the candidates."""

_TAIL = 128
"""Nodes of the last axes that are summed by one matrix product."""

_BLOCK = 24
"""Candidates whose gain is brought up to date at a time."""

_BINS = 1024
"""Steps in which a round counts open nodes by their bound."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Nodes that may be worth a check, with what is expected of each (arrays of one entry per node)."""

    nodes: Levels
    fails: Real
    loss: Real


class Guide:
    """Expected closing of checks, from a prediction of failing rows.

    Parameters
    ----------
    region
        What is known of the lattice.
    prediction
        Beliefs about failing rows.
    """

    def __init__(self, region: Region, prediction: Prediction) -> None:
        self.region, self.prediction = region, prediction
        self._random = np.random.default_rng(20160427)

    def choose(self, flags: Flags, most: int) -> list[Node]:
        """Up to `most` nodes for one statement, by greatest expected closing, overlaps within it discounted.

        Parameters
        ----------
        flags
            The open nodes, at least one.
        most
            Size of the statement.
        """
        box = _hull(flags)
        gain = self._gain(flags[box], box)
        corner = np.array([s.start for s in box])
        fewest, most_candidates = _CANDIDATES
        flat = _greatest(gain.ravel(), min(most_candidates, max(fewest, flags.size // 500)))
        nodes = np.stack(np.unravel_index(flat, gain.shape), axis=1) + corner
        chosen = self._spread(self._judge(nodes), flags, most)
        return [tuple(int(x) for x in node) for node in chosen]

    def _gain(self, flags: Flags, box: Box) -> Single:
        """Expected number of open nodes that a check closes, for every node of the box; 0 where its answer is known."""
        expected = self._expected(box)
        fails = np.asarray(self.prediction.fails(expected, _DEVIATION), dtype=np.float32)
        gain: Single = fails * _count(flags, upwards=False)
        gain += (1 - fails) * self._closed_by_passing(flags, box, expected)
        gain *= self.region.unknown[box]
        return gain

    def _expected(self, box: Box) -> Single:
        """Predicted logit of the failing share, for every node of the box."""
        effects, entropies, slope, bend = self.prediction.tables()
        total = outer_sum([h[s].astype(np.float32) for h, s in zip(entropies, box, strict=True)])
        expected = outer_sum([e[s].astype(np.float32) for e, s in zip(effects, box, strict=True)])
        expected += total * (np.float32(slope) + np.float32(bend) * total)
        return expected

    def _closed_by_passing(self, flags: Flags, box: Box, expected: Single) -> Single:
        """Open nodes that cannot win any more if a node passes with the loss expected of it."""
        if self.region.problem.loss.parts is None:
            return _count(flags, upwards=True)
        least = np.asarray(self.region.least[box], dtype=np.float32)
        bounds = least[flags]
        low = bounds.min()
        step = _BINS / max(bounds.max() - low, 1e-9)
        histogram = np.bincount(((bounds - low) * step).astype(np.int64), minlength=_BINS + 2)
        above = np.concatenate([np.cumsum(histogram[::-1])[::-1][1:], [0]]).astype(np.float32)
        losses = self._losses(least, expected)
        losses -= low
        losses *= step
        np.clip(losses, 0, _BINS + 1, out=losses)
        closed: Single = np.maximum(above[losses.astype(np.int16)], flags)
        return closed

    def _losses(self, least: Real, expected: Real) -> Real:
        """Loss expected of nodes that pass: their bound and what suppression is expected to add."""
        problem = self.region.problem
        if not problem.loss.suppressed_row:
            return least.copy()
        failing = np.minimum(problem.rows * (0.5 + 0.5 * np.tanh(expected / 2)), problem.allowed)
        losses: Real = least + failing * (problem.loss.suppressed_row - least / problem.rows)
        return losses

    def _judge(self, nodes: Levels) -> _Candidates:
        expected, deviation = self.prediction.at(nodes)
        least = self.region.least[tuple(nodes.T)]
        return _Candidates(nodes, self.prediction.fails(expected, deviation), self._losses(least, expected))

    def _spread(self, candidates: _Candidates, flags: Flags, most: int) -> Levels:
        """Pick candidates one by one, each time counting only what the ones before probably leave open."""
        sample = np.flatnonzero(flags)
        share = max(1.0, len(sample) / _SAMPLE)
        if len(sample) > _SAMPLE:
            sample = np.sort(self._random.choice(sample, _SAMPLE, replace=False))
        closes = self._closes(candidates, sample)
        left = np.ones(len(sample), dtype=np.float32)
        gains = closes.sum(axis=1)
        chosen: list[int] = []
        first, worth, fall = 0.0, _WORTH, _FALL[flags.size > _LARGE]
        if self.region.problem.full_statements:
            worth, fall = 0.0, _HARDLY
        while len(chosen) < most:
            best = _refresh(gains, closes, left)
            first = max(first, float(gains[best]))
            if chosen and (gains[best] <= 0 or gains[best] < max(worth / share, fall * first)):
                break
            chosen.append(best)
            left *= 1 - closes[best]
            closes[best] = 0
            gains[best] = 0
        return candidates.nodes[chosen]

    def _closes(self, candidates: _Candidates, sample: Ints) -> Single:
        """Probability that checking a candidate (row) closes an open node (column)."""
        region = self.region
        opens = _steps(np.stack(np.unravel_index(sample, region.shape), axis=1), region.shape)
        nodes = _steps(candidates.nodes, region.shape)
        under = _within(opens, nodes)
        if region.problem.loss.parts is None:
            over = _within(~opens, ~nodes)
        else:
            over = region.least.ravel()[sample][None, :] > candidates.loss[:, None]
        fails = candidates.fails[:, None].astype(np.float32)
        closes: Single = under * fails
        closes += over * (1 - fails)
        own = np.ravel_multi_index(tuple(candidates.nodes.T), region.shape)
        place = np.minimum(np.searchsorted(sample, own), len(sample) - 1)
        itself = np.flatnonzero(sample[place] == own)
        closes[itself, place[itself]] = 1
        return closes


def _greatest(gain: Single, most: int) -> Ints:
    """Where about `most` of the greatest positive entries are; on long arrays above a threshold taken from a sample."""
    flat = np.flatnonzero(gain)
    if len(flat) > _SORTED:
        sample = gain[flat[:: len(flat) // _SORTED]]
        rank = max(1, 2 * most * len(sample) // len(flat))
        flat = flat[gain[flat] >= np.partition(sample, -rank)[-rank]]
    if len(flat) <= most:
        return flat
    return flat[np.argpartition(gain[flat], -most)[-most:]]


def _count(flags: Flags, *, upwards: bool) -> Single:
    """For every node of the box, flagged nodes below it (above it), itself included: sums along every axis.

    The last axes are summed together, by one matrix product; the others a level at a time.
    """
    split, tail = flags.ndim - 1, flags.shape[-1]
    while split > 0 and tail * flags.shape[split - 1] <= _TAIL:
        split -= 1
        tail *= flags.shape[split]
    order = np.ones((1, 1), dtype=np.float32)
    for height in flags.shape[split:]:
        order = np.kron(order, np.triu(np.ones((height, height), dtype=np.float32)))
    count: Single = flags.reshape(-1, tail).astype(np.float32) @ (order.T if upwards else order)
    for axis in range(split):
        levels = count.reshape(-1, flags.shape[axis], prod(flags.shape[axis + 1 :]))
        for x in range(1, flags.shape[axis]):
            if upwards:
                levels[:, -1 - x] += levels[:, -x]
            else:
                levels[:, x] += levels[:, x - 1]
    return count.reshape(flags.shape)


def _refresh(gains: Single, closes: Single, left: Single) -> int:
    """The candidate that closes most of what is left; gains only fall, so only the highest are brought up to date."""
    block = min(_BLOCK, len(gains))
    while True:
        top = np.argpartition(gains, -block)[-block:]
        gains[top] = closes[top] @ left
        best = int(top[np.argmax(gains[top])])
        if gains[best] >= gains.max():
            return best


def _steps(nodes: Levels, shape: tuple[int, ...]) -> Words:
    """The steps up that each node has taken, a bit for every step of every axis (nodes × words).

    A node is below another, or it, exactly if it has taken no step that the other has not: one comparison for all axes.
    """
    axes = [nodes[:, i, None] > np.arange(height - 1) for i, height in enumerate(shape)]
    width = 4 if sum(shape) - len(shape) <= 32 else 8
    taken = np.packbits(np.concatenate(axes, axis=1), axis=1)
    padded = np.pad(taken, ((0, 0), (0, -taken.shape[1] % width)))
    words: Words = padded.view(np.uint32 if width == 4 else np.uint64)
    return words


def _within(opens: Words, nodes: Words) -> Flags:
    """Whether an open node (column) has taken no step that a candidate (row) has not."""
    flags = np.ones((len(nodes), len(opens)), dtype=np.bool_)
    for taken, own in zip(opens.T, nodes.T, strict=True):
        flags &= (taken[None, :] & ~own[:, None]) == 0
    return flags


def _hull(flags: Flags) -> Box:
    """The smallest box of the lattice around the open nodes: nodes outside it close no more than some inside."""
    box, rest = [], flags
    for height in flags.shape:  # an axis that is done is gone from what the next ones look through
        levels = np.flatnonzero(rest.reshape(height, -1).any(axis=1))
        box.append(slice(int(levels[0]), int(levels[-1]) + 1))
        rest = np.asarray(rest.any(axis=0))
    return tuple(box)
