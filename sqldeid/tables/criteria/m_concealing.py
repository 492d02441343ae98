"""m-concealing (Mazzone 2019, §5.2): re-identification risk when sensitive columns may be known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod
from typing import ClassVar

TOLERANCE = Fraction(1, 10**12)
"""A risk above m by less than this share of m is rounding."""

MOST_COLUMNS = 12
"""Known columns; 4,096 knowledge states."""


@dataclass(frozen=True, slots=True)
class MConcealing:
    """No released row with a risk above `m`: Σ over knowledge states of P(state) / rows that fit the state.

    Parameters
    ----------
    m
        Greatest risk, above 0, at most 1.
    known
        Sensitive columns that the attacker may know, each independently with its probability; NULL is a value.
    inclusion
        Probability that a person is in the release at all; risks are multiplied by it.

    Guarantee
        An attacker who knows every quasi-identifying value, and each column of `known` with its probability, picks the
        row of a given person with probability at most `m`.
    Assumes
        Columns are known independently with the stated probabilities; every column that is not listed is unknown. An
        `inclusion` below 1 assumes uniform, secret, data-independent sampling and an attacker who does not know who
        was sampled.
    Does not protect
        Against learning a sensitive value (use l-diversity or t-closeness with it), nor against an attacker who knows
        more than was stated. Nor against what the node tells unless it is chosen by k alone
        (`sqldeid.tables.plan.choosing`): that some row of a finer, k-anonymous one was at greater risk, so how rare its
        values are.
    Source
        Mazzone 2019, §5.2, formula 5.1. Without suppression inherited by generalisations; with a limit it is not.
        Core: classes of at least inclusion / m rows, for a risk is never below inclusion / rows. Each row above `m` is
        suppressed at every specialisation too, for there fewer rows fit each state (soundness.md 9).
    """

    m: Fraction
    known: tuple[tuple[str, float], ...]
    inclusion: Fraction = Fraction(1)
    kind: ClassVar[str] = "m"

    @property
    def name(self) -> str:
        """As results call it."""
        return "m-concealing"

    @property
    def asked(self) -> float:
        """The number asked for."""
        return float(self.m)

    @property
    def most(self) -> float:
        """Greatest sum over states that passes: m over the inclusion probability."""
        return float(self.m / self.inclusion)

    @property
    def least_rows(self) -> int:
        """Rows below which a class fails whatever is in it; what exceeds m by rounding alone does not."""
        return ceil(self.inclusion / (self.m * (1 + TOLERANCE)))

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        columns = ", ".join(f"{name} with probability {p:g}" for name, p in self.known)
        return (
            "Who knows the quasi-identifying values"
            + (f", and {columns}," if columns else "")
            + f" picks a given person's row with probability at most {float(self.m):g}; other columns count as unknown."
        )

    def chance(self, state: tuple[bool, ...]) -> float:
        """Probability of a knowledge state."""
        return prod(p if knows else 1 - p for (_, p), knows in zip(self.known, state, strict=True))
