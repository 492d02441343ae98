"""How many persons of a population are alone in their class, estimated from a random sample's class sizes. Pure.

Guarantee
    None: these are estimates under models of the population, and their intervals tell the chance of sampling alone.
    That a model does not fit is not in them, and it may be off by a multiple.
Assumes
    The source is a random sample of the population without replacement, of the size that the job states, and classes
    are independent. Each estimator assumes besides what its model says of classes.
Does not protect
    Nobody: it tells a custodian, and no release is held to it. Who is not unique may be found among few.
Source
    Zayatz 1991, *Estimation of the number of unique population elements using a sample*; Hoshino 2001, *Applying
    Pitman's sampling formula to microdata disclosure risk assessment*; Chen and Keller-McNulty 1998, *Estimation of
    identification disclosure risk in microdata* (slide negative binomial), with the number of classes after Shlosser
    (Haas and Stokes 1998); Dankar et al. 2012, *Estimating the re-identification risk of clinical data sets*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, inf, lgamma, log, log1p, sqrt

import numpy as np

from sqldeid.arrays import Floats
from sqldeid.result import Uniqueness

Sizes = Mapping[int, int]
"""Class size → classes of the sample."""

DRAWS, SEED = 200, 20120709
"""Of the bootstrap: samples, and what their draws begin with."""

_Z = 1.959963984540054
"""Of a normal interval of 95 %."""


def uniqueness(sizes: Sizes, size: int) -> tuple[Uniqueness, ...]:
    """Share of a population's persons who are alone in their class, by each estimator that has an answer.

    Parameters
    ----------
    sizes
        Of the sample.
    size
        Persons of the population.
    """
    rows = sum(n * classes for n, classes in sizes.items())
    if not 0 < rows <= size:
        return ()
    if not sizes.get(1):
        high = 1.0 if rows == size else min(1.0, log(0.025) / log1p(-rows / size) / size)
        return tuple(Uniqueness(name, 0.0, 0.0, 0.0 if rows == size else high) for name in (*_ESTIMATORS, DANKAR))
    found = {}
    for name, estimate in _ESTIMATORS.items():
        if (answer := estimate(sizes, size)) is not None:
            share, low, high = (min(max(x / size, 0.0), 1.0) for x in answer)
            found[name] = Uniqueness(name, share, low, high)
    chosen = _decide(found, rows / size)
    combined = () if chosen is None else (Uniqueness(DANKAR, chosen.share, chosen.low, chosen.high, chosen.estimator),)
    return (*found.values(), *combined)


ZAYATZ, PITMAN, SNB, DANKAR = "Zayatz", "Pitman", "SNB", "Dankar"

Answer = tuple[float, float, float]
"""Persons who are unique: estimated, and from the lower to the upper end of the interval."""


def _decide(found: Mapping[str, Uniqueness], fraction: float) -> Uniqueness | None:
    """The rule of Dankar et al.: Pitman up to a tenth, above it the lesser of SNB and Zayatz; else Zayatz."""
    if fraction <= 0.1 and PITMAN in found:
        return found[PITMAN]
    if fraction > 0.1 and SNB in found and ZAYATZ in found:
        return min(found[SNB], found[ZAYATZ], key=lambda u: u.share)
    return found.get(ZAYATZ)


# ---- Zayatz ----------------------------------------------------------------------------------------------------------


def zayatz(sizes: Sizes, size: int) -> float:
    """Unique persons by Zayatz: classes of the population are taken to be as large as often as those of the sample.

    They are larger, so it finds too many, all the more the smaller the sample is.
    """
    rows = sum(n * classes for n, classes in sizes.items())
    alone = {n: _one_of(n, rows, size) for n in sizes}
    all_alone = sum(classes * alone[n] for n, classes in sizes.items())
    return sizes[1] * (sizes[1] * alone[1] / all_alone) * size / rows


def _one_of(n: int, rows: int, size: int) -> float:
    """The probability that of a class of n persons exactly one is in a sample (hypergeometric)."""
    if size - n < rows - 1:
        return 0.0
    return exp(log(n) + _choose(size - n, rows - 1) - _choose(size, rows))


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


# ---- Pitman ----------------------------------------------------------------------------------------------------------


def likelihood(sizes: Sizes, theta: float, alpha: float) -> float:
    """Logarithm of the probability of the sample's class sizes by Pitman's formula, but for a constant.

    Parameters
    ----------
    theta, alpha
        Above -alpha; above 0 and below 1.
    """
    rows = sum(n * classes for n, classes in sizes.items())
    classes = sum(sizes.values())
    new = (classes - 1) * log(alpha) + lgamma(theta / alpha + classes) - lgamma(theta / alpha + 1)
    again = sum(c * (lgamma(n - alpha) - lgamma(1 - alpha)) for n, c in sizes.items())
    return new + again - lgamma(theta + rows) + lgamma(theta + 1)


def expected_uniques(theta: float, alpha: float, size: int) -> float:
    """Unique persons of a population of Pitman's model; of a great one Γ(θ+1)/Γ(θ+α)·size^α (Hoshino 2001)."""
    up = lgamma(theta + alpha + size - 1) - lgamma(theta + alpha)
    return size * exp(up - lgamma(theta + size) + lgamma(theta + 1))


def fitted(sizes: Sizes) -> tuple[float, float] | None:
    """The likeliest theta and alpha; None where there are none inside of their range.

    For each alpha the likeliest theta is sought on its logarithm, counted from -alpha, and alpha on these.
    """
    rows = sum(n * classes for n, classes in sizes.items())

    def theta_of(alpha: float) -> float:
        top = _highest(lambda t: likelihood(sizes, exp(t) - alpha, alpha), -12.0, log(rows) + 12)
        return exp(top) - alpha

    alpha = _highest(lambda a: likelihood(sizes, theta_of(a), a), _LEAST, 1 - _LEAST)
    theta = theta_of(alpha)
    inside = _LEAST * 1.5 < alpha < 1 - _LEAST * 1.5 and exp(-11) < theta + alpha < rows * exp(11)
    return (theta, alpha) if inside else None


_LEAST = 1e-3
"""Distance of alpha from 0 and 1: nearer, sums of logarithms of Γ lose their digits."""


def _highest(value: Callable[[float], float], low: float, high: float, steps: int = 48) -> float:
    """Where a function with one top is highest, by golden sections."""
    part = (sqrt(5) - 1) / 2
    a, b = high - part * (high - low), low + part * (high - low)
    at_a, at_b = value(a), value(b)
    for _ in range(steps):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + part * (high - low)
            at_b = value(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - part * (high - low)
            at_a = value(a)
    return (low + high) / 2


def _pitman(sizes: Sizes, size: int) -> Answer | None:
    """Unique persons by Pitman's model, with the interval of the delta method for the logarithm of their number."""
    found = fitted(sizes)
    if found is None:
        return None
    at = np.array([log(sum(found)), found[1]])

    def of(point: Floats) -> tuple[float, float]:
        return exp(float(point[0])) - float(point[1]), float(point[1])

    def tried(point: Floats) -> float:
        return likelihood(sizes, *of(point))

    h = np.array([1e-3, 1e-4])
    e = np.diag(h)
    slopes = np.array([_log_uniques(of(at + d), size) - _log_uniques(of(at - d), size) for d in e]) / (2 * h)
    curved = np.array(
        [[(tried(at + c + d) - tried(at + c - d) - tried(at - c + d) + tried(at - c - d)) / 4 for d in e] for c in e]
    ) / np.outer(h, h)
    if curved[0, 0] >= 0 or np.linalg.det(curved) <= 0:
        return None
    uniques = expected_uniques(*found, size)
    spread = float(slopes @ np.linalg.inv(-curved) @ slopes) + 1 / uniques
    return uniques, uniques * exp(-_Z * sqrt(spread)), uniques * exp(_Z * sqrt(spread))


def _log_uniques(parameters: tuple[float, float], size: int) -> float:
    return log(expected_uniques(*parameters, size))


# ---- slide negative binomial -----------------------------------------------------------------------------------------


def shlosser(sizes: Sizes, fraction: float) -> float:
    """Classes of the population, by the modified estimator of Shlosser (Haas and Stokes 1998)."""
    n, c = (np.array(list(x), dtype=np.float64) for x in (sizes.keys(), sizes.values()))
    q = fraction
    more = (n * q**2 * (1 - q**2) ** (n - 1) * c).sum() / ((1 - q) ** n * ((1 + q) ** n - 1) * c).sum()
    missed = ((1 - q) ** n * c).sum() / (n * q * (1 - q) ** (n - 1) * c).sum()
    return float(c.sum() + sizes.get(1, 0) * more * missed**2)


def snb(sizes: Sizes, size: int) -> float | None:
    """Unique persons where the persons of a class but one are a negative binomial number.

    Its two parameters are those by which a sample has as many classes of one and of two rows; of several the one of
    most uniques is taken. None where there are none: the model does not fit.
    """
    rows = sum(n * classes for n, classes in sizes.items())
    f, ones, twos = rows / size, sizes.get(1, 0), sizes.get(2, 0)
    if not ones or not twos or rows == size:
        return None
    classes = shlosser(sizes, f)
    chance = np.exp(-np.linspace(1e-6, 16, 6000))  # beta
    power, miss = _fitting_power(chance, f, ones, twos, classes)
    turns = np.flatnonzero(np.sign(miss[:-1]) * np.sign(miss[1:]) < 0)
    found = []
    for i in turns:
        fine = np.exp(np.linspace(log(chance[i]), log(chance[i + 1]), 200))
        power, miss = _fitting_power(fine, f, ones, twos, classes)
        best = int(np.abs(miss).argmin())
        found.append(float(classes * fine[best] ** power[best]))
    return max(found, default=None)


def _fitting_power(beta: Floats, f: float, ones: int, twos: int, classes: float) -> tuple[Floats, Floats]:
    """Of each beta the alpha that has the right ratio of classes of two rows to those of one; by how much ones are off.

    With G(w) = w·(beta / (1 - (1 - beta)·w))^alpha, the generating function of a class's persons, a sample has
    classes·f·G'(1 - f) classes of one row and classes·f²/2·G''(1 - f) of two.
    """
    w = 1 - f
    x = (1 - beta) * w
    d, ratio = 1 - x, 2 * twos / (ones * f)
    a, b, c = (1 - beta) * x, (1 - beta) * (2 - x) - ratio * x * d, -ratio * d**2
    root = np.sqrt(b**2 - 4 * a * c)
    alpha = np.where(b > 0, 2 * -c / (b + root), (root - b) / (2 * np.maximum(a, 1e-300)))
    expected = classes * f * np.exp(alpha * np.log(beta / d)) * (1 + alpha * x / d)
    return alpha, expected - ones


def _resampled(estimate: Callable[[Sizes, int], float | None]) -> Callable[[Sizes, int], Answer | None]:
    """An estimator with the interval of a bootstrap: the number of classes of each size is drawn as a Poisson one."""

    def answer(sizes: Sizes, size: int) -> Answer | None:
        found = estimate(sizes, size)
        if found is None:
            return None
        rng, listed = np.random.default_rng(SEED), sorted(sizes)
        means, drawn = [sizes[n] for n in listed], []
        for _ in range(DRAWS):
            again = {n: int(c) for n, c in zip(listed, rng.poisson(means), strict=True) if c}
            rows = sum(n * c for n, c in again.items())
            if again.get(1) and rows <= size:
                drawn.append(estimate(again, size))
        there = [x for x in drawn if x is not None]
        if 2 * len(there) < DRAWS:
            return found, 0.0, inf
        low, high = np.quantile(there, [0.025, 0.975])
        return found, min(float(low), found), max(float(high), found)

    return answer


_ESTIMATORS: Mapping[str, Callable[[Sizes, int], Answer | None]] = {
    ZAYATZ: _resampled(zayatz),
    PITMAN: _pitman,
    SNB: _resampled(snb),
}
