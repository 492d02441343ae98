"""Cells that break all failing sets: against all choices, and a bound that is one."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.itemset import cover as covering
from sqldeid.tables.itemset.cover import cover
from tests.support.examples import examples


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    cells, size = draw(st.integers(3, 8)), draw(st.integers(2, 3))
    one = st.lists(st.integers(0, cells - 1), min_size=size, max_size=size, unique=True)
    sets = draw(st.lists(one, min_size=1, max_size=12))
    weights = draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells))
    return np.array(sets, dtype=np.int64), np.array(weights, dtype=np.float64)


def least(sets: np.ndarray, weights: np.ndarray) -> float:
    choices = chain.from_iterable(combinations(range(len(weights)), n) for n in range(len(weights) + 1))
    broken = (c for c in choices if all(set(c) & set(one) for one in sets.tolist()))
    return min(float(sum(weights[list(c)])) for c in broken)


@given(problems())
@settings(max_examples=examples(200), deadline=None)
def test_the_lightest_cells_are_chosen(problem: tuple[np.ndarray, np.ndarray]) -> None:
    sets, weights = problem
    found = cover(sets, weights)
    assert all(set(found.chosen.tolist()) & set(one) for one in sets.tolist())
    assert found.weight == float(weights[found.chosen].sum()) == least(sets, weights)
    assert abs(found.bound - found.weight) < 1e-6


def test_what_is_too_large_to_solve_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "EXACT_CELLS", 0)
    rng = np.random.default_rng(5)
    for _ in range(40):
        sets = np.array([rng.choice(9, 2, replace=False) for _ in range(14)])
        weights = rng.integers(1, 9, 9).astype(float)
        found = cover(sets, weights)
        assert all(set(found.chosen.tolist()) & set(one) for one in sets.tolist())
        assert found.bound <= least(sets, weights) + 1e-6 <= found.weight + 1e-6
        assert found.weight <= 2 * found.bound + 1e-3  # local ratio: twice the dual at most, for pairs


def test_nothing_to_break_takes_nothing() -> None:
    found = cover(np.zeros((0, 2), dtype=np.int64), np.ones(3))
    assert (len(found.chosen), found.weight, found.bound) == (0, 0.0, 0.0)
