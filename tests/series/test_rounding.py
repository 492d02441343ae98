"""Targets of series on a public grid: which step, what is in reach, and what two releases give of a newcomer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError
from sqldeid.job.series import Variable
from sqldeid.series.perturb.projection import project
from sqldeid.series.rounding import digits_step, steps_of, times
from sqldeid.series.targets import Features, Targets, make_targets
from sqldeid.series.variables import VariableMap, load_map
from sqldeid.series.verify import off_grid
from tests.support.examples import examples
from tests.support.series_data import features


def mapped(**variables: dict[str, object]) -> VariableMap:
    asked = {name: Variable.model_validate({"items": [name], **v}) for name, v in variables.items()}
    return load_map(asked, [], None, "series.s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variable", "given_", "step"),
    [
        ({"low": 20, "high": 300}, None, 1),
        ({"low": 10.0, "high": 2000.0}, None, 10),
        ({"low": 10, "high": 2000, "resolution": 1.0}, None, 1),
        ({"low": 3, "high": 15, "resolution": 1.0}, None, 0.1),  # a score of few steps: means of it are finer
        ({"low": 25, "high": 45, "round": 0.5}, None, 0.5),
        ({"resolution": 2.0}, 7.0, 2),
        ({"low": 25, "high": 45, "round": 0.5}, {"v": 3.0}, 3),
        ({}, 7.0, 7),
        ({"low": 5}, 7.0, 7),
        ({}, None, np.nan),
    ],
)
def test_a_step_is_stated_or_follows_from_what_the_map_says(
    variable: dict[str, object], given_: float | dict[str, float] | None, step: float
) -> None:
    np.testing.assert_equal(steps_of(mapped(v=variable), given_, "series.s"), [step])


def test_a_step_for_a_variable_that_is_not_there_is_refused() -> None:
    with pytest.raises(JobError, match=r'series.s.round: there is no variable "w"'):
        steps_of(mapped(v={}), {"w": 1.0}, "series.s")


def test_shipped_vitals_have_steps() -> None:
    found = load_map("mimic3/vitals", [], None, "series.s")  # type: ignore[arg-type]
    steps = dict(zip(found.names, steps_of(found, None, "series.s").tolist(), strict=True))
    assert not np.isnan(list(steps.values())).any()
    assert steps["Heart Rate"] == 1 and steps["Glascow coma scale total"] == 0.1


def group(rng: np.random.Generator, members: int) -> tuple[list[np.ndarray], Features]:
    rows = [rng.normal(80, rng.uniform(0.5, 15), int(rng.integers(3, 30))) for _ in range(members)]
    found = np.array([features(r) for r in rows])
    n = np.array([len(r) for r in rows])
    return rows, Features(np.arange(members), np.zeros(members, dtype=np.int64), n, *found.T)


def rounded(known: Features, mode: str, step: float) -> Targets:
    count = len(known.n)
    return make_targets(known, np.zeros(count, dtype=np.int64), mode, steps=np.full(count, step))  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 1.0, 5.0]))
@settings(max_examples=examples(40), deadline=None)
def test_reachable_targets_on_the_grid_are_met_exactly_and_are_near_the_wish(seed: int, step: float) -> None:
    rows, known = group(np.random.default_rng(seed), 6)
    exact = make_targets(known, np.zeros(6, dtype=np.int64), "reachable")
    made = rounded(known, "reachable", step)
    assert off_grid(made.values, made.step, known.n, np.zeros(6, dtype=np.int64)) == 0
    assert (np.abs(made.values - exact.values)[:, 0] <= step / 2 + 1e-9).all()
    width = max(len(r) for r in rows)
    padded = np.full((6, width), np.nan)
    for i, r in enumerate(rows):
        padded[i, : len(r)] = r
    met = project(padded, made.values, 1, known.person_number, known.variable_number)
    found = np.array([features(r[~np.isnan(r)]) for r in met])
    np.testing.assert_allclose(found, made.values, atol=1e-4)
    far = np.abs(made.values - exact.values)
    if known.n.min() > 6:  # with few records extremes and variance all but give each other
        assert (far[:, 2:] <= 3 * step + 1e-9).all()
        assert (np.abs(np.sqrt(made.values[:, 1]) - np.sqrt(exact.values[:, 1])) <= 2 * step + 1e-9).all()
    assert (far[:, 2:] <= 3 * step + np.abs(np.diff(exact.values[:, [2, 0, 3]], n=2))).all()


def test_targets_as_written_are_rounded_too() -> None:
    _, known = group(np.random.default_rng(4), 5)
    made = rounded(known, "source", 0.5)
    exact = make_targets(known, np.zeros(5, dtype=np.int64), "source").values
    np.testing.assert_allclose(made.values[:, [0, 2, 3]], np.round(exact[:, [0, 2, 3]] * 2) / 2)
    np.testing.assert_allclose(np.sqrt(made.values[:, 1]), np.round(np.sqrt(exact[:, 1]) * 2) / 2)
    same = np.zeros(5, dtype=np.int64)
    assert off_grid(exact, made.step, known.n, same) == 20 and off_grid(made.values, made.step, known.n, same) == 0
    assert off_grid(made.values, np.zeros(5), known.n, same) == 20


def test_without_a_step_three_digits_are_kept() -> None:
    np.testing.assert_allclose(digits_step(np.array([123.4, 99.0, 0.0567, 0.0])), [1, 0.1, 0.0001, 0.01])
    _, known = group(np.random.default_rng(4), 5)
    made = rounded(known, "reachable", np.nan)
    assert set(made.step) <= {0.1, 1.0} and off_grid(made.values, made.step, known.n, np.zeros(5, dtype=np.int64)) == 0
    assert times(np.array([3.0]), np.array([0.1])).tolist() == [0.3]


@pytest.mark.parametrize("mode", ["reachable", "source"])
def test_two_releases_no_longer_give_a_newcomers_features(mode: str) -> None:
    """8 persons one night, 9 the next: n₂·f₂ − n₁·f₁ was the ninth person's, to the last digit."""
    exact, coarse = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        _, nine = group(rng, 9)
        eight = Features(*(column[:8] for column in (getattr(nine, name) for name in Features.__slots__)))
        for steps, found in ((0.0, exact), (1.0, coarse)):
            one, two = (rounded(known, mode, steps).values[0] for known in (eight, nine))
            guess = 9 * two[0] - 8 * one[0]
            found.append(abs(guess - nine.mean[8]))
    assert max(exact) < 1e-6
    assert np.median(coarse) > 1 and min(coarse) > 1e-6
