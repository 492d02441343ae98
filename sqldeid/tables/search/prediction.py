"""Predict how many rows a node's core fails: it chooses what to check, it never decides.

A Bayesian linear model of the logit of the failing share. Under independent columns the share is a function of the sum
of the columns' marginal entropies at the node's levels; the model starts there and learns one effect per column and one
per column and level, each scaled by that level's entropy (a column at its top has none).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Floats
from sqldeid.tables.model.evaluation import Evaluation, Marginal

Real = npt.NDArray[np.floating]
Levels = npt.NDArray[np.integer]
"""Nodes as rows of a matrix, one column per quasi-identifier."""

_NOISE = 0.15
"""Standard deviation of an observed logit about the model, near the limit."""

_FAR = 0.15
"""What it grows by per unit of distance from the limit: only the neighbourhood of the limit must be met well."""

_CENSORED = 0.3
"""Further deviation of a node without failing rows: it only says that the logit is low."""


class Prediction:
    """Beliefs about the failing rows of nodes, updated by every check.

    Parameters
    ----------
    marginals
        One per quasi-identifier.
    rows
        Rows of the table.
    allowed
        Most rows that may fail.
    """

    def __init__(self, marginals: Sequence[Marginal], rows: int, allowed: int) -> None:
        self.rows = rows
        self.entropies = [_entropies(m, rows) for m in marginals]
        self.limit = _logit(allowed, rows) if allowed else -log(rows + 1)
        self._starts = np.cumsum([0, *(len(h) for h in self.entropies)])
        columns, levels = len(marginals), int(self._starts[-1])
        self._mean = np.zeros(3 + columns + levels)
        self._mean[:2] = -log(rows / 5 + 1), 1.0
        spread = np.concatenate([[3.0, 0.7, 0.05], np.full(columns, 0.3), np.full(levels, 0.25)])
        self._cov = np.diag(spread**2)

    def learn(self, found: Sequence[Evaluation]) -> None:
        """Update by checks, one after the other."""
        features = self.features(np.array([e.node for e in found]))
        for row, evaluation in zip(features, found, strict=True):
            self._observe(row, evaluation.core_failing)

    def _observe(self, row: Floats, failing: int) -> None:
        """One Kalman step; a check without failing rows counts only where more were expected."""
        pull = self._cov @ row
        variance, expected = float(row @ pull), float(row @ self._mean)
        logit = _logit(failing, self.rows)
        noise = _NOISE**2 + (_FAR * (logit - self.limit)) ** 2
        if failing == 0:
            if expected < logit:
                return
            noise = _NOISE**2 + _CENSORED**2
        gain = pull / (max(variance, 0.0) + noise)
        self._mean = self._mean + gain * (logit - expected)
        self._cov = self._cov - np.outer(gain, pull)

    def features(self, nodes: Levels) -> Floats:
        """What the model sees of nodes: one row each."""
        own = np.stack([h[nodes[:, j]] for j, h in enumerate(self.entropies)], axis=1)
        total = own.sum(axis=1)
        each = np.zeros((len(nodes), int(self._starts[-1])))
        for j, start in enumerate(self._starts[:-1]):
            each[np.arange(len(nodes)), start + nodes[:, j]] = own[:, j]
        return np.concatenate([np.ones((len(nodes), 1)), total[:, None], total[:, None] ** 2, own, each], axis=1)

    def at(self, nodes: Levels) -> tuple[Floats, Floats]:
        """Expected logit and its standard deviation, observation noise included, at each node."""
        features = self.features(nodes)
        variance = np.einsum("ij,ij->i", features @ self._cov, features)
        return features @ self._mean, np.sqrt(np.maximum(variance, 0.0) + _NOISE**2)

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        """Plausible weights of the features, one column per draw: to look where the model is unsure as well."""
        root = np.linalg.cholesky(self._cov + 1e-9 * np.eye(len(self._mean)))
        return self._mean[:, None] + root @ random.standard_normal((len(self._mean), count))

    def fails(self, expected: Real, deviation: Real | float) -> Real:
        """Probability that more rows fail than allowed (normal distribution, by a logistic of slope 1.702)."""
        failing: Real = 0.5 + 0.5 * np.tanh(0.851 * (expected - self.limit) / deviation)
        return failing

    def tables(self, weights: Floats | None = None) -> tuple[list[Floats], list[Floats], float, float]:
        """The expected logit as (a, t, p, q): a sum of `a` over columns, plus p·T + q·T² with T the sum of `t`.

        Parameters
        ----------
        weights
            One draw of `draw`; by default the mean.
        """
        mean = self._mean if weights is None else weights
        columns = len(self.entropies)
        effects = [
            h * (mean[3 + j] + mean[3 + columns + start : 3 + columns + start + len(h)])
            for j, (h, start) in enumerate(zip(self.entropies, self._starts[:-1], strict=True))
        ]
        effects[0] = effects[0] + mean[0]
        return effects, self.entropies, float(mean[1]), float(mean[2])


def _entropies(marginal: Marginal, rows: int) -> Floats:
    """Entropy (nats) of a column at each level."""
    shares = [counts[counts > 0] / rows for counts in marginal.rows]
    return np.array([-float((p * np.log(p)).sum()) for p in shares])


def _logit(failing: int, rows: int) -> float:
    return log((failing + 0.5) / (rows - failing + 0.5))
