"""l-diversity (Machanavajjhala et al. 2007): distinct, entropy, recursive (c,l); of a column, or of several jointly.

`others` makes a criterion joint (ibid., §4.3): it must hold in every *group* of a class, the rows that agree on all of
these other sensitive columns, so it still holds for who knows their values. A class with one failing group is
suppressed as a whole. Each kind is closed under union, so what is met in every group is met in the class, too.

Monotonicity of joint criteria: without suppression inherited by generalisations; with a limit not even distinct
l-diversity is, for a class that passes merged with a failing group of other values fails. Core: every row of a group
with too few values is suppressed at every specialisation; of another one all but the largest part that passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp as power
from math import fsum, log
from typing import ClassVar

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.base import ClassCriterion, Spec, Terms, Words
from sqldeid.tables.criteria.histograms import Flat, Histograms, bisected, log_times

SLACK = 1e-9
"""Of entropies, per row (soundness.md 8)."""

_ROUNDING = 1e-11
"""Difference of entropies below which `holds` decides."""


@dataclass(frozen=True, slots=True)
class DistinctLDiversity(ClassCriterion):
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
    key: ClassVar[str] = "l_diversity"

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        known = f", also to who knows the person's {_listed(self.others)}" if self.others else ""
        return Words(
            _named("distinct l-diversity", self.others),
            self.l,
            f"l = {self.l}",
            f"Who is known to be in a class has one of at least {self.l} values of {self.column}{known}.",
            f"Whichever {self.l - 1} values of {self.column} are ruled out, some person of the class has none of "
            "them in it.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements."""
        return Terms("distinct", self.l)

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """All rows of a class that passes, else none."""
        return np.where((classes.falling() > 0).sum(axis=1) >= self.l, classes.size, 0)

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same, from dense counts."""
        return np.where((counts > 0).sum(axis=1) >= self.l, counts.sum(axis=1), 0)

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """By the number of values."""
        values = np.diff(np.append(classes.first, len(classes.rows)))
        return values >= self.l, np.ones(len(values), dtype=np.bool_)

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """Whether enough values are left when each person counts for one."""
        return len(_told_apart(by_place, persons)) >= self.l

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """The fewest values of a class."""
        values = np.diff(np.append(starts, len(n)))
        return float(values.min()), bool(values.min() >= self.l)


@dataclass(frozen=True, slots=True)
class EntropyLDiversity(ClassCriterion):
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
        rows but those of the largest passing part (`passing_rows`): what is released below it passes as a whole.
    """

    column: str
    l: int
    others: tuple[str, ...] = ()
    key: ClassVar[str] = "l_diversity"

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        return Words(
            _named("entropy l-diversity", self.others),
            self.l,
            f"l = {self.l}",
            f"{_within(self.others)}, the values of {self.column} are as uncertain as {self.l} equally likely values "
            "or more.",
            f"Whichever row of each person is meant, the values of {self.column} among the persons of a class are as "
            f"uncertain as {self.l} equally likely values or more.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements."""
        return Terms("entropy", self.l)

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """Rows of the class with its most frequent values cut to the lowest height that passes."""
        flat = Flat(classes.falling())
        none, top = np.zeros_like(flat.n), flat.falling[:, 0]
        passes = flat.surplus(top, none, self.l) >= 0
        low, high = np.ones_like(top), top.copy()
        while (open_ := high - low > 1).any():
            middle = (low + high) // 2
            good = flat.surplus(middle, none, self.l) >= 0
            low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
        high = np.maximum(high, low + 1)
        fewest, most = none.copy(), np.maximum((flat.falling >= high[:, None]).sum(axis=1), 1)
        while (open_ := most - fewest > 1).any():
            middle = (fewest + most) // 2
            good = flat.surplus(high, middle, self.l) >= 0
            most, fewest = np.where(open_ & good, middle, most), np.where(open_ & ~good, middle, fewest)
        enough = (flat.falling > 0).sum(axis=1) >= self.l
        return np.where(passes, flat.n, np.where(enough, flat.left(high) - most, 0))

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same, by heights that are bisected with `minimum`."""
        enough = (counts > 0).sum(axis=1) >= self.l
        height = bisected(lambda h: _even(counts, h, np.zeros_like(h), self.l), counts.max(axis=1))
        next_, above = height + 1, (counts > height[:, None]).sum(axis=1)
        kept = bisected(lambda i: _even(counts, next_, above - i, self.l), np.maximum(above - 1, 0))
        whole_rows = np.minimum(counts, height[:, None]).sum(axis=1)
        more = np.where(_even(counts, next_, above - kept, self.l), kept, 0)
        return np.where(enough, whole_rows + more, 0)

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """By entropies that are not within rounding of what is asked."""
        size = classes.size
        logs = np.add.reduceat(log_times(classes.rows), classes.first) if len(size) else size
        beyond = np.log(size) - logs / size - (log(self.l) - 1e-9)
        return beyond >= 0, np.abs(beyond) > _ROUNDING

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """Whether what is left when each person counts for one value is uncertain enough."""
        told = _told_apart(by_place, persons)
        entropy = -fsum(c / persons * log(c / persons) for c in told)
        return power(entropy) >= self.l * power(-1e-9)

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """The least entropy of a class, as equally likely values."""
        size = np.add.reduceat(n, starts)
        entropy = float((np.log(size) - np.add.reduceat(n * np.log(n), starts) / size).min())
        return math.exp(entropy), entropy >= math.log(self.l) - SLACK


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity(ClassCriterion):
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
    key: ClassVar[str] = "l_diversity"

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        c = float(self.c)  # which the most frequent count over what is left stays below
        return Words(
            _named("recursive (c,l)-diversity", self.others),
            c,
            f"c = {c:g}, l = {self.l}",
            f"{_within(self.others)}, the most frequent value of {self.column} has fewer rows than {c:g} "
            f"times those left without the {self.l - 1} most frequent values.",
            f"The most frequent value of {self.column} is had by fewer persons of a class than {c:g} "
            f"times those who surely have none of the {self.l - 1} most frequent values.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements."""
        return Terms("recursive", self.l, self.c)

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """Rows of the class with its most frequent values cut to the lowest height that passes."""
        flat = Flat(classes.falling())
        num, den, fewer = self.c.numerator, self.c.denominator, self.l - 1
        fewer = min(fewer, flat.falling.shape[1])

        def good(height: Ints) -> Flags:
            above = flat.cut(height)
            rest = flat.n - flat.rows[flat.at, np.maximum(above, fewer)]
            tail = np.maximum(above - fewer, 0) * height + rest
            return np.asarray(height * den < num * tail)

        low, high = np.zeros_like(flat.n), flat.falling[:, 0] + 1
        while (open_ := high - low > 1).any():
            middle = (low + high) // 2
            fine = good(middle)
            low, high = np.where(open_ & fine, middle, low), np.where(open_ & ~fine, middle, high)
        return flat.left(low)

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same, by heights that are bisected with `minimum`."""
        height = bisected(lambda h: _tailed(self.c, self.l, counts, h), counts.max(axis=1))
        return np.asarray(np.minimum(counts, height[:, None]).sum(axis=1))

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """In whole numbers, where they fit."""
        falling = classes.falling() if len(classes.first) else np.zeros((0, 1), dtype=np.int64)
        first, rest = falling[:, 0], falling[:, self.l - 1 :].sum(axis=1)
        num, den = self.c.numerator, self.c.denominator
        sure = int(falling.sum(axis=1).max(initial=0)) * max(num, den) < 2**62
        return (first * den < num * rest) if sure else rest < 0, np.full(len(first), sure)

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """Whether it holds of what is left when each person counts for one value."""
        told = _told_apart(by_place, persons)
        return told[0] < self.c * (persons - sum(told[: self.l - 1]))

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """The greatest first count over those left; None where a class has none left."""
        values = np.diff(np.append(starts, len(n)))
        place = np.arange(len(n)) - np.repeat(starts, values)
        tail = np.add.reduceat(np.where(place >= self.l - 1, n, 0), starts)
        exact = zip(n[starts].tolist(), tail.tolist(), strict=True)
        met = all(most * self.c.denominator < self.c.numerator * rest for most, rest in exact)
        return (None if (tail == 0).any() else float((n[starts] / tail).max())), met


def diversity_of(entry: Spec, sensitive: Sequence[str]) -> ClassCriterion:
    """The criterion of an entry of `l_diversity`.

    Parameters
    ----------
    sensitive
        Every sensitive column of the release: joint criteria look at each beside the others.
    """
    column, l = entry["column"], entry["l"]
    others = tuple(name for name in sensitive if entry["scope"] == "joint" and name != column)
    match entry["kind"]:
        case "distinct":
            return DistinctLDiversity(column, l, others)
        case "entropy":
            return EntropyLDiversity(column, l, others)
        case "recursive":
            return RecursiveLDiversity(column, l, Fraction(repr(float(entry["c"] or 0))), others)
        case unknown:
            raise UnknownKindError(unknown, "kind of l-diversity")


def _told_apart(by_place: Mapping[int, int], persons: int) -> list[int]:
    """Falling counts that fill up to the persons: they majorise every choice of one value for each person."""
    told: list[int] = []
    for c in sorted(by_place.values(), reverse=True):
        if (left := persons - sum(told)) > 0:
            told.append(min(c, left))
    return told


def _even(counts: Ints, height: Ints, lowered: Ints, l: int) -> Flags:
    """Entropy of the counts cut to a height, `lowered` of those at it by one more row, against ln l."""
    cut = np.minimum(counts, height[:, None])
    n = cut.sum(axis=1) - lowered
    sums = (cut * np.log(np.maximum(cut, 1))).sum(axis=1)
    below = np.maximum(height - 1, 0)
    sums = sums - lowered * (height * np.log(np.maximum(height, 1)) - below * np.log(np.maximum(below, 1)))
    safe = np.maximum(n, 1)
    return np.asarray((n > 0) & (np.log(safe) - sums / safe >= np.log(l) - 1e-9))


def _tailed(c: Fraction, l: int, counts: Ints, height: Ints) -> Flags:
    cut = -np.sort(-np.minimum(counts, height[:, None]), axis=1)
    return np.asarray(cut[:, 0] * c.denominator < c.numerator * cut[:, l - 1 :].sum(axis=1))


def _named(name: str, others: tuple[str, ...]) -> str:
    return f"joint {name}" if others else name


def _within(others: tuple[str, ...]) -> str:
    """Where a criterion holds, at the start of a sentence."""
    return f"Among the rows of a class with the same {_listed(others)}" if others else "Within a class"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
