"""δ-disclosure privacy (Brickell and Shmatikov 2008): no class tells more of any value than a factor e^δ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria.base import ClassCriterion, Spec, Terms, Words
from sqldeid.tables.criteria.bounds import Bounds
from sqldeid.tables.criteria.rational import exp_bounds


@dataclass(frozen=True, slots=True)
class DeltaDisclosure(ClassCriterion):
    """|ln(share in the class / share in the whole table)| below `delta` for every value of `column`; NULL is a value.

    A value that no row of a class has is infinitely far from its share in the whole table, so every value of the table
    must be in every class: values that fewer than k rows have leave few classes.

    Guarantee
        What an attacker believes of each value of a member grows or shrinks by a factor below e^delta when the class is
        known.
    Assumes
        The distribution of the whole input is public knowledge; the value itself is not known to the attacker.
    Does not protect
        Against what the whole table tells about everyone, nor against an attacker who can rule values out or knows how
        suppression works. Nor against what the node tells unless it is chosen by k alone
        (`sqldeid.tables.plan.choosing`). Shares are of all input rows, not of the released ones; results give both.
    Source
        Brickell and Shmatikov 2008, §3, definition 4. Compared in whole numbers with e^delta and e^-delta rounded
        inwards to trillionths; both are irrational, so "below" is never decided by equality. Without suppression
        inherited by generalisations (the mediant), with a limit not; proof and core in `bounds`.
    """

    column: str
    delta: Fraction
    key: ClassVar[str] = "delta_disclosure"
    against_whole: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        delta = float(self.delta)
        return Words(
            "delta-disclosure privacy",
            delta,
            f"delta = {delta:g}",
            f"In every class the share of each value of {self.column} is that in the whole table but for a factor "
            f"below e^{delta:g}.",
            f"Among the persons of every class the share of each value of {self.column} is that among all persons but "
            f"for a factor below e^{delta:g}.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements."""
        return Terms("bounded", number=self.delta, definition="delta")

    def bounds(self, whole: Ints) -> Bounds:
        """e^-delta and e^delta times the share in the whole table, rounded inwards."""
        factors = exp_bounds(-self.delta)[1], exp_bounds(self.delta)[0]
        return Bounds.of(whole, lambda share: factors)

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """The greatest logarithm of a ratio of shares; None where a class lacks a value."""
        rows = np.bincount(code, weights=n).astype(np.int64)
        met = self.bounds(rows).all_hold(starts, code, n)
        values = np.diff(np.append(starts, len(n)))
        if (values < np.count_nonzero(rows)).any():
            return None, met
        size = np.repeat(np.add.reduceat(n, starts), values)
        return float(np.abs(np.log(n / size) - np.log(rows[code] / rows.sum())).max()), met


def disclosure_of(entry: Spec, sensitive: Sequence[str]) -> ClassCriterion:
    """The criterion of an entry of `delta_disclosure`."""
    return DeltaDisclosure(entry["column"], Fraction(repr(float(entry["delta"]))))
