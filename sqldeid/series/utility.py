"""Measure the outcome model in four trust settings, while originals and released series are at hand.

Source
------
Mazzone 2020, §5.7, tables 6.3 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.series.outcome import TrustScore, long_records, trust_settings, window_features
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.prepare import Prepared

SPLITS = 10


@dataclass(frozen=True, slots=True)
class Outcomes:
    """An outcome by person: `person_number` ascending, `outcome` 0, 1 or NaN where there is none."""

    person_number: Ints
    outcome: Floats

    def of(self, person_number: Ints) -> Floats:
        """(persons,) outcomes of these."""
        return self.outcome[np.searchsorted(self.person_number, person_number)]


def read_outcomes(plan: SeriesPlan, prepared: Prepared, engine: Engine) -> Outcomes | None:
    """Read the labels that the job names; None where it names none.

    Raises
    ------
    JobError
        If scikit-learn is missing, a person has several labels, or a label is neither 0 nor 1.
    """
    if plan.labels is None or plan.labels.outcome is None:
        return None
    key = f"{plan.key}.labels"
    if find_spec("sklearn") is None:
        raise JobError.at(key, "needs scikit-learn; pip install 'sqldeid[utility]', or remove it")
    joined = plan.labels
    read = engine.ask(
        "series/read_outcomes",
        persons=prepared.persons,
        labels=joined.source,
        person=joined.person,
        outcome=joined.outcome,
    )
    if (several := int((read.column("n").to_numpy() > 1).sum())) > 0:
        raise JobError.at(f"{key}.source", f"{several} persons have more than one row; give one each")
    outcome = read.column("outcome").to_numpy(zero_copy_only=False).astype(np.float64)
    strange = int((~np.isnan(outcome) & (outcome != 0) & (outcome != 1)).sum())
    if strange:
        raise JobError.at(f"{key}.column", f"{strange} persons have neither true nor false, 1 nor 0")
    return Outcomes(read.column("person_number").to_numpy(), outcome)


def measure_utility(series: Iterable[tuple[Floats, Floats, Floats]], splits: int = SPLITS) -> dict[str, object]:
    """Train and test on originals and releases.

    Parameters
    ----------
    series
        By length: original and released (persons, variables, length), and the outcome of each person (NaN: none).
    splits
        How often persons are dealt anew to training and test.

    Returns
    -------
    dict
        `persons` with an outcome, `splits`, and `settings`: by training and test data the mean scores over the splits,
        and the mean and standard deviation of the difference to original data, split by split. Where an outcome is too
        rare, `not_measured` says so instead.
    """
    original: list[Floats] = []
    released: list[Floats] = []
    outcome: list[Floats] = []
    for x, y, label in series:
        for part, values in ((original, x), (released, y)):
            part.append(window_features(*long_records(values), len(values), values.shape[1]))
        outcome.append(label)
    if not outcome:
        return {"not_measured": "nobody is released"}
    labels = np.concatenate(outcome)
    try:
        scores = trust_settings(np.concatenate(original), np.concatenate(released), labels, splits=splits)
    except JobError as problem:
        return {"not_measured": problem.message}
    return {
        "persons": int((~np.isnan(labels)).sum()),
        "splits": splits,
        "settings": {score.name: _shown(score, scores[0]) for score in scores},
    }


def _shown(score: TrustScore, base: TrustScore) -> dict[str, float]:
    names = ("train_roc_auc", "train_pr_auc", "test_roc_auc", "test_pr_auc")
    shown = {name: float(getattr(score, name).mean()) for name in names}
    for name in names[2:]:
        difference = getattr(score, name) - getattr(base, name)
        shown |= {f"{name}_change": float(difference.mean()), f"{name}_change_sd": float(difference.std())}
    return shown
