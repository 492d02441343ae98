"""The game of Wan et al. (2015) in its no-attack variant: no class where an attack pays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqldeid.job.privacy import Game
from sqldeid.job.risk_rules import least_unpaid
from sqldeid.result import Criterion, Measured

NAMES = {"prosecutor": "no attack pays (prosecutor)", "journalist": "no attack pays (journalist)"}
"""What results call it, by the attacker."""


@dataclass(frozen=True, slots=True)
class NoAttack:
    """Who attacks a released row by picking one of the n persons who fit it loses by that: payout / n < cost.

    Parameters
    ----------
    payout
        What a person's row is worth to the attacker, once it is found.
    cost
        What an attempt costs.
    attacker
        `prosecutor`: knows that a person is in the release, n is the rows of the class. `journalist`: does not, n is
        the persons of the population who fit.

    Guarantee
        An attacker who pays `cost` for each attempt to find a person's row, is paid `payout` for each that succeeds
        and gains by more than nothing or does not attack, attacks no released row: the expected gain
        payout / n - cost is below 0 in every class.
    Assumes
        What k-anonymity (k-map for the journalist) assumes; and that the attacker has no other profit, is rational and
        risk-neutral, pays at least `cost` for each attempt, and is paid at most `payout`. Both are the custodian's
        estimates, in one currency.
    Does not protect
        Against who gains otherwise, by spite or by fame, has cheaper attempts (one that serves for many rows), or is
        paid for a sensitive value that the class shares.
    Source
        Wan et al. 2015, *A Game Theoretic Framework for Analyzing Re-Identification Risk*: the recipient's payoff for a
        record is payout / n - cost, and a publisher without attacks is one that leaves none above 0; here, as in ARX,
        none at 0 either. It holds exactly where n is `least` or more, so it is k-anonymity or k-map of that k, with
        their monotone core; the job must state that k, so every search and re-check holds it.
    """

    payout: Fraction
    cost: Fraction
    attacker: str

    @classmethod
    def of(cls, asked: Game) -> NoAttack:
        """As the job states it."""
        return cls(Fraction(repr(float(asked.payout))), Fraction(repr(float(asked.cost))), asked.attacker)

    @property
    def name(self) -> str:
        """As results call it."""
        return NAMES[self.attacker]

    @property
    def least(self) -> int:
        """The least number of persons who fit a row that nobody attacks."""
        return least_unpaid(self.payout, self.cost)

    @property
    def told(self) -> str:
        """What is asked, as a plan tells it."""
        return f"payout {float(self.payout):g}, cost {float(self.cost):g}: {self.least} fit each row at least"

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"Who pays {float(self.cost):g} for each attempt to find a person, and is paid {float(self.payout):g} for "
            "each that succeeds, loses by every attempt."
        )

    def achieved(self, fewest: float) -> Criterion:
        """Of a release whose smallest class (of the population, for the journalist) has so many rows, which hold."""
        return Criterion(self.name, None, self.least, fewest, self.promise)

    def measured(self, fewest: float, *, rows: bool) -> Measured:
        """Of any table, met or not; `rows` is whether it has any."""
        return Measured(self.name, None, self.least, fewest, fewest >= self.least or not rows)

    def said(self) -> dict[str, object]:
        """As the job says it."""
        return {"payout": float(self.payout), "cost": float(self.cost), "attacker": self.attacker}
