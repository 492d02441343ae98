"""t-closeness (Li et al. 2007) with equal and ordered ground distance, and by a hierarchy of the sensitive column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.base import ClassCriterion, Spec, Terms, Words
from sqldeid.tables.criteria.histograms import Histograms, bisected

_STEPS = 60

_ROUNDING = 1e-9
"""Rows, as a share of the class, that rounding may keep."""


@dataclass(frozen=True, slots=True)
class TCloseness(ClassCriterion):
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
        the largest part that could be near enough (`passing_rows`), more than the ⌈n·(EMD − t)⌉ of soundness.md 9.
    """

    column: str
    t: Fraction
    distance: Literal["equal", "ordered"]
    key: ClassVar[str] = "t_closeness"
    against_whole: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        t = float(self.t)
        return Words(
            "t-closeness",
            t,
            f"t = {t:g}, {self.distance} distance",
            f"The distribution of {self.column} in a class is within {t:g} ({self.distance} distance) of "
            "that of the whole table.",
            f"The distribution of {self.column} among the persons of a class is within {t:g} "
            f"({self.distance} distance) of that among all persons.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements.

        Raises
        ------
        UnknownKindError
            For a distance that is not known.
        """
        if self.distance not in ("equal", "ordered"):
            raise UnknownKindError(self.distance, "distance of t-closeness")
        return Terms(self.distance, number=self.t)

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """Rows of the largest part that could be near enough, by Newton's steps."""
        counts = classes.dense(len(reference))
        n, q, t = counts.sum(axis=1), reference / reference.sum(), float(self.t)
        below, share = np.cumsum(counts, axis=1)[:, :-1], np.cumsum(q)[:-1]
        x, steps = n.astype(np.float64), max(len(reference) - 1, 1)
        for _ in range(_STEPS):
            if self.distance == "equal":
                over = counts - x[:, None] * q
                excess = np.maximum(over, 0).sum(axis=1) - n + x - t * x
                slope = 1 - t - (q * (over > 0)).sum(axis=1)
            else:
                short = x[:, None] * share - below
                far = below - n[:, None] + x[:, None] * (1 - share)
                excess = np.maximum(np.maximum(short, far), 0).sum(axis=1) - t * x * steps
                slope = (
                    np.where(short > np.maximum(far, 0), share, np.where(far > 0, 1 - share, 0)).sum(axis=1) - t * steps
                )
            step = np.where((excess > _ROUNDING * n) & (slope > 0), excess / np.where(slope > 0, slope, 1), 0)
            if not step.any():
                break
            x = np.maximum(x - step, 0)
        return np.asarray(np.minimum(np.floor(x + 2 * _ROUNDING * n).astype(np.int64), n))

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same, with the rows bisected."""
        return bisected(lambda x: _near(self, counts, whole, x), counts.sum(axis=1))

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """By distances that are not within rounding of what is asked."""
        counts = classes.dense(len(whole))
        gaps = counts / counts.sum(axis=1, keepdims=True) - whole / whole.sum()
        if self.distance == "ordered":
            far = np.abs(gaps.cumsum(axis=1)).sum(axis=1) / max(len(whole) - 1, 1)
        else:
            far = np.abs(gaps).sum(axis=1) / 2
        return far <= float(self.t), np.abs(far - float(self.t)) > _ROUNDING

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """In whole numbers: the distance times the persons of class and table, and twice it or times the steps."""
        everybody = int(whole.sum())
        gaps = [by_place.get(i, 0) * everybody - int(n) * persons for i, n in enumerate(whole.tolist())]
        if self.distance == "ordered":
            upto, moved = 0, 0
            for gap in gaps:
                upto += gap
                moved += abs(upto)
            steps = max(len(gaps) - 1, 1)
        else:
            moved, steps = sum(map(abs, gaps)), 2
        return moved <= self.t * persons * everybody * steps

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """Half the sum of differences of shares: the earth mover's distance where any two values are equally far."""
        if self.distance != "equal":
            raise UnknownKindError(self.distance, "distance of Mondrian's t-closeness")
        rows = np.bincount(code, weights=n).astype(np.int64)
        total, size = int(n.sum()), np.add.reduceat(n, starts)
        each = np.repeat(size, np.diff(np.append(starts, len(n))))
        near = np.add.reduceat(np.abs(n * total - rows[code] * each), starts)
        far = size * (total - np.add.reduceat(rows[code], starts))
        apart, whole = (near + far).tolist(), (2 * size * total).tolist()
        met = all(a * self.t.denominator <= self.t.numerator * w for a, w in zip(apart, whole, strict=True))
        return max(a / w for a, w in zip(apart, whole, strict=True)), met


@dataclass(frozen=True, slots=True)
class HierarchicalTCloseness(ClassCriterion):
    """Earth mover's distance of `column` between every released class and all input rows at most `t`, by a hierarchy.

    Two values are as far from each other as the level, over the hierarchy's height, at which they first have one label:
    1 where that is the top. NULL is a value, at distance 1 from every other unless the hierarchy has a line for it.

    Parameters
    ----------
    groups
        For each level below the top, from the original values on, the group of each value by place; NULL is the last.

    Guarantee
        What an attacker learns about a member's value from being in the class is bounded: the class is within `t` of
        the whole table, where shifts among similar values count for less than those among distant ones.
    Assumes
        The distribution of the whole input is public knowledge; the value itself is not known to the attacker. The
        hierarchy says what is similar: values that it puts under one label near the bottom may be told apart.
    Does not protect
        Against what the whole table tells about everyone, nor against an attacker who knows how suppression works.
        With t of 1/height and more a class may hold one of several siblings alone. Nor against what the node tells
        unless it is chosen by k alone (`sqldeid.tables.plan.choosing`). The distance is against all input rows, not
        against the released ones; results give both.
    Source
        Li, Li and Venkatasubramanian 2007, §4.2 (hierarchical distance). That distance is the number of levels below
        the top at which two values differ, over the height, so it is a sum of equal distances, one for each level; a
        tree leaves no choice of how to move, so the earth mover's distance is the mean over these levels of the equal
        distance among their groups. Compared in integers. Each is convex, hence their mean: without suppression
        inherited by generalisations, with a limit not. Core: of x rows of a class at most min(c, x q) of each group
        fit the whole table's share q, so x less their sum is missing at a level; over all levels it is at most t x
        height. What is missing is convex in x and 0 at 0, so Newton's steps never pass the greatest root.
    """

    column: str
    t: Fraction
    groups: tuple[tuple[int, ...], ...]
    key: ClassVar[str] = "t_closeness"
    against_whole: ClassVar[bool] = True

    @property
    def height(self) -> int:
        """Levels below the top, the original among them."""
        return len(self.groups)

    @property
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""
        t = float(self.t)
        return Words(
            "t-closeness",
            t,
            f"t = {t:g}, hierarchical distance",
            f"The distribution of {self.column} in a class is within {t:g} (hierarchical distance) of that of the "
            "whole table.",
            f"The distribution of {self.column} among the persons of a class is within {t:g} (hierarchical distance) "
            "of that among all persons.",
        )

    @property
    def terms(self) -> Terms:
        """What it asks, for statements."""
        return Terms("hierarchical", number=self.t, groups=self.groups)

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """Rows of the largest part that could be near enough, by Newton's steps."""
        sums = _Sums.of(self.groups, reference)
        counts, q, t = sums.added(classes.dense(len(reference))), sums.shares, float(self.t)
        n = classes.size
        x, levels = n.astype(np.float64), self.height
        for _ in range(_STEPS):
            over = counts - x[:, None] * q
            excess = np.maximum(over, 0).sum(axis=1) - levels * (n - x) - t * x * levels
            slope = levels * (1 - t) - (q * (over > 0)).sum(axis=1)
            step = np.where((excess > _ROUNDING * n) & (slope > 0), excess / np.where(slope > 0, slope, 1), 0)
            if not step.any():
                break
            x = np.maximum(x - step, 0)
        return np.asarray(np.minimum(np.floor(x + 2 * _ROUNDING * n).astype(np.int64), n))

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same for a certificate: rows bisected by what of them fits the shares of the groups."""
        sums = _Sums.of(self.groups, whole)
        n, own = counts.sum(axis=1), sums.added(counts)

        def near(rows: Ints) -> Flags:
            fit = np.minimum(own, rows[:, None] * sums.shares).sum(axis=1)
            return np.asarray(self.height * rows - fit <= float(self.t) * rows * self.height + _ROUNDING * n)

        return bisected(near, n)

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """By distances that are not within rounding of what is asked."""
        sums = _Sums.of(self.groups, whole)
        own = sums.added(classes.dense(len(whole)))
        far = np.abs(own / classes.size[:, None] - sums.shares).sum(axis=1) / (2 * self.height)
        return far <= float(self.t), np.abs(far - float(self.t)) > _ROUNDING

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """In whole numbers: the distance times the persons of class and table, twice, and the height."""
        everybody, moved = int(whole.sum()), 0
        for groups in self.groups:
            gaps: dict[int, int] = {}
            for place, n in enumerate(whole.tolist()):
                gap = by_place.get(place, 0) * everybody - n * persons
                gaps[groups[place]] = gaps.get(groups[place], 0) + gap
            moved += sum(map(abs, gaps.values()))
        return moved <= self.t * persons * everybody * 2 * self.height

    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """Not for Mondrian, which numbers the values as it meets them."""
        raise UnknownKindError("hierarchical", "distance of Mondrian's t-closeness")


def closeness_of(entry: Spec, sensitive: Sequence[str]) -> ClassCriterion:
    """The criterion of an entry of `t_closeness`."""
    t = Fraction(repr(float(entry["t"])))
    if entry["distance"] == "hierarchical":
        return HierarchicalTCloseness(entry["column"], t, entry["groups"])
    return TCloseness(entry["column"], t, entry["distance"])


def _near(criterion: TCloseness, counts: Ints, whole: Ints, rows: Ints) -> Flags:
    """Whether `rows` rows of the class may be as near to the whole table as asked, by what they must exceed it."""
    n, share, x = counts.sum(axis=1), whole / whole.sum(), rows[:, None]
    if criterion.distance == "equal":
        least = np.maximum(counts - x * share, 0).sum(axis=1) - (n - rows)
        most = float(criterion.t) * rows
    else:
        below = np.cumsum(counts, axis=1)
        fewest, most_below = np.maximum(below - (n - rows)[:, None], 0), np.minimum(below, x)
        wanted = x * np.cumsum(share)
        least = np.maximum(np.maximum(fewest - wanted, wanted - most_below), 0).sum(axis=1)
        most = float(criterion.t) * rows * max(len(whole) - 1, 1)
    return np.asarray(least <= most + 1e-9 * n)


def levels_of(groups: tuple[tuple[int, ...], ...], whole: Ints) -> dict[str, Ints]:
    """A hierarchy's groups as a table for statements: level from 0, place, its group, and the whole table's rows in it.

    Of places that some row has; one row for each level below the top and place.
    """
    there = np.flatnonzero(whole)
    levels = [np.array(level, dtype=np.int64)[: len(whole)] for level in groups]
    rows = [np.bincount(level, weights=whole, minlength=int(level.max(initial=0)) + 1)[level] for level in levels]
    return {
        "level": np.repeat(np.arange(len(levels), dtype=np.int64), len(there)),
        "place": np.tile(there, len(levels)),
        "grp": np.concatenate([level[there] for level in levels]),
        "n": np.concatenate([n[there] for n in rows]).astype(np.int64),
    }


@dataclass(frozen=True, slots=True)
class _Sums:
    """How counts by place become counts by group, all levels below the top one after the other.

    Parameters
    ----------
    order
        The places that some row has, so that the groups of every level follow each other.
    starts
        Of each level, where its groups begin there.
    shares
        Of the whole table, by group.
    """

    order: Ints
    starts: tuple[Ints, ...]
    shares: Floats

    @classmethod
    def of(cls, groups: tuple[tuple[int, ...], ...], whole: Ints) -> _Sums:
        """Of a hierarchy's groups and the whole table's rows by place."""
        there = np.flatnonzero(whole)
        levels = [np.array(level, dtype=np.int64)[there] for level in groups]
        by_group = np.lexsort(levels)
        starts = tuple(np.flatnonzero(np.diff(level[by_group], prepend=-1)) for level in levels)
        order = there[by_group]
        sums = cls(order, starts, np.zeros(0))
        return cls(order, starts, sums.added(whole[None, :])[0] / max(int(whole.sum()), 1))

    def added(self, counts: Ints) -> Ints:
        """Counts by group; shape (classes, groups of all levels)."""
        ordered = counts[:, self.order]
        return np.concatenate([np.add.reduceat(ordered, first, axis=1) for first in self.starts], axis=1)
