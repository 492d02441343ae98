"""Targets: what can be met at all, by brute force; and that reachable targets can be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.series.feasible import greatest_variance, least_variance, nearest_extremes
from sqldeid.series.targets import Features, Targets, make_targets
from tests.support.examples import examples
from tests.support.series_data import features


def features_of(series: list[np.ndarray], people: list[int] | None = None, variable: int = 0) -> Features:
    found = np.array([features(np.asarray(x, dtype=float)) for x in series])
    n = np.array([len(x) for x in series])
    person = np.array(people if people is not None else range(len(series)))
    return Features(person, np.full(len(series), variable), n, *found.T)


def targets(series: list[np.ndarray], mode: str, **more: int) -> Targets:
    return make_targets(features_of(series), np.zeros(len(series), dtype=np.int64), mode, **more)


def test_source_targets_are_class_means_and_may_be_out_of_reach():
    made = targets([np.array([0, 0, 20, 20]), np.full(4, 10)], "source")
    assert made.values.tolist() == [[10, 50, 5, 15]] * 2
    assert not made.dropped.any()
    five = np.array([5.0, 5.0])
    assert greatest_variance(five, five, np.array([4, 4])).tolist() == [25, 25]


def test_with_standard_deviations_the_fixture_is_in_reach():
    made = targets([np.array([0, 0, 20, 20]), np.full(4, 10)], "reachable")
    np.testing.assert_allclose(made.values, [[10, 25, 5, 15]] * 2)
    np.testing.assert_allclose(made.class_mean, [[10, 50, 5, 15]] * 2)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_least_and_greatest_variance_are_those_of_all_series_on_a_grid(n):
    grid = np.arange(-6, 7)
    for below, above in [(6, 6), (3, 5), (6, 2), (1, 2)]:
        found = [
            np.mean(np.square(rest)) * (n - 2) / n + (below**2 + above**2) / n
            for rest in product(grid, repeat=n - 2)
            if sum(rest) == below - above and min(rest) >= -below and max(rest) <= above
        ]
        arguments = np.array([float(below)]), np.array([float(above)]), np.array([n])
        feasible = above <= (n - 1) * below and below <= (n - 1) * above
        assert bool(found) == feasible
        if found:
            assert least_variance(*arguments)[0] <= min(found) + 1e-9
            assert greatest_variance(*arguments)[0] == pytest.approx(max(found))
            even = (below - above) % (n - 2) == 0
            assert not even or least_variance(*arguments)[0] == pytest.approx(min(found))


@given(st.integers(0, 10**6))
@settings(max_examples=examples(30), deadline=None)
def test_nearest_extremes_are_reachable_and_nothing_much_nearer_is(seed):
    draw = np.random.default_rng(seed)
    n, (below, above) = int(draw.integers(3, 12)), draw.uniform(0.1, 6, 2)
    variance = float(draw.uniform(0.01, 20))
    one = np.array
    found = nearest_extremes(one([below]), one([above]), one([variance]), one([n]))
    moved = abs(found[0][0] - below) + abs(found[1][0] - above)

    def reachable(b, a, slack):
        room = (a <= (n - 1) * b + slack) & (b <= (n - 1) * a + slack)
        size = np.full(np.shape(b), n)
        return (
            room
            & (least_variance(b, a, size) <= variance + slack)
            & (greatest_variance(b, a, size) >= variance - slack)
        )

    assert reachable(*found, 1e-6)[0]
    if n < 5:
        return  # so few records leave a curve, which a grid misses
    steps = np.linspace(0, 12, 241)
    b, a = (part.ravel() for part in np.meshgrid(steps, steps))
    best = np.min((np.abs(b - below) + np.abs(a - above))[reachable(b, a, 0.0)])
    assert moved <= best * 2 + 0.1  # twice the grid's step; whole numbers of records make the bound uneven


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=examples(30), deadline=None)
def test_reachable_targets_can_be_met_by_each_member(seed, members):
    draw = np.random.default_rng(seed)
    series = [np.round(draw.normal(80, draw.uniform(0, 20), draw.integers(1, 12))) for _ in range(members)]
    made = targets(series, "reachable")
    assert made.dropped.tolist() == [len(x) < 3 for x in series]
    for x, (mean, variance, low, high) in zip(series, made.values, strict=True):
        if len(x) < 3:
            assert np.isnan(mean)
            continue
        below, above, n = np.array([mean - low]), np.array([high - mean]), np.array([len(x)])
        found = nearest_extremes(below, above, np.array([variance]), n)
        np.testing.assert_allclose(found, (below, above), atol=1e-6)
    kept = [x for x in series if len(x) >= 3]
    if kept:
        row = made.values[~made.dropped][0]
        assert row[0] == pytest.approx(np.mean([x.mean() for x in kept]))
        assert row[1] <= np.mean([x.std() for x in kept]) ** 2 + 1e-9
        assert row[2] >= np.mean([x.min() for x in kept]) - 1e-9
        assert row[3] <= np.mean([x.max() for x in kept]) + 1e-9


def test_a_target_of_fewer_than_k_members_is_not_made():
    series = [np.arange(4.0), np.arange(5.0), np.arange(2.0)]
    assert targets(series, "reachable", least_members=3).dropped.all()
    assert targets(series, "source", least_members=3).dropped.sum() == 0
    assert targets(series, "reachable", least_members=2).dropped.tolist() == [False, False, True]


def test_row_order_changes_no_bit():
    draw = np.random.default_rng(4)
    series = [draw.normal(80, 9, 7) for _ in range(40)]
    classes, order = draw.integers(0, 4, 40), draw.permutation(40)
    one = features_of(series)
    two = Features(*(getattr(one, name)[order] for name in Features.__slots__))
    for mode in ("source", "reachable"):
        first, second = make_targets(one, classes, mode), make_targets(two, classes[order], mode)
        assert (first.values[order] == second.values).all()
