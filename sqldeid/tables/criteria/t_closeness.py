"""t-closeness (Li et al. 2007) with equal and ordered ground distance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class TCloseness:
    """Earth mover's distance of `column` between every released class and all input rows at most `t`; NULL is a value.

    Parameters
    ----------
    distance
        `equal`: any two values are at distance 1. `ordered`: values by rank, neighbours at 1/(values − 1); for numbers,
        or by a stated order. NULL ranks last.

    Guarantee
        What an attacker learns about a member's value from being in the class is bounded: the class is within `t` of
        the whole table.
    Assumes
        The distribution of the whole input is public knowledge; the value itself is not known to the attacker.
    Does not protect
        Against what the whole table tells about everyone, nor against an attacker who knows how suppression works.
        Nor against what the node tells unless it is chosen by k alone (`sqldeid.tables.plan.choosing`): that a finer,
        k-anonymous one was too far from the whole table somewhere.
        The distance is against all input rows, not against the released ones; results give both.
    Source
        Li, Li and Venkatasubramanian 2007, §4. Compared in integers. Without suppression inherited by generalisations
        (the distance is convex); with a limit it is not. Core: k-anonymity; of a failing class also all rows but
        the largest part that could be near enough (`surviving`), more than the ⌈n·(EMD − t)⌉ of soundness.md 9.
    """

    column: str
    t: Fraction
    distance: Literal["equal", "ordered"]
    kind: ClassVar[str] = "t"

    @property
    def name(self) -> str:
        """As results call it."""
        return "t-closeness"

    @property
    def asked(self) -> float:
        """The number asked for."""
        return float(self.t)

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"The distribution of {self.column} in a class is within {float(self.t):g} ({self.distance} distance) of "
            "that of the whole table."
        )
