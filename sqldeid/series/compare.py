"""Measure disagreement before and after a release, where a job asks for it (`disagreement`).

Source
------
Mazzone 2020, §4.3 and §6.3: figures 5.4 and 6.4 to 6.6 are drawn from what is kept here.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.errors import UnknownKindError
from sqldeid.job.disagreement import Disagreeing
from sqldeid.series.attack_report import class_features
from sqldeid.series.attack_sample import AttackSample
from sqldeid.series.disagreement import Disagreement, Summary, euclidean, measure_disagreement, warped

WARPED_PERSONS, BAND = 50, 3
"""Of the largest length; warping costs about a second for fifty persons and a thousand releases."""
SHARES = np.linspace(0, 1, 101)
"""Of persons, at which first disagreements are kept."""


def compare(asked: Disagreeing, sample: AttackSample, draw: np.random.Generator) -> dict[str, object]:
    """Disagreement of every length, before (originals with themselves) and after (originals with releases).

    Parameters
    ----------
    draw
        Chooses persons where a sample is asked for; all releases of their length are candidates.

    Returns
    -------
    dict
        ``by_length``: length, persons, and of each side Δ-AUC (mean, least, greatest) and first disagreement (mean,
        least, greatest, median). ``curves``: of the length of most persons, by share of its releases included, the
        mean, least and greatest disagreement, plain and normalised, and first disagreements by share of persons. None
        where no curve has begun.

    Cost: the square of a length's persons, in blocks; memory grows with the persons.
    """
    most = asked.persons or (WARPED_PERSONS if asked.distance == "dtw" else None)
    rows, largest, curves = [], 0, {}
    for length, original, released in sample.pairs():
        chosen = np.sort(draw.permutation(len(original))[:most])
        before, after = (_measure(asked, original, side, chosen) for side in (original, released))
        sides = {"before": _numbers(before), "after": _numbers(after)}
        rows.append({"length": length, "persons": len(chosen), **sides})
        if len(original) > largest:
            largest = len(original)
            drawn = {"before": _curves(before), "after": _curves(after)}
            curves = {"length": length, "inclusion": after.inclusion.tolist(), "shares": SHARES.tolist(), **drawn}
    return {"distance": asked.distance, "by_length": rows, "curves": curves}


def _measure(asked: Disagreeing, original: Floats, released: Floats, rows: Ints) -> Disagreement:
    match asked.distance:
        case "dtw":
            distances = warped(original, released, asked.band or BAND)
        case "euclidean":
            distances = euclidean(original, released)
        case unknown:
            raise UnknownKindError(unknown, "distance of series")
    known, found = class_features(original), class_features(released)
    return measure_disagreement(known, found, distances, rows=rows, keep_curves=0)


def _numbers(found: Disagreement) -> dict[str, float | None]:
    """Summaries over persons; first disagreement 0 is that of a release that is the original."""
    auc, first = found.auc[~np.isnan(found.auc)], found.first[~np.isnan(found.first)]
    if not len(first):
        return {}
    return {**_spread("delta_auc", auc), **_spread("first", first), "first_median": float(np.median(first))}


def _spread(name: str, values: Floats) -> dict[str, float | None]:
    found = {"mean": values.mean(), "least": values.min(), "greatest": values.max()}
    return {f"{name}_{of}": float(value) for of, value in found.items()}


def _curves(found: Disagreement) -> dict[str, object]:
    first = found.first[~np.isnan(found.first)]
    return {
        "plain": _summary(found.curve),
        "normalised": _summary(found.normalised),
        "first": [float(v) for v in np.quantile(first, SHARES)] if len(first) else [],
    }


def _summary(found: Summary) -> dict[str, list[float | None]]:
    parts = {"mean": found.mean, "least": found.minimum, "greatest": found.maximum}
    return {name: [None if np.isnan(v) else float(v) for v in values] for name, values in parts.items()}
