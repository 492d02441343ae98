"""Combinations of variables are made common to k persons, at a price that is small and never everybody."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.series.patterns import share_patterns
from tests.support.examples import examples


def combinations(kept: np.ndarray) -> Counter[tuple[bool, ...]]:
    return Counter(tuple(row) for row in kept.tolist() if any(row))


@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 10**6), persons=st.integers(1, 40), variables=st.integers(1, 6), k=st.integers(1, 8))
def test_every_combination_is_that_of_k_persons_whatever_the_order(seed, persons, variables, k):
    rng = np.random.default_rng(seed)
    present = rng.random((persons, variables)) < rng.choice([0.3, 0.8, 0.97], variables)
    records = rng.integers(1, 50, present.shape)
    kept = share_patterns(present, records, k)
    assert not (kept & ~present).any()
    assert min(combinations(kept).values(), default=k) >= k
    order = rng.permutation(persons)
    assert (share_patterns(present[order], records[order], k) == kept[order]).all()
    if min(combinations(present).values(), default=k) >= k:
        assert (kept == present).all()


def test_the_variable_with_the_fewest_records_goes():
    """One of seven lacks the second variable: its six records go, or the one who lacks it gives up forty."""
    present = np.array([[True, True]] * 6 + [[True, False]])
    cheap, dear = np.array([[40, 1]] * 7), np.array([[40, 30]] * 7)
    assert share_patterns(present, cheap, 3).tolist() == [[True, False]] * 7
    assert share_patterns(present, dear, 3).tolist() == [[True, True]] * 6 + [[False, False]]


@pytest.mark.parametrize(("least", "left"), [(0, 6), (7, 7)])
def test_nobody_is_given_up_where_that_would_lose_a_length(least, left):
    present = np.array([[True, True]] * 6 + [[True, False]])
    records = np.array([[40, 30]] * 7)
    assert share_patterns(present, records, 3, least).any(axis=1).sum() == left
