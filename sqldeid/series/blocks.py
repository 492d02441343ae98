"""Perturb series block by block, in whole feature classes, so that memory stays bounded.

What is drawn at random depends on the secret seed and on person, variable or class, never on the block: a release is
the same whatever their size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.job.series import GENETIC, Perturb
from sqldeid.series.features import Classes, Measured
from sqldeid.series.perturb import GeneticSettings, PerturbSettings, SeriesNames, perturb
from sqldeid.series.perturb.draws import generator
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.variables import VariableMap

CELLS = 1_000_000
"""Values of a block, absent ones included; a block holds at least one feature class."""

FEATURES = ("mean", "variance", "minimum", "maximum")


@dataclass(frozen=True, slots=True)
class Block:
    """Series of one length.

    Parameters
    ----------
    rows
        Index into the measured features.
    original, released
        (rows, length), NaN where there is no record.
    """

    length: int
    rows: Ints
    original: Floats
    released: Floats


@dataclass(slots=True)
class Effect:
    """What the perturbation did, summed over blocks.

    `used` and `class_mean` sum |feature − target| over the four features of every series with targets; `greatest` is
    the greatest distance by feature; `change` sums |x̃ − x| over records that both have, `changed` the same by the
    variable's number, beside how many there are: variables have units of their own.
    """

    series: int = 0
    used: float = 0.0
    class_mean: float = 0.0
    change: float = 0.0
    changed: dict[int, tuple[float, int]] = field(default_factory=dict)
    records: int = 0
    greatest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(FEATURES, 0.0))

    def add(self, block: Block, classes: Classes, variables: Ints) -> None:
        """Take in a block; `variables` are the numbers of the variables of all measured features."""
        both = ~np.isnan(block.original) & ~np.isnan(block.released)
        moved = np.abs(np.where(both, block.released - block.original, 0.0)).sum(axis=1)
        self.change += float(moved.sum())
        of = variables[block.rows]
        for number in np.unique(of).tolist():
            before, n = self.changed.get(number, (0.0, 0))
            mine = of == number
            self.changed[number] = (before + float(moved[mine].sum()), n + int(both[mine].sum()))
        self.records += int((~np.isnan(block.released)).sum())
        there = ~np.isnan(block.released).all(axis=1) & ~np.isnan(classes.targets.values[block.rows, 0])
        found = features_of(block.released[there])
        used = np.abs(found - classes.targets.values[block.rows[there]])
        self.series += int(there.sum())
        self.used += float(np.nansum(used))
        self.class_mean += float(np.nansum(np.abs(found - classes.targets.class_mean[block.rows[there]])))
        for i, name in enumerate(FEATURES):
            self.greatest[name] = max(self.greatest[name], float(np.nanmax(used[:, i], initial=0.0)))


def features_of(values: Floats) -> Floats:
    """(series, 4): mean, population variance, minimum, maximum over what is there; at least one record a row."""
    there = ~np.isnan(values)
    n = there.sum(axis=1)
    mean = np.where(there, values, 0.0).sum(axis=1) / n
    variance = np.where(there, (values - mean[:, None]) ** 2, 0.0).sum(axis=1) / n
    low = np.where(there, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(there, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.stack([mean, variance, low, high], axis=1)


def secret(asked: Perturb) -> int | bytes:
    """The seed of a run: the operating system's, or the job's where it wants to repeat a release."""
    return os.urandom(32) if asked.seed is None else asked.seed


def new_numbers(measured: Measured, classes: Classes, seed: int | bytes) -> Ints:
    """(persons,): new numbers from 1 in random order; 0 for who is released with no variable."""
    there = np.zeros(len(measured.persons), dtype=bool)
    there[measured.person_at[~classes.dropped]] = True
    numbers = np.zeros(len(measured.persons), dtype=np.int64)
    numbers[there] = generator(seed, "numbering").permutation(int(there.sum())) + 1
    return numbers


def settings_of(asked: Perturb, variables: VariableMap) -> PerturbSettings:
    """The perturbation as the job asks for it."""
    genetic = {name: value for name in GENETIC if (value := getattr(asked, name)) is not None}
    named = {name: value for name in ("iterations", "noise") if (value := getattr(asked, name)) is not None}
    resolution = tuple((i, variables.resolution[n]) for i, n in enumerate(variables.names) if n in variables.resolution)
    return PerturbSettings(asked.method, genetic=GeneticSettings(**genetic), resolution=resolution, **named)


def release_blocks(
    plan: SeriesPlan,
    variables: VariableMap,
    cut: exp.Table,
    measured: Measured,
    classes: Classes,
    seed: int | bytes,
    engine: Engine,
) -> Iterator[Block]:
    """Perturb all series; a block is of one length."""
    kept = np.array([plan.kept(name) for name in variables.names])[measured.features.variable_number]
    perturbing = _Perturbing(measured, classes, kept, settings_of(plan.part.perturb, variables), seed)
    number, table = _blocks(plan, measured, classes, len(variables.names), engine)
    for block in range(int(number.max()) + 1):
        read = engine.ask("series/read_block", series=cut, blocks=table, block=block)
        rows = np.flatnonzero(number[measured.person_at] == block)
        yield from perturbing.by_length(read, rows)
    engine.drop(table)


def _blocks(
    plan: SeriesPlan, measured: Measured, classes: Classes, variables: int, engine: Engine
) -> tuple[Ints, exp.Table]:
    """(persons,) the block of each: whole feature classes up to CELLS values; and the same as a table."""
    order = np.argsort(classes.of_person, kind="stable")
    cells = np.cumsum(measured.lengths[order] * variables)
    first = np.searchsorted(classes.of_person[order], classes.of_person[order], side="left")
    before = (cells - measured.lengths[order] * variables)[first]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.unique(before // CELLS, return_inverse=True)[1].reshape(-1)
    rows = pa.table({"person_number": measured.persons, "block": number})
    return number, engine.put(f"{plan.name}_blocks", rows)


@dataclass(frozen=True, slots=True)
class _Perturbing:
    """How the measured series are perturbed; `kept` says of each what of it is released: all, its mean, or as it is."""

    measured: Measured
    classes: Classes
    kept: NDArray[np.str_]
    settings: PerturbSettings
    seed: int | bytes

    def by_length(self, read: pa.Table, rows: Ints) -> Iterator[Block]:
        """Dense arrays of each length; `read` has the values of `rows`, in their order."""
        value, position = (read.column(name).to_numpy() for name in ("value", "position"))
        at = np.repeat(np.arange(len(rows)), self.measured.features.n[rows])
        length = self.measured.lengths[self.measured.person_at[rows]]
        for size in np.unique(length):
            mine = np.flatnonzero(length == size)
            place = np.full(len(rows), -1)
            place[mine] = np.arange(len(mine))
            taken = place[at] >= 0
            original = np.full((len(mine), int(size)), np.nan)
            original[place[at[taken]], position[taken]] = value[taken]
            yield Block(int(size), rows[mine], original, self.released(original, rows[mine]))

    def released(self, original: Floats, rows: Ints) -> Floats:
        """Perturb rows with four targets, shift those with a mean alone, keep the others; drop what is withheld."""
        released = np.full_like(original, np.nan)
        there, kept = ~self.classes.dropped[rows], self.kept[rows]
        full = np.flatnonzero(there & (kept == "all"))
        features, targets = self.measured.features, self.classes.targets.values[rows]
        if len(full):
            of = rows[full]
            names = SeriesNames(features.person_number[of], features.variable_number[of], self.classes.of_row[of])
            steps = self.classes.targets.step[of]
            released[full] = perturb(original[full], targets[full], self.settings, self.seed, names=names, steps=steps)
        shifted = np.flatnonzero(there & (kept == "mean"))
        released[shifted] = original[shifted] + (targets[shifted, 0] - features.mean[rows[shifted]])[:, None]
        left = np.flatnonzero(there & (kept == "none"))
        released[left] = original[left]
        return released


def rows_of(block: Block, numbers: Ints, measured: Measured, classes: Classes) -> pa.Table:
    """A block in the long form of the release: every step of each variable that a person has."""
    there = np.flatnonzero(~classes.dropped[block.rows])
    chosen = block.rows[there]
    values = block.released[there].reshape(-1)
    return pa.table(
        {
            "number": np.repeat(numbers[measured.person_at[chosen]], block.length),
            "variable_number": np.repeat(measured.features.variable_number[chosen].astype(np.int32), block.length),
            "position": np.tile(np.arange(block.length, dtype=np.int64), len(chosen)),
            "value": pa.array(values, mask=np.isnan(values)),
        }
    )
