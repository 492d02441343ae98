"""Publish an entry of a model where one record less would change its frequency by little (Shaked and Rokach 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isfinite

from sqldeid.errors import JobError


@dataclass(frozen=True, slots=True)
class Ratio:
    """An entry with count c of a row with total n is used iff c >= 2 and (c/n) / ((c - 1)/(n - 1)) <= e^epsilon.

    Guarantee
        None that is a probability. Entries that rest on one record are never used, but for endings: END is used
        where any other entry of its state is. What else is used is frequent enough that one record less changes its
        frequency by a factor of at most e^epsilon.
    Assumes
        That records are independent. They are not: one object has many.
    Does not protect
        It is **not differential privacy**, though the source calls it so: with epsilon = 0.4, 3 of 10 is used and
        2 of 9 is not, so that one record turns the probability of a published pattern from 1 to 0. One object with
        several records can put a pattern into every release and its absence take it out of all. Means and deviations
        of times at count 2 give both values away. Daily starts, generic times and durations are used as they are.
    Source
        Shaked & Rokach 2016, §3.5; events.md, *ratio*.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon > 0):
            raise JobError("epsilon must be greater than 0", key="privacy.epsilon")

    @property
    def bound(self) -> float:
        """The greatest ratio; a very large epsilon is the largest finite number."""
        return exp(min(self.epsilon, 700.0))

    def keeps(self, count: int, total: int) -> bool:
        """Whether an entry may be used; compared without division, as the SQL does."""
        return count >= 2 and float(count) * (total - 1) <= self.bound * total * (count - 1)
