"""Measure whether a model of an outcome survives: the benchmark's logistic regression in four trust settings.

It stands among the rooms of series because original and released series are side by side only while a release is made.

Features are those of Harutyunyan et al. 2019: for each variable, in seven windows of its own first-to-last span, the
minimum, maximum, mean, standard deviation, skewness and number of records: 42 a variable, 714 for their 17.

Source
------
Mazzone 2020, §5.7; Harutyunyan et al., Scientific Data 2019 (windows, statistics, model).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.errors import JobError

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Ints], Predict]
"""Trains on (persons, …) and 0 or 1 for each; what comes out scores persons, the likelier higher."""
Name = TypeVar("Name", bound=Hashable)

WINDOWS: tuple[tuple[str, float], ...] = (
    ("first", 1.0),
    ("first", 0.1),
    ("first", 0.25),
    ("first", 0.5),
    ("last", 0.1),
    ("last", 0.25),
    ("last", 0.5),
)
STATISTICS = ("minimum", "maximum", "mean", "standard deviation", "skewness", "count")
EDGE = 1e-6
"""Records this close outside a window count as inside, as in the benchmark (in the unit of time)."""
TRUST_SETTINGS: tuple[tuple[bool, bool], ...] = ((False, False), (True, True), (False, True), (True, False))
"""(de-identified training data, de-identified test data), in the order of tables 6.3 and 6.4."""


def window_features(person: Ints, variable: Ints, time: Floats, value: Floats, persons: int, variables: int) -> Floats:
    """Features of long series: (persons, 42 · variables), by variable, window (`WINDOWS`) and statistic (`STATISTICS`).

    Parameters
    ----------
    person, variable, time, value
        One entry a record, in any order; persons and variables numbered from 0; time in hours or steps. Records whose
        value is NaN are left out.
    persons, variables
        How many there are.

    Returns
    -------
    (persons, 42 · variables)
        NaN where a person lacks a variable; skewness is biased, and NaN where all values are equal.
    """
    order = np.lexsort((time, variable, person))
    order = order[~np.isnan(value[order])]
    series = (person * variables + variable)[order]
    time, value = time[order], value[order]
    total = persons * variables
    first, last = np.full(total, np.inf), np.full(total, -np.inf)
    np.minimum.at(first, series, time)
    np.maximum.at(last, series, time)
    result = np.full((total, len(WINDOWS), len(STATISTICS)), np.nan)
    for number, (side, share) in enumerate(WINDOWS):
        span = (last - first)[series] * share
        inside = time < first[series] + span + EDGE if side == "first" else time > last[series] - span - EDGE
        result[:, number] = _statistics(series[inside], value[inside], total)
    return result.reshape(persons, -1)


def long_records(values: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Records (person, variable, step, value) of (persons, variables, length) hourly arrays, NaN left out."""
    person, variable, step = np.nonzero(~np.isnan(values))
    return person, variable, step.astype(np.float64), values[person, variable, step]


def _statistics(series: Ints, value: Floats, total: int) -> Floats:
    """(total, 6) by series; NaN for those without records."""
    count = np.bincount(series, minlength=total).astype(np.float64)
    low, high = np.full(total, np.inf), np.full(total, -np.inf)
    np.minimum.at(low, series, value)
    np.maximum.at(high, series, value)
    n = np.where(count > 0, count, np.nan)
    mean = np.bincount(series, weights=value, minlength=total) / n
    difference = value - mean[series]
    second = np.bincount(series, weights=difference**2, minlength=total) / n
    third = np.bincount(series, weights=difference**3, minlength=total) / n
    flat = high == low
    second = np.where(flat, 0.0, second)
    skewness = np.where(flat, np.nan, third / np.where(second > 0, second, np.nan) ** 1.5)
    mean = np.where(flat, low, mean)
    stacked: Floats = np.stack([_real(low), _real(high), mean, np.sqrt(second), skewness, n], axis=1)
    stacked[count == 0] = np.nan
    return stacked


def _real(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


@dataclass(frozen=True, slots=True)
class TrustScore:
    """Scores of one trust setting; one entry of each array a split, the same splits for all settings.

    Attributes
    ----------
    trained_released, tested_released
        Whether training and test data were de-identified.
    train_roc_auc, train_pr_auc, test_roc_auc, test_pr_auc
        0…1; PR-AUC is the average precision.
    """

    trained_released: bool
    tested_released: bool
    train_roc_auc: Floats
    train_pr_auc: Floats
    test_roc_auc: Floats
    test_pr_auc: Floats

    @property
    def name(self) -> str:
        """As in tables 6.3 and 6.4, such as ``orig. / de-id.``."""
        names = {False: "orig.", True: "de-id."}
        return f"{names[self.trained_released]} / {names[self.tested_released]}"


def trust_settings(
    original: Floats, released: Floats, label: Floats, *, splits: int = 10, seed: int = 0, strength: float = 0.001
) -> tuple[TrustScore, ...]:
    """Train and test logistic regressions in the four settings of `TRUST_SETTINGS`.

    Parameters
    ----------
    original, released
        (persons, features), the same persons in the same order (this is for who holds both).
    label
        (persons,) 0 or 1; persons whose label is NaN are left out.
    splits
        How often persons are dealt anew: 70 % to train, 15 % to validate (left unused here), 15 % to test. Settings
        share the splits: compare them split by split, for the splits differ more than the settings.
    strength
        C of scikit-learn's l2-penalised logistic regression; the benchmark's.

    Raises
    ------
    JobError
        scikit-learn is missing, shapes differ, or a label has fewer than ten persons of either kind.
    """
    if original.shape != released.shape:
        raise JobError("utility: original, released and labels must be of the same persons")
    data = {False: original, True: released}
    found = train_and_test(data, label, TRUST_SETTINGS, splits=splits, seed=seed, fit=logistic(strength))
    return tuple(TrustScore(*setting, *found[setting].T) for setting in TRUST_SETTINGS)


def train_and_test(
    data: Mapping[Name, Floats],
    label: Floats,
    pairs: Sequence[tuple[Name, Name]],
    *,
    splits: int = 10,
    seed: int = 0,
    fit: Fit | None = None,
) -> dict[tuple[Name, Name], Floats]:
    """Train on one version of the data, test on another, for several pairs over the same splits.

    Parameters
    ----------
    data
        By name: an array whose first axis is the persons, the same persons in the same order in each.
    label
        (persons,) 0 or 1; persons whose label is NaN are left out.
    pairs
        (training data, test data); each version is trained on once a split.
    fit
        Makes a model of training rows and labels; none: `logistic`.

    Returns
    -------
    dict
        By pair (splits, 4): ROC-AUC and average precision on the training rows, then on the test rows.

    Raises
    ------
    JobError
        scikit-learn is missing, numbers of persons differ, or a label has fewer than ten persons of either kind.
    """
    known = ~np.isnan(label)
    if any(len(version) != len(label) for version in data.values()):
        raise JobError("utility: original, released and labels must be of the same persons")
    outcome: Ints = label[known].astype(np.int64)
    if not set(np.unique(label[known])) <= {0, 1} or min(outcome.sum(), (1 - outcome).sum()) < 10:
        raise JobError("utility.label: needs 0 and 1, each for at least ten persons with a series")
    rows = {name: version[known] for name, version in data.items()}
    chosen = logistic() if fit is None else fit
    scores: dict[tuple[Name, Name], list[tuple[float, ...]]] = {pair: [] for pair in pairs}
    for split in range(splits):
        train, test = _split(outcome, np.random.default_rng([seed, split]))
        for trained in dict.fromkeys(pair[0] for pair in pairs):
            predict = chosen(rows[trained][train], outcome[train])
            for tested in (pair[1] for pair in pairs if pair[0] == trained):
                seen = _score(outcome[train], predict(rows[tested][train]))
                scores[trained, tested].append((*seen, *_score(outcome[test], predict(rows[tested][test]))))
    return {pair: np.array(found) for pair, found in scores.items()}


def logistic(strength: float = 0.001) -> Fit:
    """The benchmark's model: mean imputation, standardisation, l2-penalised logistic regression of this C."""
    return lambda features, label: _fit(features, label, strength)


def _split(label: Ints, draw: np.random.Generator) -> tuple[Ints, Ints]:
    """Training and test rows, 70 % and 15 %, of each label alike."""
    train: list[Ints] = []
    test: list[Ints] = []
    for kind in (0, 1):
        rows = draw.permutation(np.flatnonzero(label == kind))
        train.append(rows[: round(0.7 * len(rows))])
        test.append(rows[round(0.85 * len(rows)) :])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _fit(features: Floats, label: Ints, strength: float) -> Predict:
    """Mean imputation, standardisation, l2-penalised logistic regression: the benchmark's."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as missing:
        raise JobError("utility: scikit-learn is missing; pip install 'sqldeid[utility]'") from missing
    there = ~np.isnan(features)
    mean = np.where(there, features, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    sd = np.where(there, features - mean, 0.0).std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)

    def prepare(rows: Floats) -> Floats:
        return np.where(np.isnan(rows), 0.0, (rows - mean) / sd)

    model = LogisticRegression(C=strength, max_iter=1000).fit(prepare(features), label)
    return lambda rows: np.asarray(model.decision_function(prepare(rows)), dtype=np.float64)


def _score(label: Ints, score: Floats) -> tuple[float, float]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    return float(roc_auc_score(label, score)), float(average_precision_score(label, score))


def feature_names(variables: Sequence[str]) -> list[str]:
    """Names of the columns of `window_features`."""
    return [f"{v}: {side} {share:.0%}: {s}" for v in variables for side, share in WINDOWS for s in STATISTICS]
