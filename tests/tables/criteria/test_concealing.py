"""Risks under partial knowledge equal the sum over all states, written out."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.criteria.knowledge import Cells, decide, risks
from tests.support.examples import examples


def cells_of(rows: list[tuple[int, ...]]) -> tuple[Cells, list[tuple[int, ...]]]:
    """Distinct rows: the class first, then the known columns."""
    counted = Counter(rows)
    keys = sorted(counted)
    array = np.array(keys, dtype=np.int64).reshape(len(keys), -1)
    return Cells(array[:, 0], array[:, 1:], np.array([counted[k] for k in keys], dtype=np.int64)), keys


def by_states(rows: list[tuple[int, ...]], row: tuple[int, ...], known: list[float]) -> float:
    """Formula 5.1, state by state."""
    total = 0.0
    for state in product([False, True], repeat=len(known)):
        chance = prod(p if k else 1 - p for p, k in zip(known, state, strict=True))
        if chance:
            same = [
                r for r in rows if r[0] == row[0] and all(not k or r[i + 1] == row[i + 1] for i, k in enumerate(state))
            ]
            total += chance / len(same)
    return total


tables = st.integers(0, 4).flatmap(
    lambda m: st.tuples(
        st.lists(st.tuples(st.integers(0, 2), *[st.integers(0, 3)] * m), min_size=1, max_size=25),
        st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.9, 1.0]), min_size=m, max_size=m),
    )
)


@settings(max_examples=examples(300), deadline=None)
@given(tables, st.sampled_from([0.05, 0.1, 0.2, 0.23, 0.34, 0.5, 0.9, 1.0]))
def test_equals_the_sum_over_states(case: tuple[list[tuple[int, ...]], list[float]], most: float) -> None:
    rows, known = case
    cells, keys = cells_of(rows)
    expected = np.array([by_states(rows, key, known) for key in keys])
    assert risks(cells, known) == pytest.approx(expected, abs=1e-12)
    clear = np.abs(expected - most) > 1e-9
    assert (decide(cells, known, most)[clear] == (expected > most)[clear]).all()


def test_the_worked_example() -> None:
    """Class M: 3 rows rich, 2 poor; class F: 5 rows rich; known with probability 0.1: 0.23, so 1/m = 4.3478."""
    rows = [(0, 0)] * 3 + [(0, 1)] * 2 + [(1, 0)] * 5
    cells, _ = cells_of(rows)
    assert max(risks(cells, [0.1])) == pytest.approx(0.23)
    assert 1 / max(risks(cells, [0.1])) == pytest.approx(4.3478, abs=5e-5)


def test_a_risk_equal_to_m_passes() -> None:
    cells, _ = cells_of([(0, 0)] * 3 + [(0, 1)] * 2)
    assert not decide(cells, [0.1], 0.23).any()
    assert decide(cells, [0.1], 0.2299999).tolist() == [False, True]


@pytest.mark.deep
def test_twelve_columns_in_bounded_time() -> None:
    """4,096 states over 6,000 rows of binary columns; most are decided by the heaviest few."""
    rng = np.random.default_rng(5)
    values = rng.integers(0, 2, (6_000, 12))
    owner = rng.integers(0, 40, 6_000)
    rows = [(int(o), *map(int, v)) for o, v in zip(owner, values, strict=True)]
    cells, _ = cells_of(rows)
    exact = risks(cells, [0.1] * 12)
    assert (decide(cells, [0.1] * 12, 0.023) == (exact > 0.023)).all()
    assert 0 < (exact > 0.023).mean() < 1
