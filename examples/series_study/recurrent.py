"""A small recurrent network (GRU) that tells an outcome from hourly series: NumPy alone, gradients written out.

One layer of gated recurrent units (Cho et al. 2014) over the steps, a logistic regression of its last state; inputs are
each variable's last value so far, standardised, and whether it was measured at the step. Trained by Adam.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqldeid.series.outcome import Fit, Predict

Array = NDArray[np.float64]
Weights = dict[str, Array]


@dataclass(frozen=True)
class Training:
    """How the network is trained.

    Parameters
    ----------
    units
        Of the hidden state.
    decay
        Of squared weights, against learning the training set by heart.
    """

    units: int = 12
    epochs: int = 12
    batch: int = 64
    rate: float = 0.004
    decay: float = 0.001
    seed: int = 1


def recurrent(training: Training | None = None) -> Fit:
    """A model for `sqldeid.series.outcome.train_and_test`, on (persons, variables, steps) with NaN."""
    chosen = Training() if training is None else training

    def fit(series: Array, label: NDArray[np.int64]) -> Predict:
        mean, sd = _scales(series)
        weights = _train(inputs(series, mean, sd), label.astype(np.float64), chosen)
        return lambda rows: forward(inputs(rows, mean, sd), weights)[0]

    return fit


def _scales(series: Array) -> tuple[Array, Array]:
    """(variables,) mean and standard deviation of what is there."""
    there = ~np.isnan(series)
    n = np.maximum(there.sum(axis=(0, 2)), 1)
    mean = np.where(there, series, 0.0).sum(axis=(0, 2)) / n
    gap = np.where(there, series - mean[:, None], 0.0)
    sd = np.sqrt((gap**2).sum(axis=(0, 2)) / n)
    return mean, np.where(sd > 0, sd, 1.0)


def inputs(series: Array, mean: Array, sd: Array) -> Array:
    """(steps, persons, 2 · variables): last values so far in standard deviations (0: none yet); 1 where measured."""
    there = ~np.isnan(series)
    scaled = np.clip(np.where(there, (series - mean[:, None]) / sd[:, None], 0.0), -5, 5)
    latest = np.maximum.accumulate(np.where(there, np.arange(series.shape[2]), -1), axis=2)
    filled = np.where(latest >= 0, np.take_along_axis(scaled, np.maximum(latest, 0), axis=2), 0.0)
    return np.ascontiguousarray(np.concatenate([filled, there.astype(np.float64)], axis=1).transpose(2, 0, 1))


def draw(features: int, units: int, rng: np.random.Generator) -> Weights:
    """Weights to begin with; columns of `x`, `h` and `b` are update gate, reset gate, candidate."""
    return {
        "x": rng.normal(0, 1 / np.sqrt(features), (features, 3 * units)),
        "h": rng.normal(0, 1 / np.sqrt(units), (units, 3 * units)),
        "b": np.zeros(3 * units),
        "out": rng.normal(0, 1 / np.sqrt(units), units),
        "bias": np.zeros(1),
    }


def _gate(values: Array) -> Array:
    return 0.5 * (1 + np.tanh(values / 2))


def forward(x: Array, weights: Weights) -> tuple[Array, list[tuple[Array, ...]]]:
    """(persons,) logits, and by step what the gradient needs: state before, update, reset, candidate."""
    units = len(weights["out"])
    state, kept = np.zeros((x.shape[1], units)), []
    for step in x @ weights["x"] + weights["b"]:
        gates = _gate(step[:, : 2 * units] + state @ weights["h"][:, : 2 * units])
        update, reset = gates[:, :units], gates[:, units:]
        candidate = np.tanh(step[:, 2 * units :] + (reset * state) @ weights["h"][:, 2 * units :])
        kept.append((state, update, reset, candidate))
        state = state + update * (candidate - state)
    return state @ weights["out"] + weights["bias"], [*kept, (state,)]


def loss_and_gradient(x: Array, label: Array, weights: Weights) -> tuple[float, Weights]:
    """Mean logistic loss, and its gradient by every weight."""
    logit, kept = forward(x, weights)
    loss = float(np.mean(np.logaddexp(0, logit) - label * logit))
    error = (_gate(logit) - label) / len(label)
    last, units = kept[-1][0], len(weights["out"])
    of = {name: np.zeros_like(value) for name, value in weights.items()}
    of["out"], of["bias"] = last.T @ error, np.array([error.sum()])
    back = error[:, None] * weights["out"]
    gates, inner = weights["h"][:, : 2 * units], weights["h"][:, 2 * units :]
    for number in range(len(x) - 1, -1, -1):
        state, update, reset, candidate = kept[number]
        by_candidate = back * update * (1 - candidate**2)
        by_reset_state = by_candidate @ inner.T
        by_gates = np.concatenate(
            [back * (candidate - state) * update * (1 - update), by_reset_state * state * reset * (1 - reset)], axis=1
        )
        of["h"][:, : 2 * units] += state.T @ by_gates
        of["h"][:, 2 * units :] += (reset * state).T @ by_candidate
        all_gates = np.concatenate([by_gates, by_candidate], axis=1)
        of["x"] += x[number].T @ all_gates
        of["b"] += all_gates.sum(axis=0)
        back = back * (1 - update) + by_reset_state * reset + by_gates @ gates.T
    return loss, of


def _train(x: Array, label: Array, training: Training) -> Weights:
    rng = np.random.default_rng(training.seed)
    weights = draw(x.shape[2], training.units, rng)
    weights["bias"] += np.log(label.mean() / (1 - label.mean()))
    first, second = ({name: np.zeros_like(value) for name, value in weights.items()} for _ in range(2))
    number = 0
    for _ in range(training.epochs):
        order = rng.permutation(len(label))
        for start in range(0, len(order), training.batch):
            rows, number = order[start : start + training.batch], number + 1
            _, of = loss_and_gradient(x[:, rows], label[rows], weights)
            for name, gradient in of.items():
                gradient = gradient + (training.decay * weights[name] if name not in ("b", "bias") else 0.0)
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                step = first[name] / (1 - 0.9**number) / (np.sqrt(second[name] / (1 - 0.999**number)) + 1e-8)
                weights[name] = weights[name] - training.rate * step
    return weights
