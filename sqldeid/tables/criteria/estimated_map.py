"""k-map without a table of the population, estimated by the sampling fraction (El Emam and Dankar 2008).

The estimate depends on the size of a class and on constants of the job alone. So it is a class size: the least that a
class of too few persons hardly reaches. The job's k is raised to it, and search, re-check and certificate hold it as k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, expm1, lgamma, log, sqrt
from typing import TYPE_CHECKING

from sqldeid.errors import UnknownKindError
from sqldeid.result import Criterion, Measured

if TYPE_CHECKING:
    from sqldeid.job.privacy import Population

NAME = "k-map, estimated"
"""What results call it."""

POISSON, TRUNCATED = "poisson", "zero-truncated-poisson"

_SLACK = 1e-9
"""Share of the significance that is given up for the rounding of sums, so that it errs towards the greater class."""


@dataclass(frozen=True)
class EstimatedMap:
    """Released classes have so many rows that a class of fewer than k persons of the population hardly has as many.

    Parameters
    ----------
    k
        Persons of the population who are to fit each released row.
    size
        Persons of the population.
    fraction
        The greatest share of them of whom the source has rows; a source of more rows is refused.
    estimate
        `poisson`: the probability is that of a class of the population. `zero-truncated-poisson`: of one of which the
        source has a row, which is more, so that it asks for greater classes.
    significance
        The probability that is accepted.

    Guarantee
        Let the source be a random sample of the population, each person of which is as likely in it as any other, and
        let levels be given. Of a class that fewer than `k` persons of the population fit, the sample has `least` rows
        or more with at most the probability `significance`: over all samples, or with `zero-truncated-poisson` over
        those that have a row of it. So of such classes at most that share is released, as expected.
    Assumes
        The sample is random (Bernoulli, or without replacement), and its fraction of the population is at most
        `fraction`: `size` is right, for no table is there to count. The attacker does not know who is in the sample.
        Levels do not depend on the sample; the search chooses them by it, and of many nodes tried one may fit by
        chance, of which the probability says nothing.
    Does not protect
        It is no bound: single classes of fewer than `k` persons may be released, and nobody knows which. Nor against
        who knows that a person is in the release (the job's k does), nor against sensitive values that a class shares.
        Of a source that is no random sample it says nothing: one hospital's patients are not.
    Source
        Pannekoek 1999, *Statistical methods for some simple disclosure limitation rules*; El Emam and Dankar 2008,
        *Protecting privacy using k-anonymity* (estimators D3 and D4), as ARX has them; its Poisson estimate asks for
        one row more than the test needs.

    Why the Poisson distribution errs to the safe side. The rows of a class of F < k persons are a binomial or
    hypergeometric number, a sum of independent trials of mean F * fraction. From one above the mean on, its tail is at
    most that of the binomial, and that at most the Poisson's (Hoeffding 1956; Anderson and Samuels 1967), which grows
    with the mean; that it has a row at all is at least as likely as by Poisson. `least` is therefore at least
    k * fraction + 1. A class of k rows has k persons, so `least` is at most k.
    """

    k: int
    size: int
    fraction: Fraction
    estimate: str
    significance: Fraction

    def __post_init__(self) -> None:
        if self.estimate not in (POISSON, TRUNCATED):
            raise UnknownKindError(self.estimate, "estimate of the population")

    @classmethod
    def of(cls, k: int, asked: Population) -> EstimatedMap:
        """As the job states it."""
        if asked.size is None or asked.fraction is None:
            raise ValueError("the population has a table")
        fraction, alpha = (Fraction(repr(float(x))) for x in (asked.fraction, asked.significance))
        return cls(k, asked.size, fraction, asked.estimate, alpha)

    @cached_property
    def least(self) -> int:
        """The least rows of a released class."""
        return self._least_for(self.k)

    @property
    def most_rows(self) -> int:
        """The most rows that a source may have."""
        return int(self.size * self.fraction)

    def _least_for(self, k: int) -> int:
        """The least rows that a class of fewer than k persons has with at most the probability that is accepted."""
        if k == 1:
            return 1
        mean = float(k * self.fraction)
        tail, accepted = 0.0, float(self.significance) * (1 - _SLACK)
        if self.estimate == TRUNCATED:
            accepted *= -expm1(-mean)
        rows = ceil(mean + 40 * sqrt(mean) + 60)  # the tail above is less than what sums of floats lose
        while rows > 1 and (tail := tail + _poisson(rows - 1, mean)) <= accepted:
            rows -= 1
        return min(k, max(rows, ceil(k * self.fraction) + 1))

    def fitting(self, fewest: int) -> int:
        """The greatest k that classes of `fewest` rows and more meet; 0 where there is none."""
        low, high = 0, 1
        while self._least_for(high) <= fewest:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._least_for(middle) <= fewest else (low, middle)
        return low

    @property
    def told(self) -> str:
        """What is asked, as a plan tells it."""
        return (
            f"k = {self.k} persons of {self.size:,}, of whom at most {float(self.fraction):g} are in the source: by "
            f"{self.estimate}, significance {float(self.significance):g}, classes of {self.least} rows at least"
        )

    @property
    def promise(self) -> str:
        """What holds, in one sentence; it says that it is no bound."""
        seen = " that have a row in the source" if self.estimate == TRUNCATED else ""
        return (
            f"Of the classes of the population of fewer than {self.k} persons{seen}, at most "
            f"{float(self.significance):g} are expected among the released ones, if the source is a random sample: an "
            "estimate, no bound."
        )

    def achieved(self, fewest: int) -> Criterion:
        """Of a release whose smallest class has so many rows."""
        return Criterion(NAME, None, self.k, float(self.fitting(fewest)), self.promise)

    def measured(self, fewest: int, *, rows: bool) -> Measured:
        """Of any table, met or not; `rows` is whether it has any."""
        return Measured(NAME, None, self.k, float(self.fitting(fewest)), fewest >= self.least or not rows)

    def said(self) -> dict[str, object]:
        """As the job says it."""
        stated = {
            "size": self.size,
            "fraction": float(self.fraction),
            "estimate": self.estimate,
            "significance": float(self.significance),
        }
        return {"k_map": self.k, "population": stated}


def _poisson(n: int, mean: float) -> float:
    """The probability of n."""
    return exp(n * log(mean) - mean - lgamma(n + 1))
