"""Attackers and disagreement equal obvious loops; a release that gives everybody away is seen as such."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sqldeid.arrays import Ints
from sqldeid.series.attack_report import AttackReport, class_features
from sqldeid.series.attacks import (
    Attack,
    Scope,
    bends,
    combine,
    correlation,
    extreme_times,
    feature_attack,
    null_pattern,
    pattern_attack,
    point_attack,
    rank_attack,
    single_out,
    standard_scale,
    whole_attack,
)
from sqldeid.series.disagreement import euclidean, first_disagreement_shares, measure_disagreement, warped
from tests.support.series_data import features

NAN = np.nan


def draw_series(seed: int, persons: int = 24, variables: int = 3, length: int = 9) -> np.ndarray:
    draw = np.random.default_rng(seed)
    values = np.round(draw.normal(80, 12, (persons, variables, length)))
    first, last = draw.integers(0, 4, (2, persons, variables, 1))
    position = np.arange(length)
    values[(position < first) | (position >= length - last)] = NAN
    values[draw.random((persons, variables)) < 0.15] = NAN
    values[0] = np.round(draw.normal(80, 12, (variables, length)))
    return values


def changed(values: np.ndarray, seed: int, noise: float = 6) -> np.ndarray:
    return np.round(values + noise * np.random.default_rng(seed).standard_normal(values.shape))


def loops(distance, persons: list[int], everyone: int, classes: np.ndarray, tie: float = 1e-6) -> Attack:
    """Sole, link and chance in class by the definitions."""
    sole, link, inside, expected = 0, 0.0, 0.0, 0.0
    for i in persons:
        for members, weight in ((range(everyone), 0), ([j for j in range(everyone) if classes[j] == classes[i]], 1)):
            row = {j: distance(i, j) for j in members}
            least = min(row.values())
            nearest = [j for j in members if row[j] <= least + tie]
            chance = 1 / len(nearest) if i in nearest and math.isfinite(least) else 0.0
            if weight:
                inside, expected = inside + chance, expected + 1 / len(members)
            else:
                sole, link = sole + (chance == 1), link + chance
    return Attack(len(persons), sole, pytest.approx(link), pytest.approx(inside), pytest.approx(expected))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("standardised", [False, True])
def test_feature_attacker(seed, standardised):
    original = draw_series(seed)
    released, classes = changed(original, seed + 1), np.arange(24) % 5
    x, y = class_features(original), class_features(released)
    np.testing.assert_allclose(x.reshape(24, 3, 4), features(original))
    scale = np.nanstd(x, axis=0) if standardised else np.ones(12)

    def distance(i: int, j: int) -> float:
        both = ~np.isnan(x[i] - y[j])
        return math.sqrt(np.mean(((x[i] - y[j]) / scale)[both] ** 2)) if both.any() else math.inf

    found = feature_attack(x, y, Scope(classes), scale=standard_scale(x) if standardised else None)
    assert found == loops(distance, list(range(24)), 24, classes)
    some = np.array([2, 5, 11])
    assert feature_attack(x, y, Scope(classes, some), scale=scale) == loops(distance, [2, 5, 11], 24, classes)


def test_ties_are_shared_and_nothing_to_compare_is_no_link():
    original = np.array([[1.0], [1.0], [5.0], [NAN]])
    released = np.array([[2.0], [2.0], [5.0], [7.0]])
    found = feature_attack(original, released)
    assert (found.persons, found.sole, found.link) == (4, 1, 2.0)
    assert found.sole_share == 0.25
    assert found.link_share == 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("match", ["nearest", "affine"])
def test_point_attacker(seed, match):
    values = draw_series(seed)
    original, released, classes = values[:, 0], changed(values, seed)[:, 0], np.arange(24) % 5
    found = point_attack(original, released, 4, match, np.random.default_rng(9), Scope(classes))
    order = np.where(np.isnan(original), 2.0, np.random.default_rng(9).random(original.shape))
    able = [i for i in range(24) if (~np.isnan(original[i])).sum() >= 4]

    def distance(i: int, j: int) -> float:
        at = np.sort(np.argsort(order[i])[:4])
        at = at[~np.isnan(released[j, at])]
        x, y = original[i, at], released[j, at]
        if match == "nearest":
            return math.sqrt(np.mean((x - y) ** 2)) if len(at) else math.inf
        return 1 - np.corrcoef(x, y)[0, 1] if len(at) >= 3 and x.std() > 0 and y.std() > 0 else math.inf

    assert found == loops(distance, able, 24, classes)


def test_an_affine_image_is_found_by_correlation_only():
    original = np.random.default_rng(1).normal(80, 10, (40, 30))
    released = 120 + 0.3 * original
    draw = np.random.default_rng(2)
    assert point_attack(original, released, 10, "affine", draw).sole_share > 0.95
    assert point_attack(original, released, 10, "nearest", draw).sole_share < 0.2
    assert rank_attack(original, released).sole_share == 1
    assert whole_attack(original[:, None], released[:, None]).sole_share == 1


@pytest.mark.parametrize("seed", range(3))
def test_pattern_attackers(seed):
    original = draw_series(seed)
    released, classes = changed(original, seed), np.arange(24) % 5
    released[:12, :, :2] = NAN
    for pattern, count in ((null_pattern, "distance"), (extreme_times, "mismatches"), (bends, "mismatches")):
        x, y = pattern(original), pattern(released)

        def distance(i: int, j: int, x=x, y=y, count=count) -> float:
            if x.dtype == bool:
                return float((x[i] != y[j]).sum())
            difference = np.abs(x[i] - y[j])
            difference = difference[~np.isnan(difference)]
            return float(difference.sum() if count == "distance" else (difference > 0).sum())

        assert pattern_attack(x, y, Scope(classes), count=count) == loops(distance, list(range(24)), 24, classes, 1e-3)


def test_patterns_are_what_they_say():
    values = np.array([[[NAN, 1, 3, 2, NAN], [NAN] * 5]])
    assert null_pattern(values).tolist() == [[1, -5, 3, -5]]
    np.testing.assert_array_equal(extreme_times(values), [[1, NAN, 2, NAN]])
    straight = np.array([[[0, 1, 2, 3, 3, 3, 7.0, NAN]]])
    assert bends(straight).tolist() == [[True, False, False, True, False, True, True, False]]


def test_correlation_and_ranks_over_common_positions():
    values = draw_series(5)
    x, y = values[:, 0], changed(values, 3)[:, 0]
    found = correlation(x, y)
    for i in range(24):
        for j in range(24):
            both = ~np.isnan(x[i] + y[j])
            if both.sum() < 3 or x[i, both].std() == 0 or y[j, both].std() == 0:
                assert found[i, j] == -np.inf
            else:
                assert found[i, j] == pytest.approx(np.corrcoef(x[i, both], y[j, both])[0, 1])


def test_attacks_add_up_and_blocks_change_nothing(monkeypatch):
    values = draw_series(7)
    x, y, classes = class_features(values), class_features(changed(values, 7)), np.arange(24) % 4
    whole = feature_attack(x, y, Scope(classes))
    monkeypatch.setattr("sqldeid.series.attacks.CELLS", 50)
    assert feature_attack(x, y, Scope(classes)) == Attack(
        whole.persons, whole.sole, *(pytest.approx(v) for v in (whole.link, whole.in_class, whole.in_class_expected))
    )
    two = combine([whole, whole])
    assert (two.persons, two.sole, two.advantage) == (48, 2 * whole.sole, pytest.approx(whole.advantage))
    assert combine([]).sole_share == 0


def test_advantage_is_nothing_for_a_release_drawn_from_the_class_and_seen_otherwise():
    draw = np.random.default_rng(3)
    classes = np.repeat(np.arange(200), 5)
    own = draw.normal(0, 1, (1000, 4)) + draw.normal(0, 30, (200, 4))[classes]
    shuffled = own[np.concatenate([draw.permutation(5) + 5 * c for c in range(200)])]
    assert abs(feature_attack(own, shuffled, Scope(classes)).advantage) < 0.05
    assert feature_attack(own, own + 0.1, Scope(classes)).advantage > 0.7


def test_report_has_every_attacker_with_counts():
    report = AttackReport()
    for length in (6, 9):
        values = draw_series(length, length=length)
        report.add(values, changed(values, 1), np.arange(24) % 4)
    found = report.to_dict()
    assert set(found) == {
        *("feature", "raw_points", "null_pattern", "measurement_times", "extreme_times", "rank_order", "all_values")
    }
    assert [c["length"] for c in found["feature"]["raw"]["by_class"]] == [6, 9]
    assert found["feature"]["standardised"]["persons"] == 48
    assert set(found["raw_points"]) == {"3", "5", "10"}
    again = AttackReport(most_attacked=10)
    again.add(values, changed(values, 1), np.arange(24) % 4)
    assert again.to_dict()["extreme_times"]["persons"] == 10


def algorithm_2(fx, fy, distance, persons: int):
    """The source's loops, by feature distance; (first, auc, {inclusion count: value}) of each."""
    result = []
    for i in range(len(fx)):
        pairs = []
        for j in range(persons):
            both = ~np.isnan(fx[i] - fy[j])
            d = distance(i, j)
            if both.any() and not math.isnan(d):
                pairs.append((math.sqrt(((fx[i] - fy[j])[both] ** 2).sum()), d))
        pairs.sort()
        increments: list[tuple[float, list[float]]] = []
        for t, d in pairs:
            if increments and t - increments[-1][0] <= 1e-6:
                increments[-1][1].append(d)
            else:
                increments.append((t, [d]))
        t_max = pairs[-1][0] + sum(t for t, _ in pairs) / (len(pairs) - 1)
        summation, count, auc, points = 0.0, 0, 0.0, {}
        for number, (t, found) in enumerate(increments):
            summation, count = summation + sum(found), count + len(found)
            value = summation / count
            following = increments[number + 1][0] if number + 1 < len(increments) else t_max
            auc += value * (following - t)
            points[count] = value
        result.append((next(iter(points.values())), auc, points))
    return result


@pytest.mark.parametrize("before", [True, False])
def test_disagreement_is_algorithm_2(before, monkeypatch):
    monkeypatch.setattr("sqldeid.series.disagreement.BLOCK", 7)
    original = draw_series(3)
    original[4] = original[5]  # a tie in feature space
    released = original if before else changed(original, 2)
    fx, fy = class_features(original), class_features(released)

    def distance(i: int, j: int) -> float:
        both = ~np.isnan(original[i] - released[j])
        return math.sqrt(((original[i] - released[j])[both] ** 2).sum()) / both.sum() if both.any() else math.nan

    found = measure_disagreement(fx, fy, euclidean(original, released), keep_curves=24)
    expected = algorithm_2(fx, fy, distance, 24)
    np.testing.assert_allclose(found.first, [e[0] for e in expected], atol=1e-6)
    np.testing.assert_allclose(found.auc, [e[1] for e in expected], rtol=1e-6)
    for curve, (_, _, points) in zip(found.curves, expected, strict=True):
        for share, value in zip(found.inclusion, curve, strict=True):
            reached = [c for c in points if c <= round(share * 24)]
            np.testing.assert_allclose(value, points[max(reached)] if reached else NAN, atol=1e-6)
    final = np.array([list(e[2].values())[-1] for e in expected])[:, None]
    for summary, curves in ((found.curve, found.curves), (found.normalised, found.curves / final)):
        some = ~np.isnan(curves).all(axis=0)
        np.testing.assert_allclose(summary.mean[some], np.nanmean(curves[:, some], axis=0), atol=1e-6)
        np.testing.assert_allclose(summary.minimum[some], np.nanmin(curves[:, some], axis=0), atol=1e-6)
        np.testing.assert_allclose(summary.maximum[some], np.nanmax(curves[:, some], axis=0), atol=1e-6)
    if before:
        assert np.abs(found.first).max() < 1e-6
    assert first_disagreement_shares(found.first, np.array([-1, np.inf])).tolist() == [0, 1]


def slow_warping(x: np.ndarray, y: np.ndarray, band: int) -> float:
    """Least sum over all allowed alignments, by recursion with memory."""
    from functools import cache

    @cache
    def best(i: int, j: int) -> tuple[float, int]:
        if abs(i - j) > band or min(i, j) < 0:
            return math.inf, 0
        difference = (x[:, i] - y[:, j])[~np.isnan(x[:, i] - y[:, j])]
        ways = [best(i - 1, j - 1), best(i - 1, j), best(i, j - 1)] if i or j else [(0.0, 0)]
        total, count = min(ways, key=lambda way: way[0])
        return total + float((difference**2).sum()), count + len(difference)

    total, count = best(x.shape[1] - 1, x.shape[1] - 1)
    return math.sqrt(total) / count if count else math.nan


def test_warping_is_the_cheapest_alignment_and_without_a_band_euclidean():
    original = draw_series(6, persons=8)
    released, rows = changed(original, 4), np.array([0, 3, 7])
    np.testing.assert_allclose(warped(original, released, 0)(rows), euclidean(original, released)(rows))
    found = warped(original, released, 2)(rows)
    expected = [[slow_warping(original[i], released[j], 2) for j in range(8)] for i in rows]
    np.testing.assert_allclose(found, expected)


def test_single_out_asks_for_the_rows_it_was_given():
    asked: list[int] = []

    def distances(own: Ints) -> np.ndarray:
        asked.extend(own.tolist())
        return np.where(np.arange(6)[None, :] == own[:, None], 0.0, 1.0)

    found = single_out(distances, np.array([1, 4]), persons=6)
    assert (asked, found.sole, found.persons) == ([1, 4], 2, 2)
