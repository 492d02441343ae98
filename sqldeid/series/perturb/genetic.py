"""Perturb by a genetic algorithm: any fitness, many series at a time, a random generator for each.

Each series has a population of perturbations. Every iteration keeps the best and makes the others anew: `parents`, the
best of a random tournament (two), are joined at random points, and the child is mutated at some records. It ends for a
series when its best has not improved for a while.

Notes
-----
The fitness of equation 4.4, −distortion · exp(unfeasibility · √m) (with the sign that makes it a penalty), is compared
by its logarithm: the same order, but it cannot overflow, as it did in the thesis. `annealing` and `capped` then come
about as near to the targets as `weighted` (NA), for more distortion; `dampened` (DF) stays far off
(`examples/series_study`).

Source
------
Mazzone 2020, §4.2, §6.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.series.perturb.draws import generator
from sqldeid.series.perturb.settings import GeneticSettings

SERIES = 512
"""Series evolved side by side; bounds the memory, changes no result."""
Ahead: TypeAlias = tuple[Floats, NDArray[np.float32], Flags]
"""By series and iteration: each child's choices (parents, and where they join); the noise, and where it is added."""

LOCAL_STEP, LOCAL_RECORDS = 0.1, 2.0
"""Of children that search near by: the step as a share of the mutation's, and about how many records are mutated."""
AHEAD = 16
"""Iterations that a series' generator draws for at once."""


@dataclass(frozen=True, slots=True)
class Evolved:
    """What came out: `released` (series, length), and after how many `iterations` each series ended (series,)."""

    released: Floats
    iterations: Ints


def evolve(
    values: Floats, targets: Floats, settings: GeneticSettings, seed: int | bytes, person: Ints, variable: Ints
) -> Evolved:
    """Perturb each series towards its targets.

    Parameters
    ----------
    values
        (series, length), NaN where there is no record; at least one record a row.
    targets
        (series, 4): mean, variance, minimum, maximum; finite.
    seed, person, variable
        Each series draws from a generator of its own.
    """
    released, iterations = np.full_like(values, np.nan), np.zeros(len(values), dtype=np.int64)
    for start in range(0, len(values), SERIES):
        rows = slice(start, start + SERIES)
        draws = [generator(seed, "genetic", int(p), int(v)) for p, v in zip(person[rows], variable[rows], strict=True)]
        released[rows], iterations[rows] = _evolve_block(values[rows], targets[rows], settings, draws)
    return Evolved(released, iterations)


def _evolve_block(
    values: Floats, targets: Floats, settings: GeneticSettings, draws: list[np.random.Generator]
) -> tuple[Floats, Ints]:
    order = np.argsort(np.isnan(values), axis=1, kind="stable")  # records first
    packed = np.take_along_axis(values, order, axis=1)
    n = (~np.isnan(packed)).sum(axis=1)
    packed = np.where(np.isnan(packed), 0.0, packed)
    best, iterations = _Herd(packed, n, targets, settings, draws).run()
    result = np.where(np.arange(values.shape[1]) < n[:, None], packed + best, np.nan)
    released = np.full_like(values, np.nan)
    np.put_along_axis(released, order, result, axis=1)
    return released, iterations


class _Herd:
    """Populations of a block of series; those that ended are taken out."""

    def __init__(
        self, x: Floats, n: Ints, targets: Floats, settings: GeneticSettings, draws: list[np.random.Generator]
    ) -> None:
        self._settings = settings
        self._live = np.arange(len(x))
        self._x, self._n, self._targets, self._draws = x, n, targets, draws
        self._there = np.arange(x.shape[1]) < n[:, None]
        first = [draw.standard_normal((settings.population, x.shape[1])) for draw in draws]
        self._all = np.stack(first) * settings.initial_sd * self._there[:, None, :]
        self._cumulative, self._chosen = _tournament(settings.population, settings.tournament, settings.parents)
        self._ahead: Ahead
        self._best = np.zeros_like(x)
        self._iterations = np.zeros(len(x), dtype=np.int64)

    def run(self) -> tuple[Floats, Ints]:
        """(series, length) best perturbations, and iterations by series."""
        settings = self._settings
        unfeasible, distortion = self._judge(self._all)
        idle = np.zeros(len(self._x), dtype=np.int64)
        for m in range(1, settings.most_iterations + 1):
            cost = self._cost(unfeasible, distortion, m)
            rank = np.argsort(cost, axis=1, kind="stable")
            best_before = np.take_along_axis(cost, rank[:, :1], axis=1)[:, 0]
            children = self._children(rank, m)
            kept = np.take_along_axis(self._all, rank[:, :1, None], axis=1)
            judged = self._judge(children)
            self._all = np.concatenate([kept, children], axis=1)
            unfeasible = np.concatenate([np.take_along_axis(unfeasible, rank[:, :1], axis=1), judged[0]], axis=1)
            distortion = np.concatenate([np.take_along_axis(distortion, rank[:, :1], axis=1), judged[1]], axis=1)
            better = self._cost(judged[0], judged[1], m).min(axis=1) < best_before
            idle = np.where(better, 0, idle + 1)
            if m == settings.most_iterations:
                idle[:] = settings.idle_iterations
            ended = idle >= settings.idle_iterations
            if ended.any():
                self._take_out(ended, self._cost(unfeasible, distortion, m), m)
                unfeasible, distortion, idle = unfeasible[~ended], distortion[~ended], idle[~ended]
            if len(self._live) == 0:
                break
        return self._best, self._iterations

    def _take_out(self, ended: Flags, cost: Floats, m: int) -> None:
        rows = np.flatnonzero(ended)
        self._best[self._live[rows]] = self._all[rows, np.argmin(cost[rows], axis=1)]
        self._iterations[self._live[rows]] = m
        stay = ~ended
        self._live, self._x, self._n = self._live[stay], self._x[stay], self._n[stay]
        self._targets, self._there, self._all = self._targets[stay], self._there[stay], self._all[stay]
        self._draws = [draw for draw, keep in zip(self._draws, stay, strict=True) if keep]
        choices, noise, mutated = self._ahead
        self._ahead = (choices[stay], noise[stay], mutated[stay])

    def _children(self, rank: Ints, m: int) -> Floats:
        """(series, population − 1, length): joined and mutated."""
        step = (m - 1) % AHEAD
        if step == 0:
            self._draw_ahead()
        choices, noise, mutated = (self._ahead[0][:, step], self._ahead[1][:, step], self._ahead[2][:, step])
        chosen = self._chosen[np.searchsorted(self._cumulative, choices[:, :, 0], side="right")]
        rows = np.arange(len(rank))[:, None]
        # A series of one record has no point to join at: it is all of the first parent.
        cuts = np.sort(1 + np.floor(choices[:, :, 1:] * np.maximum(self._n - 1, 1)[:, None, None]), axis=2)
        children: Floats = self._all[rows, rank[rows, chosen[:, :, 0]]]
        for parent in range(1, chosen.shape[2]):
            own = np.arange(self._x.shape[1]) >= cuts[:, :, parent - 1, None]
            children = np.where(own, self._all[rows, rank[rows, chosen[:, :, parent]]], children)
        children += np.where(mutated & self._there[:, None, :], noise, 0.0)
        return children

    def _draw_ahead(self) -> None:
        settings = self._settings
        shape = (AHEAD, settings.population - 1, self._x.shape[1])
        steps, shares = self._mutations(shape[1])
        limits = np.round(shares * 65536).astype(np.int64)[:, None, :, None]
        self._ahead = (
            np.stack([draw.random((*shape[:2], settings.parents)) for draw in self._draws]),
            np.stack([draw.standard_normal(shape, dtype=np.float32) for draw in self._draws]) * steps[:, None],
            np.stack([draw.integers(65536, size=shape, dtype=np.uint16) for draw in self._draws]) < limits,
        )

    def _mutations(self, children: int) -> tuple[NDArray[np.float32], Floats]:
        """By child: the step; and by series and child: the share of records mutated."""
        settings, number = self._settings, np.arange(children)
        local = settings.local_search
        steps = np.where((number % 2 == 1) & local, LOCAL_STEP, 1.0) * settings.mutation_sd
        few = np.minimum(settings.mutation_probability, LOCAL_RECORDS / self._n)[:, None]
        shares = np.where((number % 4 >= 2) & local, few, settings.mutation_probability)
        return steps.astype(np.float32), shares

    def _judge(self, perturbations: Floats) -> tuple[Floats, Floats]:
        """(series, population) sums of |feature − target|, and sums of |perturbation|."""
        there = self._there[:, None, :]
        changed = self._x[:, None, :] + perturbations
        n = self._n[:, None]
        mean = changed.sum(axis=2) / n  # zero where there is no record
        variance = np.maximum(np.einsum("spl,spl->sp", changed, changed) / n - mean**2, 0.0)
        low = np.where(there, changed, np.inf).min(axis=2)
        high = np.where(there, changed, -np.inf).max(axis=2)
        wanted = self._targets[:, None, :]
        if self._settings.scale_variance:
            spread = np.abs(np.sqrt(variance) - np.sqrt(wanted[:, :, 1]))
        else:
            spread = np.abs(variance - wanted[:, :, 1])
        others = np.abs(mean - wanted[:, :, 0]) + np.abs(low - wanted[:, :, 2]) + np.abs(high - wanted[:, :, 3])
        return others + spread, np.abs(perturbations).sum(axis=2)

    def _cost(self, unfeasible: Floats, distortion: Floats, m: int) -> Floats:
        """Grow with unfitness: −fitness, or its logarithm for the annealing family."""
        settings = self._settings
        if settings.fitness == "weighted":
            return np.asarray(distortion + settings.weight * unfeasible, dtype=np.float64)
        iteration = min(m, settings.cap) if settings.fitness == "capped" else m
        divisor = settings.dampening if settings.fitness == "dampened" else 1.0
        penalty = unfeasible / divisor * np.sqrt(iteration)
        return np.asarray(np.log(np.maximum(distortion, 1e-300)) + penalty, dtype=np.float64)


def _tournament(population: int, size: int, parents: int) -> tuple[Floats, Ints]:
    """Cumulative probabilities of the ranks of the best of `size` drawn from `population` without replacement."""
    chosen = list(combinations(range(population), parents))
    weights = np.array([comb(population - 1 - ranks[-1], size - parents) for ranks in chosen], dtype=np.float64)
    cumulative = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0
    return cumulative, np.array(chosen)
