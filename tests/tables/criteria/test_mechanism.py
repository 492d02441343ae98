"""Rows and nodes are drawn with exactly the probabilities that are claimed."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from sqldeid.errors import SqldeidError
from sqldeid.tables.criteria import mechanism
from sqldeid.tables.criteria.mechanism import (
    Proposals,
    SeededRandomness,
    SystemRandomness,
    bernoulli,
    bernoulli_exp,
    draw,
    draw_below,
    log_sum_exp_probabilities,
    sample_rows,
)
from tests.support.examples import examples

SAME = 1e-5
"""Probability with which a test of a correct mechanism fails for some seed; the seeds are fixed."""


class Told:
    """Words that the test chooses."""

    secret = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count):
        drawn, self.left = self.left[:count], self.left[count:]
        assert len(drawn) == count
        return np.array(drawn, dtype=np.uint64)


def test_bernoulli_compares_digit_by_digit():
    """A third is 0.0101… in binary: its digits in base 2**64 are all the same."""
    digit = (2**64 - 1) // 3
    told = Told(digit - 1, digit, digit + 1, digit, digit + 1, digit, digit - 1)
    assert bernoulli(4, Fraction(1, 3), told).tolist() == [True, False, False, True]
    assert told.left == []


def test_bernoulli_of_a_dyadic_number_needs_one_word():
    """Words equal to the only digit are not below it."""
    half = 2**63
    assert bernoulli(3, Fraction(1, 2), Told(half - 1, half, half + 1)).tolist() == [True, False, False]
    assert bernoulli(3, Fraction(1), Told()).all()
    assert not bernoulli(3, Fraction(0), Told()).any()


@settings(max_examples=examples(50), deadline=None)
@given(counts=st.lists(st.integers(0, 30), max_size=40), block=st.integers(1, 50), seed=st.integers(0, 2**32))
def test_rows_are_counted_into_their_classes(counts, block, seed):
    """Whatever the blocks: as if rows were drawn one after the other."""
    total = sum(counts)
    flags = bernoulli(total, Fraction(3, 10), SeededRandomness(seed))
    ends = np.cumsum([0, *counts])
    expected = [int(flags[a:b].sum()) for a, b in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "_BLOCK", block)
        found = sample_rows(np.array(counts, dtype=np.int64), 0.3, SeededRandomness(seed))
    assert found.tolist() == expected


@pytest.mark.parametrize("beta", [0.1, 0.75])
def test_samples_are_binomial(beta):
    found = sample_rows(np.full(20_000, 7, dtype=np.int64), beta, SeededRandomness(7))
    expected = binom.pmf(np.arange(8), 7, beta) * 20_000
    rare = expected < 5
    observed = np.bincount(found, minlength=8)
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    assert chisquare(observed[keep], expected[keep]).pvalue > SAME


def test_samples_from_the_system_differ():
    """Drawn from the system's entropy, not from a seed."""
    counts = np.full(100, 50, dtype=np.int64)
    assert (
        sample_rows(counts, 0.5, SystemRandomness()).tolist() != sample_rows(counts, 0.5, SystemRandomness()).tolist()
    )
    assert SystemRandomness.secret
    assert not SeededRandomness.secret


def test_impossible_samples_are_refused():
    for counts, beta in (([3, -1], 0.5), ([3], 1.5), ([3], -0.5)):
        with pytest.raises(SqldeidError):
            sample_rows(np.array(counts, dtype=np.int64), beta, SeededRandomness(1))


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 2**64, 2**64 + 1])
def test_draw_below_is_uniform(limit):
    random = SeededRandomness(3)
    drawn = [draw_below(limit, random) for _ in range(2000)]
    assert 0 <= min(drawn) <= max(drawn) < limit
    tenth = max(1, -(-limit // 10))
    expected = [min(tenth, limit - a) / limit * 2000 for a in range(0, min(limit, 10 * tenth), tenth)]
    observed = np.bincount([d // tenth for d in drawn], minlength=len(expected))
    assert len(expected) == 1 or chisquare(observed, expected).pvalue > SAME


def test_bernoulli_exp_decides_on_proven_bounds():
    """The first word that is above 2**64·exp(-1) is rejected, the one below accepted, the one in between asks on."""
    edge = int(Fraction(repr(exp(-1))) * 2**64)  # exp(-1) as a float is within 2**11 of the truth
    assert bernoulli_exp(Fraction(1), Fraction(-1), Told(edge - 2**12))
    assert not bernoulli_exp(Fraction(1), Fraction(-1), Told(edge + 2**12))
    exact = 6786177901268885274  # floor(2**64/e)
    assert bernoulli_exp(Fraction(1), Fraction(-1), Told(exact - 1))
    assert bernoulli_exp(Fraction(1), Fraction(-1), Told(exact, 0))
    assert not bernoulli_exp(Fraction(1), Fraction(-1), Told(exact, 2**64 - 1))
    with pytest.raises(SqldeidError):
        bernoulli_exp(Fraction(2), Fraction(-1, 10), Told(0))


def frequencies(costs, draws, seed, bound=None):
    """How often each choice is drawn; `bound`: lower costs that proposals are made from."""
    random, exact = SeededRandomness(seed), [Fraction(c) for c in costs]
    if bound is None:
        drawn = [draw(np.array(costs), exact.__getitem__, random) for _ in range(draws)]
        return np.bincount(drawn, minlength=len(costs))
    proposals, counts = Proposals(np.array(bound)), np.zeros(len(costs))
    while counts.sum() < draws:
        choice = proposals.draw(random)
        counts[choice] += proposals.accept(choice, exact[choice], random)
    return counts


COSTS = [3.0, 0.5, 0.75, 2.0, 0.5, 40.0, 1.25]


@pytest.mark.parametrize("bound", [None, [0.0] * 7, [1.5, 0.5, 0.0, 2.0, -0.25, 5.0, 1.25]])
def test_choices_follow_the_exponential_mechanism(bound):
    """Also where proposals are made from bounds of the costs; and a draw that is off by 30 % is told apart."""
    observed = frequencies(COSTS, 2500, 11, bound)
    assert observed[5] == 0  # probability 1e-17
    weights = np.delete(log_sum_exp_probabilities(-np.array(COSTS)), 5)
    assert chisquare(np.delete(observed, 5), weights / weights.sum() * 2500).pvalue > SAME
    off = frequencies([1.3 * c for c in COSTS], 2500, 12, None if bound is None else [1.3 * b for b in bound])
    assert chisquare(np.delete(off, 5), weights / weights.sum() * 2500).pvalue < SAME


@pytest.mark.parametrize("units", [1, 3])
def test_coarse_proposals_change_no_probability(units, monkeypatch):
    """The units of the proposals, here halves and eighths, are made up for by rejection."""
    monkeypatch.setattr(mechanism, "_UNITS", units)
    observed = frequencies(COSTS, 2500, 13)
    weights = np.delete(log_sum_exp_probabilities(-np.array(COSTS)), 5)
    assert chisquare(np.delete(observed, 5), weights / weights.sum() * 2500).pvalue > SAME


def test_a_bound_above_the_cost_is_refused():
    """Fails closed: what was proposed too rarely cannot be made up for."""
    proposals = Proposals(np.array([0.0, 5.0]))
    with pytest.raises(SqldeidError, match="weighed too low"):
        proposals.accept(1, Fraction(1), SeededRandomness(1))


def test_huge_costs_do_not_underflow():
    """Exponents of a hundred million nats: the least cost is drawn."""
    costs = np.array([2e8, 1e8, 3e8])
    assert draw(costs, lambda i: Fraction(int(costs[i])), SeededRandomness(2)) == 1


def test_log_sum_exp_shares_infinity_alike():
    assert log_sum_exp_probabilities(np.array([1.0, np.inf, np.inf])).tolist() == [0, 0.5, 0.5]
    assert log_sum_exp_probabilities(np.array([1e6, 1e6 + 1])).tolist() == pytest.approx(
        [1 / (1 + exp(1)), 1 / (1 + exp(-1))]
    )
