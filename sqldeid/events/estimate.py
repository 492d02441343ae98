"""Estimate true counts from noised ones: post-processing of `laplace`, which spends no budget. Pure.

Each cell's count has a gamma prior whose mean comes from the noised margins, as if rows and columns were independent;
given the count that was published with discrete Laplace noise, its posterior mean is taken. Rows and columns are then
raked to the state counts. Clipping at 0 instead is far worse: it adds the noise of thousands of empty cells.

Source: events.md, *laplace* (estimator after the noise).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from sqldeid.arrays import Floats, Ints

SHAPES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Shapes of the gamma prior that are tried: the smaller, the more cells are nearly empty."""

EVIDENCE_CELLS = 2_000
"""Cells by which the shape is chosen, drawn evenly from all: more choose the same, and each costs nine times."""

BLOCK = 4096
ROUNDS = 30


def posterior_mean(noised: Ints, scale: float, prior: Floats) -> Floats:
    """Posterior mean of each cell's count, at least 0.

    Parameters
    ----------
    noised
        Counts with discrete Laplace noise of `scale`.
    prior
        Prior mean of each cell, same shape.
    """
    flat, means = noised.ravel().astype(np.float64), np.maximum(prior.ravel(), 1e-6)
    grid, width = _grid(float(flat.max(initial=0.0)) + 12 * scale)
    some: slice | Ints = slice(None)
    if len(flat) > EVIDENCE_CELLS:
        some = np.random.default_rng(0).choice(len(flat), EVIDENCE_CELLS, replace=False)
    best, shape = -np.inf, SHAPES[0]
    for tried in SHAPES:
        likelihood = sum(float(e.sum()) for e, _ in _blocks(flat[some], means[some], scale, tried, grid, width))
        if likelihood > best:
            best, shape = likelihood, tried
    found = np.concatenate([m for _, m in _blocks(flat, means, scale, shape, grid, width)])
    return found.reshape(noised.shape)


def _grid(most: float) -> tuple[Floats, Floats]:
    """Whole counts, each up to 64 and then ever fewer, and how many counts each stands for."""
    far = np.unique(np.rint(np.geomspace(64, max(most, 80.0), 160)))
    grid = np.concatenate([np.arange(64.0), far])
    edges = np.concatenate([[-0.5], (grid[1:] + grid[:-1]) / 2, [grid[-1] + 0.5]])
    return grid, np.diff(edges)


def _blocks(
    flat: Floats, means: Floats, scale: float, shape: float, grid: Floats, width: Floats
) -> list[tuple[Floats, Floats]]:
    """Log evidence and posterior mean, some cells at a time."""
    base = gammaln(grid + shape) - gammaln(shape) - gammaln(grid + 1) + np.log(width)
    found = []
    for at in range(0, len(flat), BLOCK):
        y, m = flat[at : at + BLOCK, None], means[at : at + BLOCK, None]
        logs = base + shape * np.log(shape / (shape + m)) + grid * np.log(m / (shape + m)) - np.abs(y - grid) / scale
        top = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - top)
        total = weights.sum(axis=1)
        found.append((np.log(total) + top[:, 0], (weights * grid).sum(axis=1) / total))
    return found


def rake(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale rows and columns in turn until they sum to these; what is all zero stays so.

    NaN in `rows` or `columns` leaves that one as it is.
    """
    found = table.copy()
    for _ in range(ROUNDS):
        found = _scaled(found, columns, axis=0)
        found = _scaled(found, rows, axis=1)
    return found


def _scaled(table: Floats, sums: Floats, axis: int) -> Floats:
    there = table.sum(axis=axis)
    factor = np.where((there > 0) & ~np.isnan(sums), np.nan_to_num(sums) / np.where(there > 0, there, 1.0), 1.0)
    return table * (factor[None, :] if axis == 0 else factor[:, None])


def shares(weights: Floats) -> Floats:
    """Along the last axis: shares that sum to 1; where nothing is there, all are alike."""
    total = weights.sum(axis=-1, keepdims=True)
    alike = np.full_like(weights, 1.0 / weights.shape[-1])
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), alike)
