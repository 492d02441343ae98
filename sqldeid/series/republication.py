"""Release series of persons again: who was released before keeps the length, the class and the variables of then.

Whoever comes anew is shortened and classed among those who come anew with them. What may go out is decided afterwards,
by the ledger: this only keeps its cells whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Ints
from sqldeid.engine.base import Engine
from sqldeid.ledger.groups import Group
from sqldeid.series.durations import assign
from sqldeid.series.features import Classes, Measured, classify, retarget, take_persons
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.targets import LEAST_RECORDS
from sqldeid.series.variables import VariableMap

Looking: TypeAlias = Callable[[pa.Array], Sequence[Group | None]]
"""Tells of persons, as the source spells them, in which group each was released last."""


@dataclass(frozen=True, slots=True)
class EarlierGroups:
    """As what persons were released before: (persons,) family, length, number of the set of variables; 0 for no one."""

    family: Ints
    length: Ints
    kept: Ints
    sets: tuple[frozenset[str], ...]

    def take(self, chosen: Flags) -> EarlierGroups:
        """Of some of the persons."""
        return replace(self, family=self.family[chosen], length=self.length[chosen], kept=self.kept[chosen])


def earlier_groups(found: Sequence[Group | None]) -> EarlierGroups:
    """How persons were released before, by their groups."""
    texts = sorted({g.variables for g in found if g is not None})
    number = {text: i for i, text in enumerate(texts)}
    rows = [(0, 0, 0) if g is None else (g.family, g.length, number[g.variables]) for g in found]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return EarlierGroups(columns[:, 0], columns[:, 1], columns[:, 2], tuple(frozenset(json.loads(t)) for t in texts))


def lengths_of(plan: SeriesPlan, lengths: Ints, earlier: EarlierGroups, least: int) -> Ints:
    """The released length of each series: the one that it had, else one that enough newcomers share; 0 for neither."""
    fits = (earlier.length > 0) & (lengths >= earlier.length)
    released = np.where(fits, earlier.length, 0).astype(np.int64)
    new = earlier.length == 0
    if new.sum() >= least:
        released[new] = assign(lengths[new], least, plan.part.durations.method)
    return released


def classify_on(
    plan: SeriesPlan, mapped: VariableMap, measured: Measured, earlier: EarlierGroups, engine: Engine
) -> Classes:
    """Classes of newcomers beside those that were released before; targets of all.

    Who lacks a variable that was released before is not released.
    """
    new = earlier.length == 0
    rows = new[measured.person_at]
    of_person = np.zeros(len(new), dtype=np.int64)
    dropped = np.ones(len(rows), dtype=np.bool_)
    if new.any():
        found = classify(plan, mapped, take_persons(measured, new), engine)
        of_person[new], dropped[rows] = found.of_person, found.dropped
    start = int(of_person.max(initial=0)) + 1
    of_person[~new] = start + np.unique(earlier.family[~new], return_inverse=True)[1].reshape(-1)
    dropped[~rows] = _dropped_again(plan, mapped.names, measured, earlier)[~rows]
    return retarget(plan, mapped, measured, of_person, dropped)


def _dropped_again(plan: SeriesPlan, variables: tuple[str, ...], measured: Measured, earlier: EarlierGroups) -> Flags:
    """(rows,): what is not released again: variables that were not, all of a person who lacks one that was."""
    features = measured.features
    wanted = np.array([[name in names for name in variables] for names in earlier.sets], dtype=np.bool_)
    wanted = wanted.reshape(len(earlier.sets), len(variables))
    if not len(wanted):
        return np.ones(len(features.n), dtype=np.bool_)
    able = np.ones(len(features.n), dtype=np.bool_)
    if plan.part.privacy.targets == "reachable":
        full = np.array([plan.kept(name) == "all" for name in variables])[features.variable_number]
        able = (features.n >= LEAST_RECORDS) | ~full
    kept = wanted[earlier.kept[measured.person_at], features.variable_number] & able
    unknown = np.array([len(names - set(variables)) for names in earlier.sets])
    lacking = wanted.sum(axis=1) + unknown
    there = np.bincount(measured.person_at[kept], minlength=len(earlier.kept))
    whole = there == lacking[earlier.kept]
    return np.asarray(~(kept & whole[measured.person_at]))
