"""Change series so that they have the features of their class (equation 4.1 of Mazzone 2020).

One door for all methods: `perturb`; docs/design/add-a-perturbation says what one more needs. What is drawn at random
depends on the seed and on the series' own numbers, so that the same seed gives the same release whatever the chunks or
threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.errors import JobError, UnknownKindError
from sqldeid.series.perturb.settings import FITNESS, METHODS, GeneticSettings, PerturbSettings

__all__ = ["FITNESS", "METHODS", "GeneticSettings", "PerturbSettings", "SeriesNames", "perturb"]


@dataclass(frozen=True, slots=True)
class SeriesNames:
    """Whose series each row is: arrays of one entry a row of `values`.

    `feature_class` is distinct over all duration classes. Rows of one (feature class, variable) must be given in one
    call; for `shared` they are released together.
    """

    person_number: Ints
    variable_number: Ints
    feature_class: Ints


def perturb(
    values: Floats,
    targets: Floats,
    settings: PerturbSettings,
    seed: int | bytes,
    *,
    names: SeriesNames,
    steps: Floats | None = None,
) -> Floats:
    """Release values of many series of one duration class.

    Parameters
    ----------
    values
        (series, length): one row a person and variable, one column a position; NaN where there is no record.
    targets
        (series, 4): mean, variance, minimum, maximum, from `sqldeid.series.targets.make_targets`. A row with NaN is
        released as all NaN.
    settings
        Method and its parameters.
    seed
        Secret; an integer or bytes. The same seed gives the same release.
    names
        Person, variable and feature class of each row. The seed is combined with them.
    steps
        (series,): of the public grid that `shared` rounds the class's common values to before they are brought to the
        targets; 0, the default, for none.

    Returns
    -------
    (series, length)
        `projection`, `source` and `genetic` keep each series' records where they were (NaN stays NaN, and nothing
        else). `shared` gives all members of a feature class one window of records: values may appear where NaN stood.

    Raises
    ------
    JobError
        Shapes that do not fit, or infinite values.
    """
    values, targets = np.ascontiguousarray(values, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    _check(values, targets, names)
    released = np.full_like(values, np.nan)
    rows = np.flatnonzero(~np.isnan(targets).any(axis=1) & ~np.isnan(values).all(axis=1))
    if len(rows) == 0:
        return released
    part = SeriesNames(names.person_number[rows], names.variable_number[rows], names.feature_class[rows])
    step = np.zeros(len(rows)) if steps is None else steps[rows]
    released[rows] = _by_method(values[rows], targets[rows], settings, seed, part, step)
    return released


def _by_method(
    values: Floats, targets: Floats, settings: PerturbSettings, seed: int | bytes, names: SeriesNames, steps: Floats
) -> Floats:
    if settings.method == "genetic":
        from sqldeid.series.perturb.genetic import evolve

        return evolve(values, targets, settings.genetic, seed, names.person_number, names.variable_number).released
    if settings.method == "shared":
        from sqldeid.series.perturb.shared import share

        numbers = names.variable_number, names.feature_class, names.person_number
        return share(values, targets, settings, seed, *numbers, steps=steps)
    from sqldeid.series.perturb.projection import iterate, project

    if settings.method == "source":
        return iterate(values, targets, settings.iterations, seed, names.person_number, names.variable_number)
    if settings.method == "projection":
        return project(values, targets, seed, names.person_number, names.variable_number)
    raise UnknownKindError(settings.method, "method of perturbation")


def _check(values: Floats, targets: Floats, names: SeriesNames) -> None:
    rows = len(values)
    if values.ndim != 2 or targets.shape != (rows, 4):
        raise JobError("perturb: values must be (series, length) and targets (series, 4)")
    if any(len(part) != rows for part in (names.person_number, names.variable_number, names.feature_class)):
        raise JobError("perturb: names must have one entry a series")
    if np.isinf(values).any() or np.isinf(targets).any():
        raise JobError("perturb: a series or target is infinite; drop such values in prepare (plausible ranges)")
