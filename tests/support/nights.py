"""A hospital's table as it changes from night to night, and the attacker who compares what is released of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd

Row = tuple[object, ...]
Released = dict[int, Row]
"""Person → what is released of the person: class, then values."""


@dataclass
class Hospital:
    """People who arrive, leave and are corrected; seeded.

    Parameters
    ----------
    arrivals, departures, corrections
        People a night; of the corrections half are of the age, half of the illness.
    """

    seed: int
    people: int = 300
    arrivals: int = 8
    departures: int = 2
    corrections: int = 2
    rows: dict[int, dict[str, object]] = field(default_factory=dict)

    def nights(self, number: int) -> Iterator[pd.DataFrame]:
        """The table of each night."""
        rng = np.random.default_rng(self.seed)
        self._arrive(rng, self.people)
        for night in range(number):
            if night:
                self._change(rng)
            yield pd.DataFrame(self.rows.values()).sample(frac=1, random_state=night)

    def _arrive(self, rng: np.random.Generator, number: int) -> None:
        for _ in range(number):
            person = len(self.rows) + 1 if not self.rows else max(self.rows) + 1
            self.rows[person] = {
                "id": person,
                "age": int(rng.integers(20, 80)),
                "sex": str(rng.choice(["f", "m"])),
                "illness": str(rng.choice(["asthma", "flu", "gout", "mumps"], p=[0.4, 0.3, 0.2, 0.1])),
                "mark": person,
            }

    def _change(self, rng: np.random.Generator) -> None:
        for person in rng.choice(list(self.rows), self.departures, replace=False):
            del self.rows[int(person)]
        for i, person in enumerate(rng.choice(list(self.rows), self.corrections, replace=False)):
            row = self.rows[int(person)]
            if i % 2:
                row["age"] = int(rng.integers(20, 80))
            else:
                row["illness"] = str(rng.choice(["asthma", "flu", "gout", "mumps"]))
        self._arrive(rng, self.arrivals)


def steps_of(releases: Sequence[Released]) -> dict[int, tuple[tuple[object, bool] | None, ...]]:
    """Person → trace: per release the class, and whether the values differ from those before; None if absent."""
    last: dict[int, Row] = {}
    traces: dict[int, list[tuple[object, bool] | None]] = {}
    everybody = {p for released in releases for p in released}
    for released in releases:
        for person in everybody:
            row = released.get(person)
            step = None if row is None else (row[0], person in last and last[person] != row[1:])
            traces.setdefault(person, []).append(step)
            if row is not None:
                last[person] = row[1:]
    return {person: tuple(trace) for person, trace in traces.items()}


def smallest_trace(releases: Sequence[Released]) -> int:
    """The fewest persons of one trace: what can be singled out by comparing any number of releases."""
    return min(Counter(steps_of(releases).values()).values())


def smallest_difference(releases: Sequence[Released]) -> int:
    """The fewest persons, but not none, that joined, left or stayed between any two releases, class by class."""
    found = [len(releases) and 10**9]
    members = [_members(r) for r in releases]
    for i, first in enumerate(members):
        for second in members[i + 1 :]:
            for a, before in first.items():
                after = second.get(a, set())
                found += [len(before - after), len(after - before)]
                found += [len(before & other) for other in second.values()]
    return min(n for n in found if n)


def _members(released: Released) -> dict[object, set[int]]:
    found: dict[object, set[int]] = {}
    for person, row in released.items():
        found.setdefault(row[0], set()).add(person)
    return found


def lone_rows(releases: Sequence[Released]) -> int:
    """How often one row alone appears in a class, or vanishes from it, from a night to the next."""
    found = 0
    for before, after in pairwise(releases):
        first, second = ({(person, row) for person, row in r.items()} for r in (before, after))
        for rows in (first - second, second - first):
            found += sum(n == 1 for n in Counter(row[0] for _, row in rows).values())
    return found
