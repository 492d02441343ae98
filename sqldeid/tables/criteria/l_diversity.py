"""l-diversity (Machanavajjhala et al. 2007): distinct, entropy, recursive (c,l); of a column, or of several jointly.

`others` makes a criterion joint (ibid., §4.3): it must hold in every *group* of a class, the rows that agree on all of
these other sensitive columns, so it still holds for who knows their values. A class with one failing group is
suppressed as a whole. Each kind is closed under union, so what is met in every group is met in the class, too.

Monotonicity of joint criteria: without suppression inherited by generalisations; with a limit not even distinct
l-diversity is, for a class that passes merged with a failing group of other values fails. Core: every row of a group
with too few values is suppressed at every specialisation; of another one all but the largest part that passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


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
        homogeneous). Nor against what the node tells unless it is chosen by k alone
        (`sqldeid.tables.plan.choosing`): that a finer, k-anonymous one failed can give a member's value with certainty.
    Source
        Machanavajjhala et al. 2007, §4. Inherited by generalisations, also with suppression: a superset of a passing
        class has at least its values. It is its own monotone core.
    """

    column: str
    l: int
    others: tuple[str, ...] = ()
    kind: ClassVar[str] = "distinct"

    @property
    def name(self) -> str:
        """As results call it."""
        return _named("distinct l-diversity", self.others)

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.l

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        known = f", also to who knows the person's {_listed(self.others)}" if self.others else ""
        return f"Who is known to be in a class has one of at least {self.l} values of {self.column}{known}."


@dataclass(frozen=True, slots=True)
class EntropyLDiversity:
    """Entropy of `column` in every released class at least ln `l`; NULL is a value.

    Guarantee
        An attacker's uncertainty about a member's value is at least that of `l` equally likely values.
    Assumes
        As for distinct l-diversity.
    Does not protect
        Against similar values, nor against an attacker who can rule values out or knows how suppression works; nor
        against what the node tells, as for distinct l-diversity.
    Source
        Machanavajjhala et al. 2007, §4.1: n·ln n − Σ c·ln c ≥ n·ln l, with a tolerance of 1e-9·n for rounding.
        Without suppression inherited by generalisations (entropy is concave); with a limit it is not: a passing class
        merged with a failing one may fail. Core: distinct l-diversity, which it implies; and of a class that fails all
        rows but those of the largest part that would pass (`surviving`): what is released below it passes as a whole.
    """

    column: str
    l: int
    others: tuple[str, ...] = ()
    kind: ClassVar[str] = "entropy"

    @property
    def name(self) -> str:
        """As results call it."""
        return _named("entropy l-diversity", self.others)

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.l

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"{_within(self.others)}, the values of {self.column} are as uncertain as {self.l} equally likely values "
            "or more."
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
        Against similar values, nor against an attacker who knows how suppression works; nor against what the node
        tells, as for distinct l-diversity.
    Source
        Machanavajjhala et al. 2007, §4.2. Compared in integers. Monotonicity and core as for entropy l-diversity.
    """

    column: str
    l: int
    c: Fraction
    others: tuple[str, ...] = ()
    kind: ClassVar[str] = "recursive"

    @property
    def name(self) -> str:
        """As results call it."""
        return _named("recursive (c,l)-diversity", self.others)

    @property
    def asked(self) -> float:
        """The number asked for: `c`, which r₁ over what is left stays below."""
        return float(self.c)

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"{_within(self.others)}, the most frequent value of {self.column} has fewer rows than {float(self.c):g} "
            f"times those left without the {self.l - 1} most frequent values."
        )


def _named(name: str, others: tuple[str, ...]) -> str:
    return f"joint {name}" if others else name


def _within(others: tuple[str, ...]) -> str:
    """Where a criterion holds, at the start of a sentence."""
    return f"Among the rows of a class with the same {_listed(others)}" if others else "Within a class"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
