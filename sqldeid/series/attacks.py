"""Attack a release of series: who is singled out by what an attacker knows of the originals.

Each attacker ranks all releases of a duration class by a distance from what is known of one person, and names the
nearest. **sole**: the person's own release is the unique nearest. **link**: the chance to name the right one, 1/size
of the group of nearest if the own release is among them. **advantage**: the same chance among the members of the
person's own feature class, less 1/size: what is left when the class is known. Row i of the originals and of the
releases is the same person.

Source
------
The feature attacker: Mazzone 2020, §3.2, without its assumption that original and released features are equal; the
others: soundness of releases that keep a series' shape (ours).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints

CELLS = 1 << 20
"""Distances made at once: persons attacked times releases; bounds the memory, changes no figure."""
TIE = 1e-6
"""Distances that differ by no more than this (in their own unit) are one: what floats leave of equal features."""

Distances: TypeAlias = Callable[[Ints], Floats]
"""Gives for rows of the originals their distances to all releases, (rows, persons); infinite: nothing to compare."""


Match: TypeAlias = Literal["nearest", "affine"]
MATCHES: tuple[Match, ...] = ("nearest", "affine")
"""How an attacker compares points that he knows (`point_attack`)."""


@dataclass(frozen=True, slots=True)
class Attack:
    """How an attack fared.

    Attributes
    ----------
    persons, sole
        Counts.
    link
        Sum over persons of the chance to name the right release.
    in_class, in_class_expected
        The same sum when only the person's own feature class is searched, and the sum of 1/size; both 0 without
        classes.
    """

    persons: int
    sole: int
    link: float
    in_class: float = 0.0
    in_class_expected: float = 0.0

    @property
    def sole_share(self) -> float:
        """Share of persons, 0…1."""
        return self.sole / self.persons if self.persons else 0.0

    @property
    def link_share(self) -> float:
        """Mean chance, 0…1."""
        return self.link / self.persons if self.persons else 0.0

    @property
    def advantage(self) -> float:
        """Mean chance within the own class above 1/size, −1…1; 0 is what a class promises."""
        return (self.in_class - self.in_class_expected) / self.persons if self.persons else 0.0


def combine(attacks: Iterable[Attack]) -> Attack:
    """Sum over duration classes."""
    total = Attack(0, 0, 0.0)
    for one in attacks:
        total = Attack(
            total.persons + one.persons,
            total.sole + one.sole,
            total.link + one.link,
            total.in_class + one.in_class,
            total.in_class_expected + one.in_class_expected,
        )
    return total


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom of a duration class an attacker looks for, and among whom.

    Parameters
    ----------
    feature_class
        (persons,) of all, for the search within the own class.
    rows
        Whom to attack; all by default.
    among
        (persons,) what the attacker knows of everybody beside: only releases with the person's own are searched.
    """

    feature_class: Ints | None = None
    rows: Ints | None = None
    among: Ints | None = None

    def of(self, able: Ints) -> Ints:
        """Whom to attack of those who can be attacked."""
        return able if self.rows is None else np.intersect1d(able, self.rows)


EVERYBODY = Scope()


def single_out(
    distances: Distances, rows: Ints, scope: Scope = EVERYBODY, *, tie: float = TIE, persons: int | None = None
) -> Attack:
    """Attack the persons `rows` of one duration class.

    A person for whom nothing can be compared with the own release is not singled out, and counts.

    Parameters
    ----------
    distances
        From a person's original to all releases.
    rows
        Whom to attack: all persons of the class, or a sample; the rest of `scope` says among whom.
    persons
        How many releases there are, where it is not the number of `rows`.
    """
    feature_class, among = scope.feature_class, scope.among
    sole, link, inside, expected = 0, 0.0, 0.0, 0.0
    size = max(1, CELLS // max(1, persons or len(rows)))
    for start in range(0, len(rows), size):
        own = rows[start : start + size]
        distance = distances(own)
        if among is not None:
            distance = np.where(among[own][:, None] == among[None, :], distance, np.inf)
        chance = _chance(distance, own, tie)
        sole += int((chance == 1.0).sum())
        link += float(chance.sum())
        if feature_class is not None:
            same = feature_class[own][:, None] == feature_class[None, :]
            inside += float(_chance(np.where(same, distance, np.inf), own, tie).sum())
            expected += float((1.0 / same.sum(axis=1)).sum())
    return Attack(len(rows), sole, link, inside, expected)


def _chance(distance: Floats, own: Ints, tie: float) -> Floats:
    """By row: 1/size of the group of nearest if column `own` is in it, else 0."""
    least = distance.min(axis=1)
    nearest = distance <= (least + tie)[:, None]
    mine = nearest[np.arange(len(own)), own] & np.isfinite(least)
    return np.where(mine, 1.0 / nearest.sum(axis=1), 0.0)


def feature_attack(
    original: Floats,
    released: Floats,
    scope: Scope = EVERYBODY,
    *,
    scale: Floats | None = None,
) -> Attack:
    """Nearest release by features: root mean square difference over features that neither side lacks.

    Parameters
    ----------
    original, released
        (persons, features) of one duration class; NaN where the variable is absent.
    scale
        (features,) what each is divided by; `standard_scale` of the originals for the standardised attacker (raw
        features flatter a release, because variances dominate).
    """
    divisor = np.ones(original.shape[1]) if scale is None else scale
    known, found = original / divisor, released / divisor
    rows = scope.of(np.arange(len(original)))
    return single_out(lambda own: root_mean_square(known[own], found), rows, scope, persons=len(released))


def standard_scale(features: Floats) -> Floats:
    """(features,) standard deviation of each over the persons who have it; 1 where it is 0 or nobody does."""
    there = ~np.isnan(features)
    n = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, features, 0.0).sum(axis=0) / n
    sd = np.sqrt((np.where(there, features - mean, 0.0) ** 2).sum(axis=0) / n)
    return np.where(sd > 0, sd, 1.0)


def root_mean_square(known: Floats, released: Floats) -> Floats:
    """(rows of known, rows of released); by direct differences, since a matrix product cancels and breaks ties."""
    total = np.zeros((len(known), len(released)))
    count = np.zeros((len(known), len(released)), dtype=np.int32)
    for column in range(known.shape[1]):
        difference = known[:, column, None] - released[None, :, column]
        there = ~np.isnan(difference)
        np.add(total, difference * difference, out=total, where=there)
        count += there
    return np.where(count > 0, np.sqrt(total / np.maximum(count, 1)), np.inf)


def point_attack(
    original: Floats,
    released: Floats,
    known: int,
    match: Match,
    draw: np.random.Generator,
    scope: Scope = EVERYBODY,
) -> Attack:
    """Knows `known` random (position, value) points of one variable of a person, and the stay's length.

    Parameters
    ----------
    original, released
        (persons, length) of one variable in one duration class, NaN where there is no record. Persons with fewer
        records than `known` are left out.
    match
        `nearest`: least root mean square difference. `affine`: greatest correlation, blind to shift and stretch.
    draw
        Chooses the points.
    """
    there = ~np.isnan(original)
    able = np.flatnonzero(there.sum(axis=1) >= known)
    order = np.where(there, draw.random(original.shape), 2.0)
    points = np.sort(np.argsort(order, axis=1)[:, :known], axis=1)
    columns = np.ascontiguousarray(released.T)

    def distances(own: Ints) -> Floats:
        x = np.take_along_axis(original[own], points[own], axis=1)[:, :, None]
        y = columns[points[own]]  # (own, known, persons)
        return _difference(x, y) if match == "nearest" else _uncorrelated(x, y)

    return single_out(distances, scope.of(able), scope, persons=known * len(released))


def _difference(x: Floats, y: Floats) -> Floats:
    """Root mean square of x − y along axis 1; infinite if no point is common."""
    difference = y - x
    there = ~np.isnan(difference)
    n = there.sum(axis=1)
    total = np.where(there, difference * difference, 0.0).sum(axis=1)
    return np.where(n > 0, np.sqrt(total / np.maximum(n, 1)), np.inf)


def _uncorrelated(x: Floats, y: Floats) -> Floats:
    """1 − correlation along axis 1; infinite for fewer than three common points or without spread."""
    there = ~np.isnan(y)
    n = np.maximum(there.sum(axis=1, keepdims=True), 1)
    y = np.where(there, y, 0.0)
    y = np.where(there, y - y.sum(axis=1, keepdims=True) / n, 0.0)
    x = np.where(there, x, 0.0)
    x = np.where(there, x - x.sum(axis=1, keepdims=True) / n, 0.0)
    size = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    able = (n[:, 0] >= 3) & (size > 1e-9)
    return np.where(able, 1 - (x * y).sum(axis=1) / np.where(able, size, 1.0), np.inf)


def null_pattern(values: Floats) -> Floats:
    """(persons, 2 · variables): first and last position of each variable; absent: −length, far from any position.

    Parameters
    ----------
    values
        (persons, variables, length), NaN where there is no record.
    """
    there = ~np.isnan(values)
    length = values.shape[2]
    first = np.argmax(there, axis=2)
    last = length - 1 - np.argmax(there[:, :, ::-1], axis=2)
    absent = ~there.any(axis=2)
    return np.where(np.tile(absent, 2), -float(length), np.concatenate([first, last], axis=1))


def extreme_times(values: Floats) -> Floats:
    """(persons, 2 · variables): positions of the first minimum and first maximum of each variable; absent: NaN."""
    absent = np.isnan(values).all(axis=2)
    low = np.argmin(np.where(np.isnan(values), np.inf, values), axis=2)
    high = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=2)
    return np.where(np.tile(absent, 2), np.nan, np.concatenate([low, high], axis=1))


def bends(values: Floats, tolerance: float = 1e-3) -> Flags:
    """(persons, variables · length): where a series' slope changes, or it begins or ends.

    Between two measurements a linear interpolation is straight: what bends was measured. Slopes are compared in units
    of the series' own standard deviation.
    """
    spread = _deviation(values)[:, :, None]
    change = np.abs(np.diff(values, n=2, axis=2)) / np.where(spread > 0, spread, 1.0)
    bend = ~np.isnan(values)
    bend[:, :, 1:-1] &= ~(change <= tolerance)
    return bend.reshape(len(values), -1)


def _deviation(values: Floats) -> Floats:
    there = ~np.isnan(values)
    n = np.maximum(there.sum(axis=-1), 1)
    mean = np.where(there, values, 0.0).sum(axis=-1) / n
    return np.asarray(np.sqrt((np.where(there, values - mean[..., None], 0.0) ** 2).sum(axis=-1) / n))


def pattern_attack(
    original: Floats | Flags,
    released: Floats | Flags,
    scope: Scope = EVERYBODY,
    *,
    count: Literal["distance", "mismatches"] = "mismatches",
) -> Attack:
    """Nearest release by a pattern (`null_pattern`, `extreme_times`, `bends`): sum or number of differences."""

    def by_numbers(own: Ints) -> Floats:
        total = np.zeros((len(own), len(released)))
        for column in range(original.shape[1]):
            difference = np.abs(original[own, column, None] - released[None, :, column])
            there = ~np.isnan(difference)
            np.add(total, difference if count == "distance" else difference > 0, out=total, where=there)
        return total

    def by_marks(own: Ints) -> Floats:
        return x[own] @ (1 - y) + (1 - x[own]) @ y

    marks = original.dtype == np.bool_
    if marks:
        x, y = original.astype(np.float32), released.astype(np.float32).T
    distances = by_marks if marks else by_numbers
    return single_out(distances, scope.of(np.arange(len(original))), scope, tie=1e-3, persons=len(released))


def rank_attack(
    original: Floats,
    released: Floats,
    scope: Scope = EVERYBODY,
) -> Attack:
    """Knows the order of all values of a variable: greatest rank correlation over the common positions.

    Parameters
    ----------
    original, released
        (persons, length) of one variable in one duration class; persons without three records are left out.
    """
    able = np.flatnonzero((~np.isnan(original)).sum(axis=1) >= 3)
    x, y = _ranks(original), _ranks(released)
    return single_out(lambda own: 1 - correlation(x[own], y), scope.of(able), scope, persons=len(released))


def whole_attack(
    original: Floats,
    released: Floats,
    scope: Scope = EVERYBODY,
) -> Attack:
    """Knows everything: all values of all variables; greatest mean correlation over the variables.

    Parameters
    ----------
    original, released
        (persons, variables, length) of one duration class.
    """

    def distances(own: Ints) -> Floats:
        total, count = np.zeros((len(own), len(released))), np.zeros((len(own), len(released)))
        for v in range(original.shape[1]):
            found = correlation(original[own, v], released[:, v])
            there = np.isfinite(found)
            np.add(total, found, out=total, where=there)
            count += there
        return np.where(count > 0, 1 - total / np.maximum(count, 1), np.inf)

    return single_out(distances, scope.of(np.arange(len(original))), scope, persons=len(released))


def correlation(x: Floats, y: Floats) -> Floats:
    """(rows of x, rows of y): correlation over common positions; −∞ for fewer than three, or where one is constant."""
    a, b = (~np.isnan(x)).astype(np.float64), (~np.isnan(y)).astype(np.float64)
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    n = np.maximum(a @ b.T, 1.0)
    sum_x, sum_y = x @ b.T, a @ y.T
    square_x, square_y = (x * x) @ b.T - sum_x**2 / n, a @ (y * y).T - sum_y**2 / n
    able = (n >= 3) & (square_x > 1e-6) & (square_y > 1e-6)
    size = np.sqrt(np.where(able, square_x * square_y, 1.0))
    return np.where(able, (x @ y.T - sum_x * sum_y / n) / size, -np.inf)


def _ranks(values: Floats) -> Floats:
    """Mean ranks (ties share theirs) by row, NaN where there is no record."""
    from scipy.stats import rankdata  # heavy to import

    return np.asarray(rankdata(values, axis=1, nan_policy="omit"), dtype=np.float64)
