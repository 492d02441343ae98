"""A plain preparation of the Challenge 2012 set for tests: hourly arrays, durations, Mondrian; slow and obvious."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

VARIABLES = ("heart rate", "systolic", "diastolic", "oxygen saturation", "glucose")
PLAUSIBLE = ((20, 300), (30, 300), (10, 200), (40, 100), (10, 2000))
SOURCES = (("HR",), ("SysABP", "NISysABP"), ("DiasABP", "NIDiasABP"), ("SaO2",), ("Glucose",))


@dataclass(frozen=True)
class Cohort:
    """Hourly `values` (persons, variables, length), NaN outside; `number` is the source's id of each person."""

    values: np.ndarray
    number: np.ndarray


def challenge_2012(folder: Path) -> Cohort:
    """All stays of set a with at least one of five variables, 48 positions from each stay's own first record."""
    table = pd.read_parquet(folder / "physionet2012" / "set-a.parquet")
    parts = []
    for number, (names, (low, high)) in enumerate(zip(SOURCES, PLAUSIBLE, strict=True)):
        part = table[table.parameter.isin(names) & table.value.between(low, high)]
        rank = part.parameter.map({name: i for i, name in enumerate(names)})
        part = part.assign(rank=rank).sort_values(
            ["recordid", "minute", "rank", "value"], ascending=[True, True, True, False]
        )
        parts.append(part.drop_duplicates(["recordid", "minute"]).assign(variable=number))
    rows = pd.concat(parts)
    rows["position"] = (rows.minute - rows.groupby("recordid").minute.transform("min")) // 60
    hourly = rows.groupby(["recordid", "variable", "position"]).value.mean().reset_index()
    number = np.unique(hourly.recordid)
    values = np.full((len(number), len(VARIABLES), 49), np.nan)
    values[np.searchsorted(number, hourly.recordid), hourly.variable, hourly.position] = hourly.value
    flat = values.reshape(-1, values.shape[2])
    for row in flat:
        there = np.flatnonzero(~np.isnan(row))
        if len(there):
            inside = np.arange(there[0], there[-1] + 1)
            row[inside] = np.interp(inside, there, row[there])
    return Cohort(values, number)


LENGTHS = (5, 12, 25, 36, 47)


def complete(cohort: Cohort, lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray]:
    """Persons with all five variables, ends carried, dealt out to the `lengths`, each cut to its last positions."""
    whole = cohort.values[(~np.isnan(cohort.values)).any(axis=2).all(axis=1)][:, :, : max(lengths)]
    whole = whole[(~np.isnan(whole)).any(axis=2).all(axis=1)]
    carried = np.stack([pd.DataFrame(person.T).ffill().bfill().to_numpy().T for person in whole])
    deal = np.random.default_rng(1).permutation(len(carried)) % len(lengths)
    return [carried[deal == i][:, :, -length:] for i, length in enumerate(lengths)]


def by_duration(cohort: Cohort, k: int, shortest: int = 3) -> list[tuple[np.ndarray, np.ndarray]]:
    """(persons, values cut to the class's length) of duration classes ≥ `k`, least records lost; cut in front."""
    there = (~np.isnan(cohort.values)).any(axis=1)
    length = there.shape[1] - np.argmax(there[:, ::-1], axis=1)
    order = np.argsort(-length, kind="stable")
    order = order[length[order] >= shortest]
    sums = np.concatenate([[0], np.cumsum(length[order])])
    least, came_from = [0.0] + [np.inf] * len(order), [0] * (len(order) + 1)
    for stop in range(k, len(order) + 1):
        for start in [*range(max(0, stop - 2 * k + 1), stop - k + 1)]:
            lost = least[start] + sums[stop] - sums[start] - (stop - start) * length[order[stop - 1]]
            if lost < least[stop]:
                least[stop], came_from[stop] = lost, start
    new, stop = length.copy(), len(order)
    while stop:
        new[order[came_from[stop] : stop]] = length[order[stop - 1]]
        stop = came_from[stop]
    return [
        (people, np.stack([cohort.values[p, :, length[p] - least : length[p]] for p in people]))
        for least in np.unique(new[order])
        for people in [np.flatnonzero((new == least) & (length >= shortest))]
    ]


def features(values: np.ndarray) -> np.ndarray:
    """(…, 4): mean, population variance, minimum, maximum along the last axis; NaN where there is no record."""
    with np.errstate(all="ignore"):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.stack([f(values, axis=-1) for f in (np.nanmean, np.nanvar, np.nanmin, np.nanmax)], axis=-1)


def mondrian(points: np.ndarray, k: int, mode: str = "null-aware") -> np.ndarray:
    """Feature class of each row of `points` (persons, dimensions): the range heuristic, plainly recursive.

    `null-aware`: a side of a cut has 0 or at least `k` values of each dimension; `null-strict`: and of NULLs.
    """
    width = np.nanmax(points, axis=0) - np.nanmin(points, axis=0)
    width = np.where(width > 0, width, 1.0)
    label = np.zeros(len(points), dtype=np.int64)
    found = [0]

    def allowed(side: np.ndarray) -> bool:
        if len(side) < k:
            return False
        if mode == "source":
            return True
        values = (~np.isnan(points[side])).sum(axis=0)
        nulls = len(side) - values
        good = (values == 0) | (values >= k)
        if mode == "null-strict":
            good &= (nulls == 0) | (nulls >= k)
        return bool(good.all())

    def split(part: np.ndarray) -> None:
        inside = points[part]
        some = ~np.isnan(inside).all(axis=0)
        ranges = np.full(points.shape[1], -1.0)
        ranges[some] = (np.nanmax(inside[:, some], axis=0) - np.nanmin(inside[:, some], axis=0)) / width[some]
        for dimension in np.argsort(-ranges, kind="stable"):
            if ranges[dimension] < 0:
                break
            column = inside[:, dimension]
            values = np.sort(column[~np.isnan(column)])
            left = column <= values[(len(values) - 1) // 2]
            if allowed(part[left]) and allowed(part[~left]):
                split(part[left])
                split(part[~left])
                return
        label[part] = found[0]
        found[0] += 1

    split(np.arange(len(points)))
    return label
