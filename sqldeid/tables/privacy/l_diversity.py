"""l-diversity (Machanavajjhala et al. 2007): distinct, entropy, and recursive (c,l)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

Scope = Literal["independent", "joint"]


@dataclass(frozen=True, slots=True)
class DistinctLDiversity:
    """At least `l` distinct values of `column` in every released equivalence class; NULL is a value.

    Guarantee
        Who is known to be in a class has one of at least `l` values of `column`.
    Assumes
        The sensitive value is not known to the attacker; classes are those of the released quasi-identifying columns.
    Does not protect
        Against skewed or similar values (use t-closeness), nor against an attacker who can rule values out or knows
        how suppression works (Wong et al. 2007: with l = 2, a class known to have had k persons but missing is
        homogeneous).
    Source
        Machanavajjhala et al. 2007, §4. Inherited by generalisations, also with suppression: a superset of a passing
        class has at least its values. It is its own monotone core.
    """

    column: str
    l: int
    kind: ClassVar[str] = "distinct"

    @property
    def name(self) -> str:
        """As results call it."""
        return "distinct l-diversity"

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.l

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return f"Who is known to be in a class has one of at least {self.l} values of {self.column}."


@dataclass(frozen=True, slots=True)
class EntropyLDiversity:
    """Entropy of `column` in every released class at least ln `l`; NULL is a value.

    Guarantee
        An attacker's uncertainty about a member's value is at least that of `l` equally likely values.
    Assumes
        As for distinct l-diversity.
    Does not protect
        Against similar values, nor against an attacker who can rule values out or knows how suppression works.
    Source
        Machanavajjhala et al. 2007, §4.1: n·ln n − Σ c·ln c ≥ n·ln l, with a tolerance of 1e-9·n for rounding.
        Without suppression inherited by generalisations (entropy is concave); with a limit it is not: a passing class
        merged with a failing one may fail. Core: distinct l-diversity, which it implies; a class that fails forces at
        least one suppressed row below it, for if all its parts passed, it would pass.
    """

    column: str
    l: int
    kind: ClassVar[str] = "entropy"

    @property
    def name(self) -> str:
        """As results call it."""
        return "entropy l-diversity"

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.l

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"Within a class, the values of {self.column} are as uncertain as {self.l} equally likely values or more."
        )


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity:
    """Recursive (c,l)-diversity of `column`: r₁ < c·(r_l + … + r_m), r falling counts in a class; NULL is a value.

    Guarantee
        The most frequent value of a class stays below `c` times the rows that are left when the l−1 most frequent
        values are taken away: it is not too frequent, also after l−2 values were ruled out.
    Assumes
        As for distinct l-diversity.
    Does not protect
        Against similar values, nor against an attacker who knows how suppression works.
    Source
        Machanavajjhala et al. 2007, §4.2. Compared in integers. Monotonicity and core as for entropy l-diversity.
    """

    column: str
    l: int
    c: Fraction
    kind: ClassVar[str] = "recursive"

    @property
    def name(self) -> str:
        """As results call it."""
        return "recursive (c,l)-diversity"

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.l

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"In a class, the most frequent value of {self.column} has fewer rows than {float(self.c):g} times those "
            f"left without the {self.l - 1} most frequent values."
        )
