"""Features of all series at once, and their classes: what k persons of one length are made to have in common.

Which variables a person is released with is settled before the classes are formed, so that every class keeps its
counts: `null-aware` gives each variable to 0 or at least k persons of a length, `null-strict` also withholds it from 0
or at least k, and reachable targets need at least three records.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.job.series import STATISTICS, Statistic
from sqldeid.mondrian import Dimension, Mondrian, partition
from sqldeid.series.own import read_own
from sqldeid.series.patterns import share_patterns
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.rounding import steps_of
from sqldeid.series.targets import LEAST_RECORDS, Features, Targets, make_targets
from sqldeid.series.variables import VariableMap


@dataclass(frozen=True, slots=True)
class Measured:
    """Features of the shortened series; row i of every array is one person and variable, in that order.

    Parameters
    ----------
    persons, lengths
        (persons,): everybody released, ascending, and their common length.
    features
        The four features.
    own
        (rows, own features) of the job's own features.
    person_at
        (rows,): index into `persons`.
    """

    persons: Ints
    lengths: Ints
    features: Features
    own: Floats
    person_at: Ints


@dataclass(frozen=True, slots=True)
class Classes:
    """Feature classes and targets.

    Parameters
    ----------
    of_person
        (persons,): the feature class, distinct over all lengths; 0 for who has no variable left.
    of_row
        (rows,): the same, by row of the features.
    targets
        (rows, 4) what is to be met, NaN where nothing is: dropped rows, and features that are not made common.
    dropped
        (rows,): released as absent.
    """

    of_person: Ints
    of_row: Ints
    targets: Targets
    dropped: Flags


def measure(plan: SeriesPlan, cut: exp.Table, persons: Ints, lengths: Ints, engine: Engine) -> Measured:
    """Compute all features, the four in one GROUP BY, and each of the job's own in one.

    Parameters
    ----------
    persons, lengths
        Everybody released, ascending, and their common length.
    """
    table = engine.make("series/measure_features", f"{plan.name}_features", series=cut)
    read = engine.ask("series/read_features", features=table)
    engine.drop(table)
    own = [read_own(plan, feature, cut, "person_number", engine)[2] for feature in plan.own]
    columns = [c.to_numpy(zero_copy_only=False) for c in read.columns]
    features = Features(*(c.astype(np.int64) for c in columns[:3]), *(c.astype(np.float64) for c in columns[3:]))
    return Measured(
        persons,
        lengths,
        features,
        np.stack(own, axis=1) if own else np.empty((read.num_rows, 0)),
        np.searchsorted(persons, features.person_number),
    )


def classify(
    plan: SeriesPlan,
    mapped: VariableMap,
    measured: Measured,
    engine: Engine,
    *,
    by: Collection[Statistic] = STATISTICS,
) -> Classes:
    """Form the feature classes of every length, and the targets of their members.

    Parameters
    ----------
    by
        Which of the four features form the classes, where all four are made common; a release takes all of them.
        Fewer show what an attacker gains who knows one more than was thought of (Mazzone 2020, §6.3).
    """
    asked, variables = plan.part.privacy, mapped.names
    kept = np.array([plan.kept(name) for name in variables])
    row_kept = kept[measured.features.variable_number]
    dropped = _withheld(plan, measured, row_kept)
    points, dimensions = _points(plan, variables, measured, (dropped, row_kept, by), engine)
    settings = Mondrian(asked.k, asked.heuristic, asked.nulls)
    table = partition(points, dimensions, settings, engine, f"{plan.name}_mondrian")
    read = engine.ask("series/read_classes", classes=table)
    for used in (points, table):
        engine.drop(used)
    of_person = np.zeros(len(measured.persons), dtype=np.int64)
    found = np.searchsorted(measured.persons, read.column("person_number").to_numpy())
    of_person[found] = read.column("class").to_numpy()
    of_row = of_person[measured.person_at]
    if asked.nulls == "strict":
        dropped |= _rare(of_row, measured.features.variable_number, dropped, asked.k) & (row_kept != "none")
    return retarget(plan, mapped, measured, of_person, dropped)


def withhold(plan: SeriesPlan, mapped: VariableMap, measured: Measured, classes: Classes, held: Flags) -> Classes:
    """The same classes without some persons, and targets of those who are left.

    Parameters
    ----------
    held
        (persons,): who is not released.
    """
    return retarget(plan, mapped, measured, classes.of_person, classes.dropped | held[measured.person_at])


def retarget(plan: SeriesPlan, mapped: VariableMap, measured: Measured, of_person: Ints, dropped: Flags) -> Classes:
    """Targets of classes that are given, on their grid; without variables that few have, where data name them."""
    number = measured.features.variable_number
    kept = np.array([plan.kept(name) for name in mapped.names])[number]
    steps = steps_of(mapped, plan.part.round, plan.key)[number]
    classes = _targets(plan, measured, of_person, dropped, kept, steps)
    return withhold_rare(plan, measured, classes) if plan.map is None else classes


def take_persons(measured: Measured, chosen: Flags) -> Measured:
    """Some of the persons, with their rows."""
    rows = np.flatnonzero(chosen[measured.person_at])
    at = np.cumsum(chosen) - 1
    return Measured(
        measured.persons[chosen],
        measured.lengths[chosen],
        _take(measured.features, rows),
        measured.own[rows],
        at[measured.person_at[rows]].astype(np.int64),
    )


def _withheld(plan: SeriesPlan, measured: Measured, row_kept: NDArray[np.str_]) -> Flags:
    """Rows that are absent from the release before classes are formed."""
    asked, n = plan.part.privacy, measured.features.n
    dropped: Flags = np.zeros(len(n), dtype=bool)
    if asked.targets == "reachable":
        dropped |= (n < LEAST_RECORDS) & (row_kept == "all")
    _empty_lengths(measured, dropped, plan.part.durations.k)
    if asked.nulls not in ("null-pattern", "null-aware", "null-strict"):
        return dropped
    before = -1
    while dropped.sum() > before:  # who is left with nothing is no longer there to be counted
        before = int(dropped.sum())
        for length in np.unique(measured.lengths):
            if asked.nulls == "null-pattern":
                _match_patterns(plan, measured, row_kept != "none", dropped, int(length))
                continue
            _even_out(measured, row_kept != "none", dropped, int(length), asked.k, asked.nulls == "null-strict")
        _empty_lengths(measured, dropped, plan.part.durations.k)
    return dropped


def _empty_lengths(measured: Measured, dropped: Flags, k: int) -> None:
    """Withhold all of a length that fewer than k persons are left with."""
    there = np.unique(measured.person_at[~dropped])
    lengths, sizes = np.unique(measured.lengths[there], return_counts=True)
    dropped |= ~np.isin(measured.lengths[measured.person_at], lengths[sizes >= k])


def _even_out(measured: Measured, able: Flags, dropped: Flags, length: int, k: int, absent_too: bool) -> None:
    """Withhold a variable from all of a length where fewer than k have it.

    With `absent_too` also from k persons where fewer lack it, those with fewest records first, or from all where fewer
    than k would be left with it. Persons with nothing left do not count.
    """
    features = measured.features
    here = np.flatnonzero((measured.lengths[measured.person_at] == length) & ~dropped)
    for variable in np.unique(features.variable_number[here]):
        persons = len(np.unique(measured.person_at[here[~dropped[here]]]))
        rows = here[(features.variable_number[here] == variable) & able[here] & ~dropped[here]]
        lacking = persons - len(rows)
        if 0 < len(rows) < k:
            dropped[rows] = True
        elif absent_too and len(rows) and 0 < lacking < k:
            order = rows[np.lexsort((features.person_number[rows], features.n[rows]))]
            dropped[order if persons < 2 * k else order[: k - lacking]] = True


def _match_patterns(plan: SeriesPlan, measured: Measured, able: Flags, dropped: Flags, length: int) -> None:
    """Withhold variables until each combination that persons of a length have is that of at least k of them."""
    features, k = measured.features, plan.part.privacy.k
    rows = np.flatnonzero((measured.lengths[measured.person_at] == length) & ~dropped)
    if len(rows) == 0:
        return
    persons, at = np.unique(measured.person_at[rows], return_inverse=True)
    variable = features.variable_number[rows]
    present = np.zeros((len(persons), int(variable.max()) + 1), dtype=bool)
    records = np.zeros(present.shape, dtype=np.int64)
    mine = able[rows]
    present[at[mine], variable[mine]], records[at[mine], variable[mine]] = True, features.n[rows[mine]]
    kept = share_patterns(present, records, k, plan.part.durations.k)
    dropped[rows[mine]] |= ~kept[at[mine], variable[mine]]
    bare = np.asarray(~kept.any(axis=1), dtype=bool)
    if bare.sum() < k:  # who has left only what is released as it is
        dropped[rows] |= bare[at]


def _rare(group: Ints, variable: Ints, dropped: Flags, k: int) -> Flags:
    """Rows of a (group, variable) that fewer than k rows are left in."""
    pairs, inverse = np.unique(np.stack([group, variable], axis=1), axis=0, return_inverse=True)
    left = np.bincount(inverse.reshape(-1)[~dropped], minlength=len(pairs))
    return np.asarray(left[inverse.reshape(-1)] < k)


def _points(
    plan: SeriesPlan,
    variables: tuple[str, ...],
    measured: Measured,
    chosen: tuple[Flags, NDArray[np.str_], Collection[Statistic]],
    engine: Engine,
) -> tuple[exp.Table, list[Dimension]]:
    """Persons as points: a column for each variable's feature, in the order of their names.

    `chosen`: rows that are withheld, what of each row is made common, and the features that form classes.
    """
    features, (dropped, row_kept, by) = measured.features, chosen
    there = np.zeros(len(measured.persons), dtype=bool)
    there[measured.person_at[~dropped]] = True
    four = {"max": features.maximum, "mean": features.mean, "min": features.minimum, "variance": features.variance}
    own = {f.name: measured.own[:, i] for i, f in enumerate(plan.own)}
    columns: dict[str, pa.Array] = {
        "row_number": pa.array(measured.persons[there]),
        "root": pa.array(measured.lengths[there]),
    }
    dimensions: list[Dimension] = []
    for variable in sorted(range(len(variables)), key=lambda v: variables[v]):
        rows = np.flatnonzero((features.variable_number == variable) & ~dropped & (row_kept != "none"))
        if plan.kept(variables[variable]) == "none":
            continue
        common = by if plan.kept(variables[variable]) == "all" else ("mean",)
        listed = {name: values for name, values in four.items() if name in common}
        for _, values in sorted({**listed, **own}.items()):
            wide = np.full(len(measured.persons), np.nan)
            wide[measured.person_at[rows]] = values[rows]
            column = f"d{len(dimensions)}"
            columns[column] = pa.array(wide[there], mask=~np.isfinite(wide[there]))
            dimensions.append(Dimension(column, variable))
    return engine.put(f"{plan.name}_points", pa.table(columns)), dimensions


def _targets(
    plan: SeriesPlan,
    measured: Measured,
    of_person: Ints,
    dropped: Flags,
    row_kept: NDArray[np.str_],
    steps: Floats,
) -> Classes:
    """Targets of the rows whose features are made common; a target of fewer than k members drops its rows."""
    asked, of_row = plan.part.privacy, of_person[measured.person_at]
    least = 1 if asked.nulls == "source" else asked.k
    values, means = (np.full((len(of_row), 4), np.nan) for _ in range(2))
    dropped, step = dropped.copy(), np.zeros(len(of_row))
    for kept in ("all", "mean"):
        rows = np.flatnonzero((row_kept == kept) & ~dropped)
        if len(rows) == 0:
            continue
        part = _take(measured.features, rows)
        if kept == "mean":  # one record is enough to meet a mean
            part = replace(part, n=np.maximum(part.n, LEAST_RECORDS))
        found = make_targets(part, of_row[rows], asked.targets, least_members=least, steps=steps[rows])
        dropped[rows] |= found.dropped
        step[rows] = found.step
        width = 4 if kept == "all" else 1
        values[rows, :width], means[rows, :width] = found.values[:, :width], found.class_mean[:, :width]
    _empty_small(measured, of_row, dropped, asked.k)
    _empty_lengths(measured, dropped, plan.part.durations.k)
    values[dropped], means[dropped] = np.nan, np.nan
    return Classes(of_person, of_row, Targets(values, means, dropped, step), dropped)


def withhold_rare(plan: SeriesPlan, measured: Measured, classes: Classes) -> Classes:
    """Withhold variables that fewer than k persons are left with, where their names are values of the data.

    Such a name is itself something that fewer than k persons share.
    """
    k, dropped, before = plan.part.privacy.k, classes.dropped.copy(), -1
    while dropped.sum() > before:  # who is left with nothing is no longer there to be counted
        before = int(dropped.sum())
        persons = np.bincount(measured.features.variable_number[~dropped], minlength=1)
        dropped |= np.isin(measured.features.variable_number, np.flatnonzero(persons < k))
        _empty_small(measured, classes.of_row, dropped, k)
        _empty_lengths(measured, dropped, plan.part.durations.k)
    values, means = classes.targets.values.copy(), classes.targets.class_mean.copy()
    values[dropped], means[dropped] = np.nan, np.nan
    targets = replace(classes.targets, values=values, class_mean=means, dropped=dropped)
    return Classes(classes.of_person, classes.of_row, targets, dropped)


def _empty_small(measured: Measured, of_row: Ints, dropped: Flags, k: int) -> None:
    """Withhold all variables of a class in which fewer than k persons have any left."""
    seen = np.unique(np.stack([of_row[~dropped], measured.person_at[~dropped]], axis=1), axis=0)[:, 0]
    classes, sizes = np.unique(seen, return_counts=True)
    dropped |= np.isin(of_row, classes[sizes < k])


def _take(features: Features, rows: Ints) -> Features:
    return Features(
        features.person_number[rows],
        features.variable_number[rows],
        features.n[rows],
        features.mean[rows],
        features.variance[rows],
        features.minimum[rows],
        features.maximum[rows],
    )
