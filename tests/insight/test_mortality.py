"""The mortality model: its features equal the benchmark's own, and the four trust settings see what they should."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
from scipy.stats import skew

from sqldeid.errors import JobError
from sqldeid.insight.mortality import (
    STATISTICS,
    WINDOWS,
    feature_names,
    long_records,
    trust_settings,
    window_features,
)

CHANNELS = (
    *("Capillary refill rate", "Diastolic blood pressure", "Fraction inspired oxygen"),
    *("Glascow coma scale eye opening", "Glascow coma scale motor response", "Glascow coma scale total"),
    *("Glascow coma scale verbal response", "Glucose", "Heart Rate", "Height", "Mean blood pressure"),
    *("Oxygen saturation", "Respiratory rate", "Systolic blood pressure", "Temperature", "Weight", "pH"),
)


def read(file):
    with gzip.open(file, "rt", encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def test_features_equal_the_benchmarks(shared_data):
    folder = shared_data / "mortality_benchmark"
    channels = json.loads((folder / "channel_info.json").read_text(encoding="utf-8"))
    records, expected = read(folder / "timeseries_long.csv.gz"), read(folder / "features714.csv.gz")
    row = {line["icustay_id"]: number for number, line in enumerate(expected)}

    def number(record: dict[str, str]) -> float:
        try:
            return float(record["value"])
        except ValueError:
            return float(channels[record["variable"]]["values"][record["value"]])

    found = window_features(
        np.array([row[record["icustay_id"]] for record in records]),
        np.array([CHANNELS.index(record["variable"]) for record in records]),
        np.array([float(record["hours"]) for record in records]),
        np.array([number(record) for record in records]),
        len(expected),
        len(CHANNELS),
    )
    wanted = np.array([[float(line[f"f{i}"] or "nan") for i in range(714)] for line in expected])
    assert found.shape == wanted.shape == (57, 714)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_features_equal_a_loop():
    draw = np.random.default_rng(3)
    values = np.round(draw.normal(80, 9, (6, 2, 14)))
    values[draw.random(values.shape) < 0.4] = np.nan
    values[2, 1] = np.nan
    values[3, 0] = 70
    found = window_features(*long_records(values), 6, 2).reshape(6, 2, len(WINDOWS), len(STATISTICS))
    for person, variable in np.ndindex(6, 2):
        at = np.flatnonzero(~np.isnan(values[person, variable]))
        if len(at) == 0:
            assert np.isnan(found[person, variable]).all()
            continue
        for (side, share), row in zip(WINDOWS, found[person, variable], strict=True):
            span = (at[-1] - at[0]) * share
            inside = at[at <= at[0] + span + 1e-9] if side == "first" else at[at >= at[-1] - span - 1e-9]
            x = values[person, variable, inside]
            shape = skew(x) if x.std() > 0 else np.nan
            np.testing.assert_allclose(row, [x.min(), x.max(), x.mean(), x.std(), shape, len(x)])
    assert len(feature_names(["a", "b"])) == 84


def test_trust_settings_see_a_release_that_lost_the_outcome():
    draw = np.random.default_rng(5)
    label = (draw.random(600) < 0.3).astype(float)
    original = draw.normal(0, 1, (600, 5)) + np.outer(label, [1.5, 0, 0, 0, 0])
    original[draw.random(original.shape) < 0.1] = np.nan
    kept = {s.name: s for s in trust_settings(original, original, label, splits=3)}
    assert len(kept) == 4
    for score in kept.values():
        np.testing.assert_array_equal(score.test_roc_auc, kept["orig. / orig."].test_roc_auc)
        assert score.test_roc_auc.mean() > 0.75
        assert score.test_pr_auc.mean() > 0.5
    lost = {s.name: s for s in trust_settings(original, original[draw.permutation(600)], label, splits=3)}
    assert lost["orig. / orig."].test_roc_auc.tolist() == kept["orig. / orig."].test_roc_auc.tolist()
    for name in ("de-id. / de-id.", "orig. / de-id.", "de-id. / orig."):
        assert lost[name].test_roc_auc.mean() < 0.7


def test_labels_may_be_missing_but_not_all_alike():
    draw = np.random.default_rng(6)
    label = (draw.random(200) < 0.4).astype(float)
    original = draw.normal(0, 1, (200, 3)) + label[:, None]
    label[::3] = np.nan
    assert trust_settings(original, original, label, splits=1)[0].test_roc_auc[0] > 0.5
    for bad in (np.zeros(200), np.where(np.arange(200) < 5, 1.0, 0.0), draw.random(200)):
        with pytest.raises(JobError, match=r"utility\.label"):
            trust_settings(original, original, bad)
    with pytest.raises(JobError, match="same persons"):
        trust_settings(original, original[:50], label)
