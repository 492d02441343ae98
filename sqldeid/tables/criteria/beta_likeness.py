"""β-likeness (Cao and Karras 2012): no class tells that a value is more likely than the whole table by much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.base import ClassCriterion, Spec, Terms, Words
from sqldeid.tables.criteria.bounds import Bounds
from sqldeid.tables.criteria.rational import log_bounds


@dataclass(frozen=True, slots=True)
class BetaLikeness(ClassCriterion):
    """Of every value of `column`, its share q in a class and p in the whole table: (q - p)/p at most `beta`.

    Parameters
    ----------
    kind
        `basic`: as above. `enhanced`: (q - p)/p at most min(beta, -ln p), so that frequent values are bounded, too:
        with basic alone a value of share p may fill a class where 1/p - 1 <= beta. NULL is a value.

    Guarantee
        What an attacker believes of any value of a member grows by at most a factor 1 + beta when the class is known.
    Assumes
        The distribution of the whole input is public knowledge; the value itself is not known to the attacker.
    Does not protect
        Against learning that a value is less likely, or not there: shares may fall to nothing (use delta-disclosure).
        Nor against what the whole table tells about everyone, an attacker who can rule values out or knows how
        suppression works, or what the node tells unless it is chosen by k alone (`sqldeid.tables.plan.choosing`).
        Shares are of all input rows, not of the released ones; results give both.
    Source
        Cao and Karras 2012, §3, definitions 2 and 3. Compared in whole numbers; -ln p rounded down to trillionths.
        Without suppression inherited by generalisations (the mediant), with a limit not; proof and core in `bounds`.
    """

    column: str
    beta: Fraction
    kind: Literal["basic", "enhanced"]
    key: ClassVar[str] = "beta_likeness"
    against_whole: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        beta, enhanced = float(self.beta), self.kind == "enhanced"
        most = f"by at most {beta:g} times that share" + (
            " and by at most -ln of that share times it" if enhanced else ""
        )
        return Words(
            "enhanced beta-likeness" if enhanced else "beta-likeness",
            beta,
            f"beta = {beta:g}, {self.kind}",
            f"In every class the share of each value of {self.column} exceeds that in the whole table {most}.",
            f"Among the persons of every class the share of each value of {self.column} exceeds that among all persons "
            f"{most}.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements.

        Raises
        ------
        UnknownKindError
            For a kind that is not known.
        """
        match self.kind:
            case "basic":
                return Terms("bounded", number=self.beta, definition="beta")
            case "enhanced":
                return Terms("bounded", number=self.beta, definition="enhanced")
            case unknown:
                raise UnknownKindError(unknown, "kind of beta-likeness")

    def bounds(self, whole: Ints) -> Bounds:
        """Nothing, and 1 + beta times the share in the whole table; of enhanced the lesser of that and 1 - ln p."""
        return Bounds.of(whole, lambda share: (Fraction(0), 1 + self._gain(share)))

    def _gain(self, share: Fraction) -> Fraction:
        if self.kind == "basic":
            return self.beta
        return min(self.beta, log_bounds(1 / share)[0] if share < 1 else Fraction(0))

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """The greatest gain of a value, (q - p)/p; None where one exceeds -ln p and the kind is enhanced."""
        rows = np.bincount(code, weights=n).astype(np.int64)
        met = self.bounds(rows).all_hold(starts, code, n)
        size = np.repeat(np.add.reduceat(n, starts), np.diff(np.append(starts, len(n))))
        p = rows[code] / rows.sum()
        gain = n / size / p - 1
        if self.kind == "enhanced" and (gain > -np.log(p) + 1e-12 * (1 - np.log(p))).any():
            return None, met
        return float(gain.max()), met


def likeness_of(entry: Spec, sensitive: Sequence[str]) -> ClassCriterion:
    """The criterion of an entry of `beta_likeness`."""
    return BetaLikeness(entry["column"], Fraction(repr(float(entry["beta"]))), entry["kind"])
