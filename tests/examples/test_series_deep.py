"""The recurrent network's gradient is that of its loss, it learns what only order tells, and the study runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sqldeid.series.outcome import train_and_test
from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import execute, lines_of, module_of

FOLDER = EXAMPLES / "series_study"
recurrent = module_of(FOLDER / "recurrent.py")


def test_the_gradient_is_that_of_small_differences() -> None:
    draw = np.random.default_rng(0)
    x, label = draw.normal(size=(5, 4, 3)), np.array([0.0, 1, 1, 0])
    weights = {name: value + 0.1 for name, value in recurrent.draw(3, 2, draw).items()}
    _, of = recurrent.loss_and_gradient(x, label, weights)
    for name, value in weights.items():
        for place in np.ndindex(value.shape):
            moved = {sign: {n: v.copy() for n, v in weights.items()} for sign in (1, -1)}
            for sign, changed in moved.items():
                changed[name][place] += sign * 1e-6
            up, down = (recurrent.loss_and_gradient(x, label, moved[sign])[0] for sign in (1, -1))
            assert of[name][place] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_inputs_are_the_last_values_and_nothing_of_what_comes() -> None:
    series = np.array([[[np.nan, 4.0, np.nan, 8.0]]])
    found = recurrent.inputs(series, np.array([2.0]), np.array([2.0]))
    assert found.shape == (4, 1, 2)
    assert found[:, 0, 0].tolist() == [0, 1, 1, 3] and found[:, 0, 1].tolist() == [0, 1, 0, 1]


def test_it_learns_an_order_that_no_window_of_unordered_values_has() -> None:
    """Twice up then down, or down then up: means, extremes and variances are the same."""
    draw = np.random.default_rng(2)
    label = (np.arange(240) % 2).astype(np.float64)
    wave = np.sin(np.linspace(0, 2 * np.pi, 12)) * np.where(label > 0, 1, -1)[:, None]
    data = {"series": (wave + draw.normal(0, 0.3, wave.shape))[:, None]}
    fit = recurrent.recurrent(recurrent.Training(epochs=8, rate=0.02))
    found = train_and_test(data, label, [("series", "series")], splits=1, fit=fit)
    assert found["series", "series"][0, 2] > 0.95


@pytest.mark.deep
def test_the_study_compares_both_models(tmp_path: Path) -> None:
    done = execute(FOLDER / "deep.py", tmp_path, "--patients", "200", "--splits", "1", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    rows = lines_of(tmp_path / "series_deep" / "deep.csv")
    assert [(r["model"], r["method"]) for r in rows] == [
        (model, method) for model in ("logistic", "GRU") for method in ("mazzone2020", "shared, all protected")
    ]


def test_the_page_shows_what_was_recorded(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "recorded", tmp_path / "recorded")
    done = execute(FOLDER / "deep.py", tmp_path, "--again", "--into", "recorded")
    assert done.returncode == 0, done.stderr
    held = module_of(EXAMPLES / "gallery.py").held(ROOT / "docs" / "studies.md", "series_study/deep")
    assert held.count("\n") > 3 and done.stdout == f"\nseries_study/deep\n\n{held}\n"
