"""Perturbation: features are met, records stay where they were, and nothing depends on chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError
from sqldeid.series.perturb import METHODS, GeneticSettings, PerturbSettings, SeriesNames, perturb
from sqldeid.series.perturb.genetic import evolve
from sqldeid.series.targets import Features, make_targets
from tests.support.examples import examples
from tests.support.series_data import features

GENETIC = GeneticSettings(idle_iterations=20, most_iterations=60)


def draw_series(seed: int, classes: int = 4, members: int = 5, length: int = 12) -> tuple[np.ndarray, SeriesNames]:
    """Rounded series with ties, constants, single records and absent ends."""
    draw = np.random.default_rng(seed)
    rows = classes * members
    level, spread = draw.uniform(50, 120, (rows, 1)), draw.choice([0, 0.4, 5, 25], (rows, 1))
    values = np.round(level + spread * draw.standard_normal((rows, length)))
    first, last = draw.integers(0, 4, rows), length - draw.integers(0, 4, rows)
    position = np.arange(length)
    values[(position < first[:, None]) | (position >= last[:, None])] = np.nan
    values[0, 5:] = np.nan
    values[0, :4] = np.nan
    return values, SeriesNames(np.arange(rows), np.zeros(rows, dtype=np.int64), np.arange(rows) // members)


def targets_of(values: np.ndarray, names: SeriesNames, mode: str) -> np.ndarray:
    n = (~np.isnan(values)).sum(axis=1)
    made = make_targets(
        Features(names.person_number, names.variable_number, n, *features(values).T), names.feature_class, mode
    )
    return made.values


def take(names: SeriesNames, rows: np.ndarray) -> SeriesNames:
    return SeriesNames(names.person_number[rows], names.variable_number[rows], names.feature_class[rows])


@given(st.integers(0, 10**6))
@settings(max_examples=examples(12), deadline=None)
def test_projection_meets_reachable_targets_exactly(seed):
    values, names = draw_series(seed)
    targets = targets_of(values, names, "reachable")
    released = perturb(values, targets, PerturbSettings("projection"), seed, names=names)
    kept = ~np.isnan(targets[:, 0])
    assert np.isnan(released[~kept]).all()
    assert (np.isnan(released[kept]) == np.isnan(values[kept])).all()
    np.testing.assert_allclose(features(released[kept]), targets[kept], atol=2e-6, rtol=1e-6)


@given(st.integers(0, 10**6))
@settings(max_examples=examples(12), deadline=None)
def test_projection_meets_mean_and_variance_whatever_is_asked(seed):
    values, names = draw_series(seed)
    targets = targets_of(values, names, "source")
    found = features(perturb(values, targets, PerturbSettings("projection"), seed, names=names))
    n = (~np.isnan(values)).sum(axis=1)
    np.testing.assert_allclose(found[:, 0], targets[:, 0], atol=1e-6)
    np.testing.assert_allclose(found[n >= 2, 1], targets[n >= 2, 1], atol=1e-6, rtol=1e-6)


def test_the_fixture_out_of_reach():
    values = np.array([[0.0, 0, 20, 20], [10, 10, 10, 10]])
    names = SeriesNames(np.arange(2), np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    targets = targets_of(values, names, "source")
    found = features(perturb(values, targets, PerturbSettings("projection"), 1, names=names))
    assert np.abs(found - targets).sum(axis=1) == pytest.approx(4.142136, abs=1e-5)
    reachable = targets_of(values, names, "reachable")
    found = features(perturb(values, reachable, PerturbSettings("projection"), 1, names=names))
    np.testing.assert_allclose(found, reachable, atol=1e-6)


def test_no_other_series_with_these_features_is_nearer_than_the_projection():
    draw = np.random.default_rng(2)
    for _ in range(5):
        x = draw.normal(80, 12, 9)
        target = np.array([[82.0, 90.0, 64.0, 101.0]])
        others = np.sort(draw.normal(80, 12, (300, 9)), axis=1)
        middle = np.argsort(np.argsort(x))[None, :]
        inside = (middle > 0) & (middle < 8)
        rank = np.where(inside, 1 + np.argsort(draw.random((300, 9)), axis=1) % 7, middle)  # any order between the pins
        shapes = np.concatenate([x[None], np.take_along_axis(others, rank, axis=1)])
        names = SeriesNames(np.arange(301), np.zeros(301, dtype=np.int64), np.zeros(301, dtype=np.int64))
        released = perturb(shapes, target.repeat(301, axis=0), PerturbSettings("projection"), 1, names=names)
        np.testing.assert_allclose(features(released), target.repeat(301, axis=0), atol=1e-5)
        distance = ((released - x) ** 2).sum(axis=1)
        assert (distance[1:] >= distance[0] - 1e-6).all()


def test_the_sources_iterations_end_with_mean_and_variance_met():
    values, names = draw_series(3)
    targets = targets_of(values, names, "source")
    released = perturb(values, targets, PerturbSettings(method="source"), 1, names=names)
    n = (~np.isnan(values)).sum(axis=1)
    some = (n >= 3) & (targets[:, 1] > 0)
    np.testing.assert_allclose(features(released)[some, :2], targets[some, :2], atol=1e-6)
    assert (np.isnan(released) == np.isnan(values)).all()
    exact = perturb(values, targets, PerturbSettings("projection"), 1, names=names)
    gap = [np.abs(features(y) - targets)[some].sum(axis=1).mean() for y in (exact, released)]
    assert gap[0] < gap[1]


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_release_whatever_the_chunk(method):
    values, names = draw_series(7)
    targets = targets_of(values, names, "reachable")
    chosen = PerturbSettings(method=method, genetic=GENETIC)
    whole = perturb(values, targets, chosen, 11, names=names)
    parts = np.full_like(whole, np.nan)
    for number in range(4):
        rows = np.flatnonzero(names.feature_class == number)[::-1]
        for chunk in [rows] if method == "shared" else rows[:, None]:
            parts[chunk] = perturb(values[chunk], targets[chunk], chosen, 11, names=take(names, chunk))
    np.testing.assert_array_equal(whole, parts)
    other = perturb(values, targets, chosen, 12, names=names)
    assert not np.array_equal(whole, other, equal_nan=True)


@pytest.mark.parametrize("fitness", ["weighted", "annealing", "dampened", "capped"])
@pytest.mark.parametrize("scale_variance", [False, True])
def test_genetic_never_ends_worse_than_it_began_and_keeps_absent_records(fitness, scale_variance):
    values, names = draw_series(5)
    targets = targets_of(values, names, "source")
    chosen = GeneticSettings(fitness=fitness, scale_variance=scale_variance, idle_iterations=30, most_iterations=120)
    done = evolve(values, targets, chosen, 3, names.person_number, names.variable_number)
    assert (np.isnan(done.released) == np.isnan(values)).all()
    assert ((done.iterations >= 30) & (done.iterations <= 120)).all()
    before, after = (np.abs(features(y) - targets).sum(axis=1).mean() for y in (values, done.released))
    if fitness == "weighted":
        assert after < before / 2


def test_genetic_of_one_record_has_no_crossover_point():
    values = np.array([[np.nan, 80.0, np.nan]])
    targets = np.array([[90.0, 0.0, 90.0, 90.0]])
    done = evolve(values, targets, GeneticSettings(), 3, np.array([1]), np.array([0]))
    assert done.released[0, 1] == pytest.approx(90, abs=0.5)


@pytest.mark.parametrize("parents", [2, 3, 4])
def test_tournament_ranks_are_those_of_drawing_five_of_twenty_four(parents):
    from sqldeid.series.perturb.genetic import _tournament

    cumulative, chosen = _tournament(24, 5, parents)
    share = np.diff(cumulative, prepend=0.0)
    draw = np.random.default_rng(1)
    drawn = np.sort(draw.random((40000, 24)).argsort(axis=1)[:, :5], axis=1)[:, :parents]
    for rank in range(6):
        for place in range(parents):
            assert share[chosen[:, place] == rank].sum() == pytest.approx((drawn[:, place] == rank).mean(), abs=0.01)


@pytest.mark.parametrize("parents", [2, 3, 4])
def test_children_are_joined_of_their_parents_in_order(parents, monkeypatch):
    """Beside a slow joining, record by record: as many parents as asked, none of them mutated here."""
    from sqldeid.series.perturb import genetic

    seen = []

    class Watched(genetic._Herd):
        def _children(self, rank, m):
            before = self._all.copy()
            children = super()._children(rank, m)
            step = (m - 1) % genetic.AHEAD
            seen.append((before, rank, self._ahead[0][:, step], self._ahead[2][:, step], self._n.copy(), children))
            return children

    monkeypatch.setattr(genetic, "_Herd", Watched)
    values, names = draw_series(4)
    targets = targets_of(values, names, "source")
    chosen = GeneticSettings(parents=parents, idle_iterations=3, most_iterations=3)
    evolve(values, targets, chosen, 3, names.person_number, names.variable_number)
    cumulative, ranks = genetic._tournament(chosen.population, chosen.tournament, parents)
    used, compared = set(), 0
    for before, rank, choices, mutated, n, children in seen:
        for s, c, record in np.ndindex(children.shape):
            if mutated[s, c, record] or record >= n[s]:
                continue
            mine = ranks[np.searchsorted(cumulative, choices[s, c, 0], side="right")]
            cuts = sorted(1 + int(u * max(n[s] - 1, 1)) for u in choices[s, c, 1:])
            parent = sum(record >= cut for cut in cuts)
            assert children[s, c, record] == before[s, rank[s, mine[parent]], record]
            used.add(parent)
            compared += 1
    assert used == set(range(parents)) and compared > 1000


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=examples(10), deadline=None)
def test_shared_releases_depend_on_the_class_not_on_who_is_who(seed, noise):
    values, names = draw_series(seed)
    values[0] = values[1]
    targets = targets_of(values, names, "reachable")
    chosen = PerturbSettings(method="shared", noise=noise, resolution=((0, 1.0),))
    released = perturb(values, targets, chosen, seed, names=names)
    draw = np.random.default_rng(seed)
    kept = ~np.isnan(targets[:, 0])
    swapped = np.arange(len(values))
    for number in range(4):
        mine = np.flatnonzero((names.feature_class == number) & kept)
        swapped[mine] = draw.permutation(mine)
    again = perturb(values[swapped], targets, chosen, seed, names=names)
    np.testing.assert_allclose(released, again, atol=1e-6)  # the same, though others now have these originals


def test_shared_members_have_one_window_and_one_multiset_of_multiples():
    values, names = draw_series(9, members=8, length=30)
    targets = targets_of(values, names, "reachable")
    released = perturb(values, targets, PerturbSettings(method="shared", resolution=((0, 0.5),)), 4, names=names)
    for number in range(4):
        mine = released[(names.feature_class == number) & ~np.isnan(targets[:, 0])]
        assert (np.isnan(mine) == np.isnan(mine[0])).all()
        assert (np.sort(mine, axis=1)[:, : (~np.isnan(mine[0])).sum()] * 2 % 1 == 0).all()
        np.testing.assert_array_equal(np.sort(mine, axis=1), np.sort(mine, axis=1)[:1].repeat(len(mine), axis=0))
    kept = ~np.isnan(targets[:, 0])
    found = features(released[kept])
    assert np.abs(found - targets[kept])[:, [2, 3]].max() <= 0.25 + 1e-6
    assert np.abs(found - targets[kept])[:, 0].max() <= 0.25


def test_shared_noise_is_what_members_differ_by():
    values, names = draw_series(9, members=8, length=30)
    targets = targets_of(values, names, "reachable")
    for noise, alike in ((0.0, True), (0.5, False)):
        released = perturb(values, targets, PerturbSettings(method="shared", noise=noise), 4, names=names)
        mine = released[(names.feature_class == 1) & ~np.isnan(targets[:, 0])]
        assert bool((np.nan_to_num(mine) == np.nan_to_num(mine[0])).all()) == alike


def test_bad_input_is_refused_without_a_value():
    values, names = draw_series(1)
    targets = targets_of(values, names, "source")
    values[3, 5] = np.inf
    with pytest.raises(JobError, match="infinite"):
        perturb(values, targets, PerturbSettings("projection"), 1, names=names)
    with pytest.raises(JobError, match="one entry"):
        perturb(values[:3], targets[:3], PerturbSettings("projection"), 1, names=names)
    for bad in ({"noise": 1.5}, {"method": "none"}, {"iterations": 0}, {"resolution": ((0, 0.0),)}):
        with pytest.raises(JobError, match=r"perturb\."):
            PerturbSettings(**bad)
    for bad in (
        {"fitness": "best"},
        {"tournament": 30},
        {"mutation_probability": 0},
        {"weight": 0},
        {"parents": 1},
        {"parents": 5},
    ):
        with pytest.raises(JobError, match=r"perturb\."):
            GeneticSettings(**bad)
