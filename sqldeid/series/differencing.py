"""Refuse series releases of one run that a differencing attack could subtract, down to fewer persons than k.

Guarantee
    For every variable that two releases of a run both have, each set of persons who are in the same groups of both (or
    in none of one), with the same shortened series or another in both, is empty or has the k of the releases that it is
    in. So no difference of published sums, n₁·f₁ - n₂·f₂, is one over fewer persons.

    Two releases that read a common table, be it through views, and have a variable in common are refused where their
    person keys have different names: of whom they are is not known then.

Assumes
    The person key means the same persons where it has the same name, and a variable the same where it does. With a
    ledger the releases are entered one after the other instead, and persons are held back.

Does not protect
    Against what variables of different names, or lengths, tell together; see `sqldeid.run.joinable`.

Source: soundness.md 18.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from sqldeid.catalogue.beneath import beneath, meet
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.series.memory import told
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.shape import Shaped

_Cell = tuple[int, object]
"""Group and digest of the series."""


@dataclass(frozen=True, slots=True)
class _Release:
    """By variable, person → group and series."""

    plan: SeriesPlan
    variables: dict[str, dict[str, _Cell]]


@dataclass(slots=True)
class Differencing:
    """The releases of series of a run so far."""

    before: list[_Release] = field(default_factory=list)

    def add(self, plan: SeriesPlan, shaped: Shaped, engine: Engine) -> None:
        """Take in a release.

        Raises
        ------
        JobError
            If it can be compared with one before to single people out.
        """
        now = _release(plan, shaped, engine)
        for other in self.before:
            if other.plan.person.name.casefold() == plan.person.name.casefold():
                _refuse(other, now)
            elif other.variables.keys() & now.variables.keys():
                _refuse_renamed(other.plan, plan, engine)
        self.before.append(now)


def _release(plan: SeriesPlan, shaped: Shaped, engine: Engine) -> _Release:
    if shaped.people is None:
        raise ValueError("persons were not named")
    found, people = told(shaped, engine), shaped.people.to_pylist()
    variables = {}
    for name, series in zip(found.variables, found.series, strict=True):
        rows = np.flatnonzero([digest is not None for digest in series])
        variables[name.casefold()] = {people[i]: (int(found.group[i]), series[i]) for i in rows.tolist()}
    return _Release(plan, variables)


def _refuse_renamed(before: SeriesPlan, now: SeriesPlan, engine: Engine) -> None:
    if meet(beneath(before.source, engine), beneath(now.source, engine)):
        raise JobError.at(
            f"{now.key}.person",
            f"is {now.person.name}, in {before.key} {before.person.name}, and both read a common table, so that it is "
            "not known whether classes of the same persons can be subtracted. Give the key one name in both, by a "
            "source query that renames it, and they are compared; or, if nobody will be given both, say so by "
            "--without-ledger",
        )


def _refuse(before: _Release, now: _Release) -> None:
    k_before, k_now = before.plan.part.privacy.k, now.plan.part.privacy.k
    for name in before.variables.keys() & now.variables.keys():
        here, there = before.variables[name], now.variables[name]
        cells: Counter[tuple[object, ...]] = Counter()
        for person in here.keys() | there.keys():
            a, b = here.get(person), there.get(person)
            cells[a and a[0], b and b[0], a is not None and b is not None and a[1] == b[1]] += 1
        for (group, other, _), size in cells.items():
            if size < max(k_before if group is not None else 0, k_now if other is not None else 0):
                raise JobError.at(
                    now.plan.key,
                    f"{before.plan.key} has some of the same persons in other classes, and what the "
                    "classes of both show can be subtracted, down to fewer persons than k. Release one of them, or "
                    "give them cohorts without common persons; hold them to each other with --ledger FILE; or, if "
                    "nobody will be given both, say so by --without-ledger",
                )
