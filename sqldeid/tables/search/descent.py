"""A good node soon, in lattices of any size: walk down on drawn models of the failing rows, check where the walks end.

Each walk believes one draw from the prediction's posterior and moves to the neighbour with the least loss expected
under it until there is none better (Thompson sampling); the checks correct the model, the next walks start from the
best nodes.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from sqldeid.tables.evaluation import admissible
from sqldeid.tables.lattice import Node
from sqldeid.tables.search.base import Problem
from sqldeid.tables.search.prediction import Floats, Levels, Prediction

_WALKS = 20
"""Walks, and so nodes, in a statement."""

_STARTS = 5
"""Best nodes known that walks start from."""

_STEPS = 60
"""Most steps of a walk."""

_PAIRS = 700
"""Most moves of two columns that a walk looks at in a step."""

_PATIENCE = 25
"""Statements without a better node after which the descent ends."""

_SHARE = 0.75
"""Share of a time or check limit that it may take; the rest proves a bound."""


def descend(problem: Problem, prediction: Prediction) -> None:
    """Improve the best node so far until it seems exhausted; what it learns stays in `problem.state`."""
    random = np.random.default_rng(20160427)
    walks = _Walks(problem, prediction)
    idle = 0
    while idle < _PATIENCE and not problem.spent(_SHARE):
        before = problem.state.key
        nodes = walks.end(_starts(problem), random)[: problem.room(_WALKS)]
        if not nodes:
            idle += 1
            continue
        prediction.learn(problem.ask(nodes))
        idle = idle + 1 if before == problem.state.key else 0


def _starts(problem: Problem) -> list[Node]:
    """The best admissible nodes checked so far, or the top."""
    passing = [e for e in problem.state.checked.values() if admissible(e, problem.allowed)]
    best = sorted(passing, key=problem.key)[:_STARTS]
    return [e.node for e in best] or [problem.lattice.top]


class _Walks:
    """Walks over nodes, all of a round in step."""

    def __init__(self, problem: Problem, prediction: Prediction) -> None:
        self.problem, self.prediction = problem, prediction
        loss, heights = problem.loss, problem.lattice.heights
        scale = 1 / max(problem.worst(), 1)
        parts = loss.parts or [-problem.rows * h for h in prediction.entropies]
        self.parts = [np.array([float(p) for p in part]) * (scale / 2**loss.guard) for part in parts]
        self.row = loss.suppressed_row * scale
        self.highest = np.array(heights) - 1
        self.moves = _moves(len(heights))

    def end(self, starts: list[Node], random: np.random.Generator) -> list[Node]:
        """Where the walks of a round end, without nodes already checked."""
        here = np.array([starts[i % len(starts)] for i in range(_WALKS)])
        weights = self.prediction.draw(_WALKS, random)
        cost = self._cost(here[:, None, :], weights)[:, 0]
        trail: dict[Node, float] = {}
        for _ in range(_STEPS):
            around = np.clip(here[:, None, :] + self.moves[None], 0, self.highest)
            costs = self._cost(around, weights)
            step = costs.argmin(axis=1)
            better = costs.min(axis=1) < cost - 1e-12
            if not better.any():
                break
            here = np.where(better[:, None], around[np.arange(_WALKS), step], here)
            cost = np.minimum(cost, costs.min(axis=1))
        for node, c in zip(here.tolist(), cost.tolist(), strict=True):
            trail.setdefault(tuple(node), c)
        return [node for node in trail if node not in self.problem.state.checked]

    def _cost(self, nodes: Levels, weights: Floats) -> Floats:
        """Loss that each walk (first axis) expects of nodes (second axis); what seems to fail costs more than all."""
        walks, count, columns = nodes.shape
        features = self.prediction.features(nodes.reshape(-1, columns)).reshape(walks, count, -1)
        logit = np.einsum("wcf,fw->wc", features, weights)
        share = 0.5 + 0.5 * np.tanh(logit / 2)
        lost = np.zeros((walks, count))
        for j, part in enumerate(self.parts):
            lost += part[nodes[:, :, j]]
        lost += share * np.maximum(self.row * self.problem.rows - lost, 0) * (self.row > 0)
        costs: Floats = np.where(logit <= self.prediction.limit, lost, 1e3 + logit)
        return costs


def _moves(columns: int) -> npt.NDArray[np.int64]:
    """One column a level up or down; two columns down, or one up and one down (of many columns, some of these)."""
    one = np.eye(columns, dtype=np.int64)
    both = [one[i] + one[j] for i, j in combinations(range(columns), 2)]
    swaps = [one[i] - one[j] for i, j in permutations(range(columns), 2)]
    pairs = np.array([*(-b for b in both), *swaps]).reshape(-1, columns)
    if len(pairs) > _PAIRS:
        pairs = np.random.default_rng(columns).permutation(pairs)[:_PAIRS]
    return np.concatenate([one, -one, pairs])
