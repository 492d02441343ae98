"""On real stays: the projection and the genetic algorithm against the source's figures, and who is singled out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from sqldeid.series.attack_report import AttackReport
from sqldeid.series.perturb import GeneticSettings, PerturbSettings, SeriesNames, perturb
from sqldeid.series.perturb.genetic import evolve
from sqldeid.series.targets import Features, make_targets
from tests.support.series_data import LENGTHS, Cohort, by_duration, challenge_2012, complete, features, mondrian

RESOLUTION = tuple((variable, 1.0) for variable in range(5))
pytestmark = pytest.mark.xdist_group("series_real")


@dataclass(frozen=True)
class Shaped:
    """Series (persons · variables, length) of one duration class, their names and targets."""

    values: np.ndarray
    names: SeriesNames
    targets: np.ndarray
    feature_class: np.ndarray

    def cube(self, flat: np.ndarray) -> np.ndarray:
        return flat.reshape(len(self.feature_class), -1, flat.shape[1])

    def released(self, settings: PerturbSettings) -> np.ndarray:
        return perturb(self.values, self.targets, settings, 5, names=self.names)


def shaped(values: np.ndarray, k: int, mode: str, nulls: str = "null-aware") -> Shaped:
    persons, variables, length = values.shape
    found = features(values)
    classes = mondrian(found.reshape(persons, -1), k, nulls)
    flat, stacked = values.reshape(-1, length), found.reshape(-1, 4)
    person, variable = np.repeat(np.arange(persons), variables), np.tile(np.arange(variables), persons)
    n = (~np.isnan(flat)).sum(axis=1)
    some = n > 0
    targets = np.full((len(flat), 4), np.nan)
    known = Features(person[some], variable[some], n[some], *stacked[some].T)
    targets[some] = make_targets(known, classes[person[some]], mode, least_members=k).values
    return Shaped(flat, SeriesNames(person, variable, classes[person]), targets, classes)


@pytest.fixture(scope="module")
def cohort(shared_data) -> Cohort:
    return challenge_2012(shared_data)


@pytest.fixture(scope="module")
def complete_series(cohort) -> dict[int, Shaped]:
    (whole,) = complete(cohort, (max(LENGTHS),))
    assert len(whole) > 1500
    return {length: shaped(whole[:, :, -length:], 5, "source") for length in LENGTHS}


@pytest.fixture(scope="module")
def durations(cohort) -> list[np.ndarray]:
    return [values for _, values in by_duration(cohort, 50) if len(values) < 1000]


@pytest.mark.deep
def test_projection_beats_the_source_on_complete_series(complete_series):
    unfeasible, distortion = [], []
    for one in complete_series.values():
        released = one.released(PerturbSettings("projection"))
        gap = np.abs(features(released) - one.targets)
        assert gap[:, :2].max() < 1e-6
        unfeasible.append(gap.sum(axis=1).mean())
        distortion.append(np.abs(released - one.values).mean())
    assert np.mean(unfeasible) <= 0.30  # the source: 0.48
    assert np.mean(distortion) <= 8.5  # the source: 9.62


@pytest.mark.deep
def test_genetic_beats_the_source_on_complete_series(complete_series):
    unfeasible, distortion = [], []
    for length in (5, 25):
        one = complete_series[length]
        rows = np.flatnonzero(np.isin(one.names.person_number, np.arange(0, 100, 20)))
        person, variable = one.names.person_number[rows], one.names.variable_number[rows]
        released = evolve(one.values[rows], one.targets[rows], GeneticSettings(), 3, person, variable).released
        unfeasible.append(np.abs(features(released) - one.targets[rows]).sum(axis=1).mean())
        nearest = one.released(PerturbSettings("projection"))[rows]
        distortion.append(np.abs(released - one.values[rows]).mean() - np.abs(nearest - one.values[rows]).mean())
    assert np.mean(unfeasible) <= 1.8  # the source: 2.13
    assert np.mean(distortion) <= 0.5  # above the projection's on the same series


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("k", "link"), [(5, 0.15), (10, 0.08)])
def test_features_single_hardly_anybody_out(durations, k, link):
    report = AttackReport(most_attacked=400)
    for values in durations:
        one = shaped(values, k, "reachable")
        report.add(one.cube(one.values), one.cube(one.released(PerturbSettings("projection"))), one.feature_class)
    for scale in ("raw", "standardised"):
        found = report.to_dict()["feature"][scale]
        assert found["worst_sole"] <= 0.05
        assert found["worst_link"] <= link
        assert found["link"] <= link
    assert report.to_dict()["raw_points"]["5"]["affine"]["sole"] > 0.55  # the method's own weakness: it must be seen


def test_shared_classes_beat_every_attacker(durations):
    report = AttackReport(most_attacked=400)
    for values in durations:
        one = shaped(values, 5, "reachable", "null-strict")
        released = one.released(PerturbSettings(method="shared", resolution=RESOLUTION))
        report.add(one.cube(one.values), one.cube(released), one.feature_class)
    found = report.to_dict()
    singled = [found["feature"][s] for s in ("raw", "standardised")]
    singled += [found["raw_points"][m][how] for m in ("3", "5", "10") for how in ("nearest", "affine")]
    singled += [v for v in found.values() if "sole" in v]
    assert len(singled) == 13
    for shares in singled:
        assert shares["sole"] <= 0.05
        assert shares["worst_sole"] <= 0.2
        assert abs(shares["advantage"]) < 0.05
