"""The delta of epsilon-safe: values in print, a slow maximum, a counterexample to the sources' delta, refusals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, comb, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sqldeid.errors import JobError
from sqldeid.tables.criteria.epsilon_safe import Draw, ceil_digits, every_draw, plan_table, promise
from sqldeid.tables.criteria.rational import exp_bounds, log_bounds
from sqldeid.tables.criteria.sampling import (
    _divergence,
    largest_epsilon_prime,
    largest_epsilon_prime_for,
    proven_delta,
    published_delta,
    smallest_k,
    tail,
)
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("k", "beta", "remaining", "printed"),
    [
        (5, 0.25, 1.0, 4.64e-3),
        (20, 0.25, 1.0, 1.21e-7),
        (20, 0.5, 1.0, 7.72e-4),
        (50, 0.5, 1.0, 2.29e-7),
        (50, 0.75, 2.0, 7.65e-6),
    ],
)
def test_published_values(k, beta, remaining, printed):
    assert f"{published_delta(k, beta, remaining):.2e}" == f"{printed:.2e}"


@pytest.mark.parametrize(
    ("k", "beta", "printed"),
    [(25, 0.1, 1.197e-3), (25, 0.25, 1.462e-3), (25, 0.44, 1.818e-3), (20, 0.1, 3.586e-3), (50, 0.75, 2.483e-4)],
)
def test_published_values_with_the_greatest_draw(k, beta, printed):
    """Both at the very limit and a billionth inside it, where no tie may be decided otherwise."""
    inside = Fraction(2) - largest_epsilon_prime(beta, 2)
    assert f"{published_delta(k, beta, -log(1 - beta)):.3e}" == f"{printed:.3e}"
    assert f"{published_delta(k, beta, inside):.3e}" == f"{printed:.3e}"


def test_strictly_more_where_the_threshold_is_an_integer():
    assert published_delta(5, 0.5, log(2)) == pytest.approx(0.109375, abs=1e-15)
    assert tail(5, Fraction(1, 2), Fraction(3, 4)) == pytest.approx(0.109375, abs=1e-15)
    assert tail(5, Fraction(1, 2), Fraction(3, 4) - Fraction(1, 10**30)) == pytest.approx(0.14453125, abs=1e-15)


def slow_tail(k: int, beta: Fraction, gamma: Fraction, most: int) -> Fraction:
    """The maximum as it is defined, term by term in fractions."""
    best = Fraction(0)
    for n in range(ceil(k / gamma - 1), most + 1):
        total = sum((comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(n + 1) if j > gamma * n), Fraction(0))
        best = max(best, total)
    return best


@settings(max_examples=examples(40), deadline=None)
@given(k=st.integers(1, 12), b=st.integers(1, 9), part=st.integers(1, 20))
def test_tail_is_the_maximum_of_all_terms(k, b, part):
    """Also over four times as many n as the cut-off looks at for such numbers."""
    beta = Fraction(b, 10)
    gamma = beta + (1 - beta) * Fraction(part, 21)
    expected = slow_tail(k, beta, gamma, 60)
    assert tail(k, beta, gamma) >= float(expected) * (1 - 1e-12)
    if part > 6:  # then the maximum lies in the first terms
        assert tail(k, beta, gamma) == pytest.approx(float(expected), rel=1e-10)


@settings(max_examples=examples(100), deadline=None)
@given(b=st.integers(1, 999), digits=st.integers(1, 70), part=st.integers(1, 999), near=st.sampled_from(["beta", "1"]))
def test_the_rate_by_which_the_search_stops_is_never_too_great(b, digits, part, near):
    """Against Decimal of 300 digits, for γ as near β or 1 as 10^-70: in floats it was several times the true one."""
    beta, gap = Fraction(b, 1000), Fraction(part, 1000) / 10**digits
    gamma = beta + gap * (1 - beta) if near == "beta" else 1 - gap * (1 - beta)
    with localcontext() as context:
        context.prec = 300
        g, c = (Decimal(x.numerator) / x.denominator for x in (gamma, beta))
        true = g * (g / c).ln() + (1 - g) * ((1 - g) / (1 - c)).ln()
        found = Decimal(_divergence(gamma, beta))
        assert 0 < found <= true
        assert found >= true * Decimal("0.999") or gap < Fraction(1, 10**25)


@pytest.mark.parametrize("epsilon", [36.0, 37.0, 40.0, 50.0, 99.99, 100.0])
@pytest.mark.parametrize("beta", [1e-6, 0.01, 0.25, 0.4])
@pytest.mark.parametrize("penalty", ["k-anonymity", "suppression"])
def test_a_large_epsilon_has_a_delta(epsilon, beta, penalty):
    """γ is so near 1 that all n rows of a class must be sampled: β^k; 1 − γ was 0 in floats, an internal error."""
    k, spent = 5, Fraction(1, 2)
    expected = (exp(0.25) if penalty == "k-anonymity" else 7) * beta**k
    found = proven_delta(k, beta, epsilon, spent, penalty, 7)
    assert expected <= found <= expected * (1 + 1e-8)
    assert published_delta(k, beta, epsilon) == pytest.approx(beta**k, rel=1e-12)
    assert smallest_k(beta**k * 2, beta, epsilon, spent) == k


@pytest.mark.parametrize("epsilon", [100.1, 800.0, 1e308])
def test_an_epsilon_that_is_no_promise_is_refused(epsilon):
    for ask in (lambda: proven_delta(5, 0.25, epsilon, 0.5), lambda: published_delta(5, 0.25, epsilon)):
        with pytest.raises(JobError, match="epsilon must be a number of at most 100") as refused:
            ask()
        assert refused.value.key == "search.epsilon_safe.epsilon"


def test_proven_delta_is_its_formula():
    """With floats, where none of them is near a tie."""
    k, beta, epsilon, spent = 20, 0.25, 1.0, 0.5
    odds = exp(epsilon) / (1 - beta) - 1
    for penalty, rho, factor in (("k-anonymity", spent / 2, exp(spent / 2)), ("suppression", spent * k / 38, 7)):
        gamma = odds / (odds + exp(rho))
        n = np.arange(ceil(k / gamma - 1), 400)
        expected = factor * binom.sf(np.floor(gamma * n), n, beta).max()
        found = proven_delta(k, beta, epsilon, spent, penalty, 7)
        assert expected <= found <= expected * (1 + 1e-8)


def test_without_a_draw_both_agree():
    assert proven_delta(20, 0.25, 1.0, 0) == pytest.approx(published_delta(20, 0.25, 1.0), rel=1e-8)
    assert proven_delta(20, 0.25, 1.0, 0, "suppression", 99) == proven_delta(20, 0.25, 1.0, 0)


def chosen_sizes(group: int, nodes: int, beta: float, low: int, peak: int) -> np.ndarray:
    """Law of the size (without t) of the class that is chosen, by a choice with epsilon' = 1 of one of `nodes` nodes.

    Node i puts t into a class with `group` other rows, disjoint between nodes, x_i of them sampled. Node i is chosen in
    proportion to m(x_i), m growing e-fold a row from `low` to `peak` and falling likewise beyond. A row other than t
    changes one x_i by one and so each probability e-fold at most; t changes none. So the choice is 1-private.
    E[1/(m + sum of the others)] is the integral over s of exp(-s·m)·E[exp(-s·m(x))]^(nodes - 1).
    """
    x = np.arange(group + 1)
    law = binom.pmf(x, group, beta)
    m = np.exp(np.where(x <= peak, np.maximum(x - low, 0), np.maximum(2 * peak - x - low, 0)).astype(float))
    t = np.linspace(-60.0, 12.0, 8001)
    s = np.exp(t)
    others = np.exp(-np.outer(s, m)) @ law
    integrand = np.exp(-np.outer(s, m)) * (others ** (nodes - 1) * s)[:, None]
    return nodes * law * m * (integrand.sum(axis=0) * (t[1] - t[0]))


def test_the_sources_delta_does_not_hold_for_every_private_choice():
    """k=50, beta=0.5, epsilon'=1, epsilon=1.6932: claimed 1.7e-5; a choice among 100,000 nodes exceeds 8.2e-5."""
    k, beta, epsilon = 50, 0.5, 1.6932
    claimed = published_delta(k, beta, Fraction("0.6932"))
    assert f"{claimed:.1e}" == "1.7e-05"
    law = chosen_sizes(62, 100_000, beta, 34, 49)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    padded = np.concatenate([[0], law, [0]])
    without = padded[1:]
    with_t = beta * padded[:-1] + (1 - beta) * padded[1:]
    true = np.maximum(with_t - exp(epsilon) * without, 0)[k:].sum()  # of the sizes that are shown
    assert true >= 8.2e-5


@settings(max_examples=examples(30), deadline=None)
@given(b=st.integers(1, 60), more=st.integers(1, 200), digits=st.integers(1, 9))
def test_smallest_k_is_the_smallest(b, more, digits):
    beta, delta = b / 100, 10.0**-digits
    epsilon = round(-log(1 - beta) + more / 100, 4)
    k = smallest_k(delta, beta, epsilon)
    spent = largest_epsilon_prime(beta, epsilon)
    assert proven_delta(k, beta, epsilon, spent) <= delta
    assert k == 2 or proven_delta(k - 1, beta, epsilon, spent) > min(delta, beta) * (1 - 1e-9)


@settings(max_examples=examples(20), deadline=None)
@given(k=st.integers(5, 60), b=st.integers(5, 60), digits=st.integers(2, 8), penalty=st.sampled_from([1, 0]))
def test_greatest_draw_for_a_delta(k, b, digits, penalty):
    beta, delta, kind = b / 100, 10.0**-digits, ("suppression", "k-anonymity")[penalty]
    found = largest_epsilon_prime_for(delta, k, beta, 1.5, kind, 50)
    if found is None:
        assert proven_delta(k, beta, 1.5, 0, kind, 50) > delta
        return
    assert proven_delta(k, beta, 1.5, found, kind, 50) <= delta
    if found < largest_epsilon_prime(beta, 1.5):
        assert proven_delta(k, beta, 1.5, found + Fraction(1, 10**9), kind, 50) > delta


@given(st.fractions(-50, 50))
def test_bounds_of_exponentials(x):
    low, high = exp_bounds(x, 30)
    assert low < high <= low * (1 + Fraction(1, 10**26))
    inner_low, inner_high = log_bounds(low)[0], log_bounds(high)[1]
    assert inner_low <= x <= inner_high


@pytest.mark.parametrize("x", [Fraction(1), 1 + Fraction(1, 10**70), 1 - Fraction(1, 10**300)])
def test_bounds_of_the_logarithm_of_1(x):
    """0 on one side or both: to take the decimal next to it never ended, for beta 1e-300 as well."""
    low, high = log_bounds(x)
    assert low <= 0 <= high and high - low < Fraction(1, 10**58)
    assert low <= x - 1 and 1 - 1 / x <= high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (20, 0.5, 0.5, 0.1),
            r"too small for beta 0.5 and epsilon_prime 0.1: take at least 0.79\d+, or beta at most 0.32",
        ),
        ((20, 1.0, 1, 0.1), "beta is 1; it must lie between"),
        ((20, 0.5, float("nan"), 0.1), "finite"),
        ((20, 0.5, 1, -0.1), "epsilon_prime is -0.1"),
        ((0, 0.5, 1, 0.1), "k is 0; it must be at least 1"),
        ((1, 0.5, 1, 0.1, "suppression"), "k is 1; it must be at least 2"),
        ((20, 0.5, 1, 0.1, "loss"), "choose k-anonymity or suppression"),
    ],
)
def test_what_lies_outside_the_theorem_is_refused(arguments, message):
    with pytest.raises(JobError, match=message):
        proven_delta(*arguments)


def test_refused_promises_say_what_is_possible():
    with pytest.raises(JobError, match=r"take k at least 22") as refused:
        promise(Draw(5, 0.25, 1.0), delta=1e-6, epsilon_prime=largest_epsilon_prime(0.25, 1.0))
    assert refused.value.key == "search.epsilon_safe.delta"
    with pytest.raises(JobError, match=r"delta 9.45e-1 is proven and 0.9 is the most allowed: take k at least 2"):
        promise(Draw(1, 0.9, 2.4))
    with pytest.raises(JobError, match="too small"):
        published_delta(20, 0.5, 0.69)
    assert promise(Draw(22, 0.25, 1.0), delta=1e-6).epsilon_prime == largest_epsilon_prime(0.25, 1.0)


def test_warned_when_delta_reaches_one_in_the_population():
    made = promise(Draw(20, 0.25, 1.0), population=10**6)
    assert "no promise to any one person" in promise(Draw(5, 0.25, 1.0)).warnings[0]
    assert "population of 1,000,000" in made.warnings[0]
    assert promise(Draw(20, 0.25, 1.0), population=1000).warnings == ()
    assert made.to_dict()["delta"] == made.delta


def test_plan_table_shows_the_admissible_region():
    rows = plan_table(every_draw([20, 50], [0.25, 0.9], [1.0]), delta=1e-7)
    assert [(r.k, r.beta, r.admissible) for r in rows] == [
        (20, 0.25, False),
        (50, 0.25, True),
        (20, 0.9, False),
        (50, 0.9, False),
    ]
    assert "too small for beta 0.9" in rows[2].note
    assert rows[0].smallest_k == smallest_k(1e-7, 0.25, 1.0)
    with pytest.raises(JobError, match="beta is 2"):
        plan_table([Draw(20, 2.0, 1.0)])


@given(st.floats(1e-290, 1))
def test_printed_deltas_are_rounded_up(delta):
    assert delta <= float(ceil_digits(delta)) <= delta * 1.011
