"""What a released random sample of classes of at least k proves: (β, ε, δ)-differential privacy under sampling.

The mechanism. Every row is kept with probability β (the rows kept stay secret); a node g of a fixed, data-free lattice
is drawn from the kept rows with probability proportional to exp(ε′·u(g) / (2·Δu)); all columns of g are
quasi-identifying; published are g and its classes of at least k kept rows with their sizes, nothing else.

The claim. For tables D and D′ = D + one row t, and every set of outputs O,
P[M(D) ∈ O] ≤ e^ε·P[M(D′) ∈ O] + δ, and the same with D and D′ exchanged, when ε − ε′ ≥ −ln(1 − β).

The proof. Let u(g) depend on the kept rows only through the sizes of g's classes (and constants); w(g) is its weight,
Z the sum of all weights. Let n rows of D share t's class at g. Fix g and all class sizes of the kept rows at g, t's
class having j.

1. Given the sizes, the j kept rows of that class are a uniform subset of its n rows under D, of n + 1 under D′, and
   w(g) is the same. With q = j/(n + 1), the share of D′'s subsets that hold t, and R the most by which exchanging one
   kept row of the class for t can raise the mean of 1/Z,
   P′/P ≤ (1 − β)/(1 − q) · ((1 − q) + q·R) = (1 − β)·(1 + R·q/(1 − q)), and P/P′ ≤ 1/(1 − β) ≤ e^ε.
2. P′/P ≤ e^ε iff R·q/(1 − q) ≤ A = e^ε/(1 − β) − 1, iff q ≤ γ* = A/(A + R). R ≤ e^ρ: for the penalty
   "k-anonymity" u varies by the penalty at most, whatever the rows, so the weights and Z vary by e^(ε′/2) at most and
   ρ = ε′/2. For "suppression" an exchange moves at most k rows in or out of suppression, and with Δu at least
   penalty·(k − 1)/N₀, ρ = ε′·k/(2·(k − 1)).
3. Where t's class is not shown under D′ (j < k with t), it is not shown without t either, so the output is the same
   and P′ ≤ ((1 − β) + β·e^ε′)·P ≤ e^ε·P, since one row changes the probability of g by e^ε′ at most.
4. What is left has probability under D′ of at most the sum over g of P′[g drawn, j ≥ k and j > γ*·(n + 1)]. For
   "k-anonymity" P[g drawn | rows] ≤ e^(ε′/2) times a probability without data (weights and Z as in 2), which sums to 1:
   δ = e^(ε′/2) · T(k, β, γ*). For "suppression" every node counts: δ = |lattice| · T(k, β, γ*). Here
   T(k, β, γ) = max over n of P[Binomial(n, β) ≥ k and > γ·n], see `tail`.

Source
    Li, Qardaji & Su 2012; Mazzone 2019, §4.5. The sources' own δ, `published_delta`, does not hold for every ε′-private
    choice made on the rows that are released, so it is shown for comparison only.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, log1p
from typing import Literal, get_args

import numpy as np

from sqldeid.errors import JobError
from sqldeid.tables.criteria.rational import Real, exact, exp_bounds, log_bounds

Penalty = Literal["k-anonymity", "suppression"]
"""What lowers a node's utility: being over the suppression limit, or every suppressed row."""

PENALTIES: tuple[Penalty, ...] = get_args(Penalty)

_BLOCK = 128
"""Thresholds whose tails are computed at once."""

_TINY = 1e-300
"""Tails are reported as at least this."""

_SLACK = 1 + 1e-9
"""What a proven δ is raised by: far more than the error of SciPy's binomial tail."""

_STEP = 10**9
"""ε′ is a multiple of a billionth, rounded down."""

_LARGEST_K = 2**40
_LARGEST_EPSILON = 100
_KEY = "search.epsilon_safe"


def tail(k: int, beta: Real, gamma: Fraction) -> float:
    """T(k, β, γ) = max over all n of P[Binomial(n, β) ≥ k and > γ·n], j strictly above γ·n, for γ > β.

    Equal to the maximum over n ≥ ⌈k/γ − 1⌉ of P[Binomial(n, β) > γ·n]. For a fixed least count j = ⌊γ·n⌋ + 1 the
    probability grows with n, so only the greatest such n counts, n_j = ⌈j/γ⌉ − 1, found in integers.

    Cut-off: by Chernoff P[Binomial(n, β) > γ·n] ≤ exp(−n·KL(γ‖β)), KL(γ‖β) = γ·ln(γ/β) + (1−γ)·ln((1−γ)/(1−β)). As
    soon as n_j·KL ≥ −ln(largest tail so far), no later j can be larger.
    """
    from scipy.special import betainc  # only this method needs it; scipy.stats would take a second more to import

    share, p, q = exact(beta), gamma.numerator, gamma.denominator
    if not share < gamma:
        raise JobError(f"no bound is proven: gamma {float(gamma):.6g} is not above beta {float(share):g}", key=_KEY)
    rate = _divergence(gamma, share)
    best, first = 0.0, k
    while True:
        counts = range(first, first + _BLOCK)
        trials = np.array([(j * q - 1) // p for j in counts], dtype=np.float64)
        least = np.array(counts, dtype=np.float64)
        failures = np.maximum(trials - least, 0) + 1
        tails = np.where(trials < least, 0.0, betainc(least, failures, float(share)))  # P[Binomial(n, β) ≥ j]
        best = max(best, float(tails.max()))
        first += _BLOCK
        if ((first * q - 1) // p) * rate >= -log(max(best, _TINY)):
            return max(best, _TINY)


def _divergence(gamma: Fraction, beta: Fraction) -> float:
    """KL(γ‖β) in nats, a little less: the search stops by it, and one that is too great would stop too early.

    In floats its two terms cancel where γ is near β, and 1 − γ is 0 where ε is large. Where γ is so near β that even
    the bounds of logarithms say nothing, Pinsker's KL ≥ 2·(γ − β)² does.
    """
    least = gamma * log_bounds(gamma / beta)[0]
    if gamma < 1:
        least += (1 - gamma) * log_bounds((1 - gamma) / (1 - beta))[0]
    return float(max(least, 2 * (gamma - beta) ** 2)) * (1 - 1e-9)


def proven_delta(
    k: int, beta: Real, epsilon: Real, epsilon_prime: Real, penalty: Penalty = "k-anonymity", lattice_size: int = 1
) -> float:
    """The δ that is proven (see the module), never below its exact value.

    Parameters
    ----------
    k
        Least class size released.
    beta
        Probability with which a row is kept, between 0 and 1.
    epsilon, epsilon_prime
        The whole guarantee's ε, and the part ε′ that the draw of the node spends; 0 draws every node alike.
    penalty
        What the utility of a node depends on.
    lattice_size
        Number of nodes; counts for "suppression" only.

    Raises
    ------
    JobError
        For parameters outside the theorem; says which would be inside.
    """
    _check_node(k, penalty, lattice_size)
    _check(beta, epsilon, epsilon_prime)
    spent = exact(epsilon_prime)
    rho = spent / 2
    if penalty == "suppression" and spent:
        rho *= Fraction(k, k - 1)
    odds = exp_bounds(exact(epsilon))[0] / (1 - exact(beta)) - 1
    gamma = odds / (odds + exp_bounds(rho)[1])
    if penalty == "suppression" and spent:
        return min(1.0, lattice_size * tail(k, beta, gamma) * _SLACK)
    return min(1.0, exp(spent / 2) * tail(k, beta, gamma) * _SLACK)


def published_delta(k: int, beta: Real, remaining: Real) -> float:
    """The sources' D(k, β, ε − ε′): for comparison with figures in print, not a guarantee.

    Parameters
    ----------
    remaining
        ε − ε′, at least −ln(1 − β); within 1e-12 of it, it is taken as that value, and γ as β·(2 − β).

    Source
        Li, Qardaji & Su 2012, theorem 5; Mazzone 2019, §4.5.2.
    """
    _check_node(k, "k-anonymity", 1)
    _check(beta, remaining, 0, least=False)
    share, left = exact(beta), exact(remaining)
    low, high = log_bounds(1 - share)
    if left < -low - Fraction(1, 10**12):
        raise JobError(_too_small(share, Fraction(0), left), key=_KEY)
    if left <= -high + Fraction(1, 10**12):
        return tail(k, share, share * (2 - share))
    return tail(k, share, 1 - (1 - share) / exp_bounds(left)[0])


def largest_epsilon_prime(beta: Real, epsilon: Real) -> Fraction:
    """The most that drawing the node may spend: ε + ln(1 − β), rounded down to a billionth.

    Raises
    ------
    JobError
        If ε is below −ln(1 − β): then nothing is left for the draw.
    """
    _check(beta, epsilon, 0)
    most = exact(epsilon) + log_bounds(1 - exact(beta))[0]
    return Fraction(most * _STEP // 1, _STEP)


def largest_epsilon_prime_for(
    delta: Real, k: int, beta: Real, epsilon: Real, penalty: Penalty = "k-anonymity", lattice_size: int = 1
) -> Fraction | None:
    """The greatest ε′ (to a billionth) for which at most `delta` is proven; None if not even ε′ = 0 has it."""
    most, wanted = int(largest_epsilon_prime(beta, epsilon) * _STEP), float(exact(delta))

    def proves(steps: int) -> bool:
        return proven_delta(k, beta, epsilon, Fraction(steps, _STEP), penalty, lattice_size) <= wanted

    if proves(most):
        return Fraction(most, _STEP)
    if not proves(0):
        return None
    low, high = 0, most  # δ grows with ε′: γ* falls, and so does nothing that makes up for it
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if proves(middle) else (low, middle)
    return Fraction(low, _STEP)


def smallest_k(
    delta: Real,
    beta: Real,
    epsilon: Real,
    epsilon_prime: Real | None = None,
    penalty: Penalty = "k-anonymity",
    lattice_size: int = 1,
) -> int:
    """The smallest k for which at most `delta` is proven; `epsilon_prime` as large as it may be if None.

    δ never grows with k (a maximum over fewer thresholds), so bisection finds it.

    Raises
    ------
    JobError
        For parameters outside the theorem, or a δ that no k reaches.
    """
    spent = largest_epsilon_prime(beta, epsilon) if epsilon_prime is None else exact(epsilon_prime)
    wanted = min(float(exact(delta)), float(exact(beta)) * (1 - 1e-12))
    if wanted <= _TINY * 10:
        raise JobError(f"delta is {wanted:g}; it must be above 0", key=f"{_KEY}.delta")
    low, high = 1, 2
    while proven_delta(high, beta, epsilon, spent, penalty, lattice_size) > wanted:
        low, high = high, 2 * high
        if high > _LARGEST_K:
            raise JobError(f"no k up to {_LARGEST_K:,} proves delta {wanted:g}; raise delta", key=f"{_KEY}.delta")
    while high - low > 1:
        middle = (low + high) // 2
        enough = proven_delta(middle, beta, epsilon, spent, penalty, lattice_size) <= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high


def _check_node(k: int, penalty: Penalty, nodes: int) -> None:
    """Refuse what no node could be drawn by."""
    if penalty not in PENALTIES:
        raise JobError(f"penalty is {penalty!r}; choose {' or '.join(PENALTIES)}", key=f"{_KEY}.penalty")
    if k < 1 or (penalty == "suppression" and k < 2):
        raise JobError(f"k is {k}; it must be at least {1 + (penalty == 'suppression')}", key="privacy.k")
    if nodes < 1:
        raise JobError(f"the lattice has {nodes} nodes; it must have at least 1", key=_KEY)


def _check(beta: Real, epsilon: Real, spent: Real, *, least: bool = True) -> None:
    """Refuse what lies outside the theorem, and say what lies inside."""
    numbers: dict[str, Real] = {"beta": beta, "epsilon": epsilon, "epsilon_prime": spent}
    for name, value in numbers.items():
        if abs(exact(value)) > _LARGEST_EPSILON:
            raise JobError(f"{name} must be a number of at most {_LARGEST_EPSILON}", key=f"{_KEY}.{name}")
    if not 0 < exact(beta) < 1:
        raise JobError(f"beta is {float(beta):g}; it must lie between 0 and 1", key=f"{_KEY}.beta")
    if exact(spent) < 0:
        raise JobError(f"epsilon_prime is {float(spent):g}; it must be at least 0", key=f"{_KEY}.epsilon_prime")
    if least and exact(epsilon) - exact(spent) < -log_bounds(1 - exact(beta))[0]:
        raise JobError(_too_small(exact(beta), exact(spent), exact(epsilon)), key=f"{_KEY}.epsilon")


def _too_small(beta: Fraction, spent: Fraction, epsilon: Fraction) -> str:
    """What would be possible: a greater ε for this β, or a smaller β for this ε."""
    least = _up(float(spent) - log1p(-float(beta)))
    draw = f" and epsilon_prime {float(spent):g}" if spent else ""
    fitting = 1 - exp(float(spent - epsilon))
    other = f", or beta at most {_down(fitting):g}" if fitting > 1e-4 else ""
    return f"epsilon {float(epsilon):g} is too small for beta {float(beta):g}{draw}: take at least {least:g}{other}"


def _up(value: float) -> float:
    return (int(value * 10**4) + 1) / 10**4


def _down(value: float) -> float:
    return int(value * 10**4) / 10**4
