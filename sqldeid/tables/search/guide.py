"""Choose the next nodes to check: those whose answer is expected to close most of what is open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sqldeid.tables.lattice import Node
from sqldeid.tables.search.prediction import Floats, Levels, Prediction
from sqldeid.tables.search.region import Flags, Region, outer_sum

Single = npt.NDArray[np.float32]
Box = tuple[slice, ...]

_CANDIDATES = 400
"""Nodes looked at closely in a round."""

_SAMPLE = 2000
"""Open nodes on which overlaps between the candidates are judged."""

_DEVIATION = 0.35
"""Deviation of predicted logits, where a round looks at every node at once."""

_WORTH = 0.3
"""Open nodes that a further check of the statement must be expected to close."""

_BINS = 1024
"""Steps in which a round counts open nodes by their bound."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Nodes that may be worth a check, with what is expected of each (arrays of one entry per node)."""

    nodes: Levels
    fails: Floats
    loss: Floats


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
        size = min(_CANDIDATES, gain.size)
        flat = np.argpartition(gain.ravel(), gain.size - size)[-size:]
        flat = flat[gain.ravel()[flat] > 0]
        nodes = np.stack(np.unravel_index(flat, gain.shape), axis=1) + corner
        chosen = self._spread(self._judge(nodes), flags, most)
        return [tuple(int(x) for x in node) for node in chosen]

    def _gain(self, flags: Flags, box: Box) -> Single:
        """Expected number of open nodes that a check closes, for every node of the box; 0 where its answer is known."""
        expected = self._expected(box)
        fails = np.asarray(self.prediction.fails(expected, _DEVIATION), dtype=np.float32)
        count = flags.astype(np.int32)
        for axis in range(count.ndim):
            np.cumsum(count, axis=axis, out=count)
        gain: Single = fails * count
        gain += (1 - fails) * self._closed_by_passing(flags, box, expected)
        gain *= self.region.unknown[box]
        return gain

    def _expected(self, box: Box) -> Floats:
        """Predicted logit of the failing share, for every node of the box."""
        effects, entropies, slope, bend = self.prediction.tables()
        total = outer_sum([np.asarray(h[s], dtype=np.float32) for h, s in zip(entropies, box, strict=True)])
        expected = outer_sum([np.asarray(e[s], dtype=np.float32) for e, s in zip(effects, box, strict=True)])
        expected += total * (np.float32(slope) + np.float32(bend) * total)
        return expected

    def _closed_by_passing(self, flags: Flags, box: Box, expected: Floats) -> npt.NDArray[np.integer]:
        """Open nodes that cannot win any more if a node passes with the loss expected of it."""
        if self.region.problem.loss.parts is None:
            count = flags.astype(np.int32)
            for axis in range(count.ndim):
                count = np.flip(np.cumsum(np.flip(count, axis), axis=axis, dtype=np.int32), axis)
            return count
        least = self.region.least[box]
        bounds = least[flags]
        low = bounds.min()
        step = _BINS / max(bounds.max() - low, 1e-9)
        histogram = np.bincount(((bounds - low) * step).astype(np.int64), minlength=_BINS + 2)
        above = np.concatenate([np.cumsum(histogram[::-1])[::-1][1:], [0]]).astype(np.int32)
        losses = self._losses(least, expected)
        losses -= low
        losses *= step
        np.clip(losses, 0, _BINS + 1, out=losses)
        return np.maximum(above[losses.astype(np.int16)], flags)

    def _losses(self, least: Floats, expected: Floats) -> Floats:
        """Loss expected of nodes that pass: their bound and what suppression is expected to add."""
        problem = self.region.problem
        if not problem.loss.suppressed_row:
            return least.copy()
        failing = np.minimum(problem.rows * (0.5 + 0.5 * np.tanh(expected / 2)), problem.allowed)
        losses: Floats = least + failing * (problem.loss.suppressed_row - least / problem.rows)
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
        gains = closes @ left
        chosen: list[int] = []
        while len(chosen) < most:
            best = int(np.argmax(gains))
            if chosen and gains[best] * share < _WORTH:
                break
            gains[best] = closes[best] @ left  # gains only fall: the first that stays on top is the best
            if gains[best] < gains.max():
                continue
            chosen.append(best)
            left *= 1 - closes[best]
            closes[best] = 0
            gains[best] = 0
        return candidates.nodes[chosen]

    def _closes(self, candidates: _Candidates, sample: npt.NDArray[np.int64]) -> Single:
        """Probability that checking a candidate (row) closes an open node (column)."""
        region = self.region
        opens = np.array(np.unravel_index(sample, region.shape), dtype=np.int16)
        nodes = np.ascontiguousarray(candidates.nodes.T, dtype=np.int16)
        under = _compare(np.less_equal, opens, nodes)
        if region.problem.loss.parts is None:
            over = _compare(np.greater_equal, opens, nodes)
        else:
            over = region.least.ravel()[sample][None, :] > candidates.loss[:, None]
        fails = candidates.fails[:, None].astype(np.float32)
        closes: Single = under * fails
        closes += over * (1 - fails)
        itself = np.ravel_multi_index(tuple(candidates.nodes.T), region.shape)[:, None] == sample[None, :]
        closes[itself] = 1
        return closes


def _compare(holds: np.ufunc, opens: npt.NDArray[np.int16], nodes: npt.NDArray[np.int16]) -> Flags:
    """Whether the relation holds on every axis between an open node (column) and a candidate (row)."""
    flags = np.ones((nodes.shape[1], opens.shape[1]), dtype=np.bool_)
    for levels, own in zip(opens, nodes, strict=True):
        flags &= holds(levels[None, :], own[:, None])
    return flags


def _hull(flags: Flags) -> Box:
    """The smallest box of the lattice around the open nodes: nodes outside it close no more than some inside."""
    box = []
    for axis in range(flags.ndim):
        levels = np.flatnonzero(flags.any(axis=tuple(a for a in range(flags.ndim) if a != axis)))
        box.append(slice(int(levels[0]), int(levels[-1]) + 1))
    return tuple(box)
