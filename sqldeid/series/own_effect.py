"""Measure what a release does to the job's own features.

They form the classes, but the perturbation has no targets for them. So how far those of the written series are from
their class's means is measured, and whom they single out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.series.attack_report import shares_of
from sqldeid.series.attacks import Attack, Scope, feature_attack, standard_scale
from sqldeid.series.own import read_own
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.shape import Shaped
from sqldeid.series.transfer import to_workbench
from sqldeid.series.verify import unfold

ATTACKED = 3000
"""Persons attacked in all lengths together."""


@dataclass(frozen=True, slots=True)
class OwnEffect:
    """Effect on the job's own features.

    Attributes
    ----------
    features
        By name: `tau`, the greatest distance of a released feature from the mean of its class (in the feature's unit),
        `mean_distance`, and `before`, the mean distance of the originals; 0 where nobody is released.
    attack
        Who is singled out by all of them together, each on its own scale (as in `attacks` of a result).
    """

    features: Mapping[str, Mapping[str, float]]
    attack: Mapping[str, float]


def measure_own_effect(
    plan: SeriesPlan, shaped: Shaped, numbers: Ints, written: exp.Expr, draw: np.random.Generator, engine: Engine
) -> OwnEffect | None:
    """Measure the job's own features on what was written; None where it has none.

    Parameters
    ----------
    numbers
        (persons,): new number of each person, 0 for who is not released.
    draw
        Chooses whom to attack.
    """
    if not plan.own:
        return None
    released = _released(plan, shaped, numbers, written, engine)
    original = np.where(shaped.classes.dropped[:, None], np.nan, shaped.measured.own)
    means = _class_means(shaped, original)
    features = {
        feature.name: {
            "tau": float(np.nanmax(np.abs(released - means)[:, i], initial=0.0)),
            "mean_distance": _mean(np.abs(released - means)[:, i]),
            "before": _mean(np.abs(original - means)[:, i]),
        }
        for i, feature in enumerate(plan.own)
    }
    return OwnEffect(features, shares_of(_attacks(shaped, original, released, draw)))


def _released(plan: SeriesPlan, shaped: Shaped, numbers: Ints, written: exp.Expr, engine: Engine) -> Floats:
    """(rows, own features) of what was written; NaN where there is none."""
    measured, names = shaped.measured, shaped.prepared.variables.names
    unfolded = unfold(plan, shaped.named, written, engine)
    there = np.sort(numbers[numbers > 0])
    carried = to_workbench(unfolded, "number", there, measured.lengths[numbers > 0] * len(names), engine)
    wanted = numbers[measured.person_at] * len(names) + measured.features.variable_number
    found = np.full((len(wanted), len(plan.own)), np.nan)
    for i, feature in enumerate(plan.own):
        number, variable, value = read_own(plan, feature, carried, "number", engine.bench)
        there = number * len(names) + variable
        at = np.minimum(np.searchsorted(there, wanted), max(len(there) - 1, 0))
        if len(there):
            found[:, i] = np.where((there[at] == wanted) & ~shaped.classes.dropped, value[at], np.nan)
    engine.drop(unfolded)
    return np.where(np.isfinite(found), found, np.nan)


def _class_means(shaped: Shaped, original: Floats) -> Floats:
    """(rows, own features): the mean over the members of the same class and variable who are released with it."""
    pairs = np.stack([shaped.classes.of_row, shaped.measured.features.variable_number], axis=1)
    group = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    there = np.isfinite(original)
    result = np.full(original.shape, np.nan)
    for i in range(original.shape[1]):
        n = np.bincount(group, weights=there[:, i])
        total = np.bincount(group, weights=np.where(there[:, i], original[:, i], 0.0))
        result[:, i] = np.where(n > 0, total / np.maximum(n, 1), np.nan)[group]
    return result


def _mean(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else 0.0


def _attacks(shaped: Shaped, original: Floats, released: Floats, draw: np.random.Generator) -> dict[int, Attack]:
    """By length: nearest release by the job's own features of all variables, each divided by its deviation."""
    measured, classes = shaped.measured, shaped.classes
    lengths = np.unique(measured.lengths)
    found = {}
    for length in lengths:
        rows = np.flatnonzero((measured.lengths[measured.person_at] == length) & ~classes.dropped)
        if len(rows) == 0:
            continue
        persons, at = np.unique(measured.person_at[rows], return_inverse=True)
        variables = len(shaped.prepared.variables.names)
        known, shown = (np.full((len(persons), variables, original.shape[1]), np.nan) for _ in range(2))
        variable = measured.features.variable_number[rows]
        known[at, variable] = np.where(np.isfinite(original[rows]), original[rows], np.nan)
        shown[at, variable] = released[rows]
        flat, open_ = known.reshape(len(persons), -1), shown.reshape(len(persons), -1)
        chosen = np.sort(draw.permutation(len(persons))[: max(ATTACKED // len(lengths), 20)])
        scope = Scope(classes.of_person[persons], chosen)
        found[int(length)] = feature_attack(flat, open_, scope, scale=standard_scale(flat))
    return found
