"""A good node soon, in lattices of any size: walk down on drawn models of the failing rows, check where the walks end.

Each walk believes one draw from the prediction's posterior and moves to the neighbour with the least loss expected
under it until there is none better (Thompson sampling); the checks correct the model, the next walks start from the
best nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from sqldeid.arrays import Flags, Floats
from sqldeid.tables.model.evaluation import admissible
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.base import Problem
from sqldeid.tables.search.prediction import Levels, Prediction

_WALKS = 20
"""Walks, and so nodes, in a statement."""

_STARTS = 5
"""Best nodes known that walks start from."""

_STEPS = 60
"""Most steps of a walk."""

_PAIRS = 700
"""Most moves of two columns that a walk looks at in a step."""

_PATIENCE = 12
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
    best = sorted(passing, key=lambda e: (problem.loss.least(e), e.failing, e.node))[:_STARTS]
    return [e.node for e in best] or [problem.lattice.top]


@dataclass(frozen=True, slots=True)
class _Draws:
    """What each walk (first axis) believes: effects by column and level, and the slopes of the total entropy."""

    effects: Floats
    slope: Floats
    bend: Floats


class _Walks:
    """Walks over nodes, all of a round in step."""

    def __init__(self, problem: Problem, prediction: Prediction) -> None:
        self.problem, self.prediction = problem, prediction
        loss, heights = problem.loss, problem.lattice.heights
        scale = 1 / max(problem.worst(), 1)
        parts = loss.parts or [-problem.rows * h for h in prediction.entropies]
        self.lost = _padded([np.array([float(p) for p in part]) * (scale / 2**loss.guard) for part in parts])
        self.entropies = _padded(prediction.entropies)
        self.row = loss.suppressed_row * problem.rows * scale
        self.highest = np.array(heights) - 1
        self.first, self.second = _moves(len(heights))

    def end(self, starts: list[Node], random: np.random.Generator) -> list[Node]:
        """Where the walks of a round end, without nodes already checked."""
        here = np.array([starts[i % len(starts)] for i in range(_WALKS)])
        draws = self._draw(random)
        walks = np.arange(_WALKS)
        for _ in range(_STEPS):
            costs = self._costs(here, draws)
            move = costs.argmin(axis=1)
            better = costs[walks, move] < costs[:, -1] - 1e-12
            if not better.any():
                break
            for half in (self.first[move], self.second[move]):
                self._step(here, half, better)
        ends = dict.fromkeys(tuple(int(x) for x in node) for node in here)
        return [node for node in ends if node not in self.problem.state.checked]

    def _draw(self, random: np.random.Generator) -> _Draws:
        drawn = [self.prediction.tables(weights) for weights in self.prediction.draw(_WALKS, random).T]
        effects = np.stack([_padded(d[0]) for d in drawn])
        return _Draws(effects, np.array([[d[2]] for d in drawn]), np.array([[d[3]] for d in drawn]))

    def _step(self, here: Levels, half: Levels, walks: Flags) -> None:
        """Make one half of each walk's move: column j down is 2j, up is 2j + 1, no move is the last number."""
        moving = walks & (half < 2 * len(self.highest))
        column = half[moving] // 2
        level = here[moving, column] + np.where(half[moving] % 2, 1, -1)
        here[moving, column] = np.clip(level, 0, self.highest[column])

    def _costs(self, here: Levels, draws: _Draws) -> Floats:
        """Loss that each walk expects after each move (the last: none); what seems to fail costs more than all."""
        around = np.stack([np.maximum(here - 1, 0), np.minimum(here + 1, self.highest)], axis=2)
        walks, columns = np.arange(_WALKS)[:, None], np.arange(len(self.highest))[None, :]
        effects = self._moved(
            draws.effects[walks, columns, here], draws.effects[walks[..., None], columns[..., None], around]
        )
        total = self._moved(self.entropies[columns, here], self.entropies[columns[..., None], around])
        lost = self._moved(self.lost[columns, here], self.lost[columns[..., None], around])
        logit = effects + total * (draws.slope + draws.bend * total)
        lost += (0.5 + 0.5 * np.tanh(logit / 2)) * np.maximum(self.row - lost, 0) * (self.row > 0)
        costs: Floats = np.where(logit <= self.prediction.limit, lost, 1e3 + logit)
        return costs

    def _moved(self, own: Floats, around: Floats) -> Floats:
        """Sums over columns after each move, from the entries here (walk, column) and a level off (…, down or up)."""
        change = (around - own[..., None]).reshape(_WALKS, -1)
        change = np.concatenate([change, np.zeros((_WALKS, 1))], axis=1)
        moved: Floats = own.sum(axis=1, keepdims=True) + change[:, self.first] + change[:, self.second]
        return moved


def _padded(tables: Sequence[Floats]) -> Floats:
    """Tables of different length as rows of one array."""
    padded = np.zeros((len(tables), max(len(t) for t in tables)))
    for row, table in zip(padded, tables, strict=True):
        row[: len(table)] = table
    return padded


def _moves(columns: int) -> tuple[Levels, Levels]:
    """Moves as two halves: one column a level up or down; two down, or one up and one down (of many, some); none."""
    rest = 2 * columns
    pairs = [(2 * i, 2 * j) for i, j in combinations(range(columns), 2)]
    pairs += [(2 * i + 1, 2 * j) for i, j in permutations(range(columns), 2)]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if len(both) > _PAIRS:
        both = np.random.default_rng(columns).permutation(both)[:_PAIRS]
    single = np.array([(half, rest) for half in range(rest)] + [(rest, rest)], dtype=np.int64)
    moves = np.concatenate([both, single])
    return moves[:, 0], moves[:, 1]
