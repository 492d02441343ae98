"""All attackers on a release, summed over its duration classes, in the shape of the result.

Every figure comes with the number of persons attacked; those of features by duration class as well, with the worst
class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.series.attacks import (
    MATCHES,
    Attack,
    Scope,
    bends,
    combine,
    extreme_times,
    feature_attack,
    null_pattern,
    pattern_attack,
    point_attack,
    rank_attack,
    standard_scale,
    whole_attack,
)
from sqldeid.series.perturb.draws import generator

POINTS = (3, 5, 10)
"""Known (position, value) pairs of the raw-point attackers."""
SMALLEST_NAMED = 20
"""Lengths of fewer persons attacked are taken together with the next such one: of one alone a person would be 5 %."""


@dataclass(slots=True)
class AttackReport:
    """Collects attacks class by class.

    Parameters
    ----------
    seed
        Chooses known points and samples; not the release's secret.
    most_attacked
        Persons attacked in a class, drawn at random where it has more; all releases stay candidates.
    point_variable
        Index of the variable whose points and order are known.
    """

    seed: int = 0
    most_attacked: int = 2000
    point_variable: int = 0
    found: dict[str, dict[int, Attack]] = field(default_factory=dict)

    def add(self, original: Floats, released: Floats, feature_class: Ints, among: Ints | None = None) -> None:
        """Attack one duration class.

        Parameters
        ----------
        original, released
            (persons, variables, length), the same persons in the same order; NaN where there is no record.
        feature_class
            (persons,) any numbers.
        among
            (persons,) the class of a linked table, which the attacker knows of everybody: only it is searched.
        """
        length = original.shape[2]
        for name, attack in attack_class(
            original, released, feature_class, self.seed, self.most_attacked, self.point_variable, among
        ).items():
            self.found.setdefault(name, {})[length] = attack

    def to_dict(self) -> dict[str, object]:
        """As in the result: ``feature``, ``raw_points``, and the others by name; shares 0…1."""
        points = {str(m): {how: self._shares(f"{how}_{m}") for how in ("nearest", "affine")} for m in POINTS}
        others = ("null_pattern", "measurement_times", "extreme_times", "rank_order", "all_values")
        return {
            "feature": {
                scale: self._shares(f"feature_{scale}") | {"by_class": self._by_class(f"feature_{scale}")}
                for scale in ("raw", "standardised")
            },
            "raw_points": points,
            **{name: self._shares(name) for name in others},
        }

    def _shares(self, name: str) -> dict[str, float]:
        return shares_of(self.found.get(name, {}))

    def _by_class(self, name: str) -> list[Mapping[str, float]]:
        return [
            {"length": length, "persons": a.persons, "sole": a.sole, "sole_share": a.sole_share, "link": a.link_share}
            for length, a in sorted(self.found.get(name, {}).items())
        ]


def shares_of(attacks: Mapping[int, Attack]) -> dict[str, float]:
    """Sums over lengths as in the result, with the worst length; shares 0…1.

    Every length counts, so that the worst is never better than all of them together.
    """
    total = combine(attacks.values())
    groups = merged(attacks) or [total]
    return {
        "persons": total.persons,
        "sole": total.sole_share,
        "link": total.link_share,
        "worst_sole": max(a.sole_share for a in groups),
        "worst_link": max(a.link_share for a in groups),
        "advantage": total.advantage,
    }


def merged(attacks: Mapping[int, Attack]) -> list[Attack]:
    """Lengths with enough persons each by itself; the others in the order of length, until they are enough together."""
    groups = [a for a in attacks.values() if a.persons >= SMALLEST_NAMED]
    small: list[list[Attack]] = [[]]
    for _, attack in sorted(attacks.items()):
        if 0 < attack.persons < SMALLEST_NAMED:
            small[-1].append(attack)
            if sum(a.persons for a in small[-1]) >= SMALLEST_NAMED:
                small.append([])
    if len(small) > 1:  # what is left over goes to the last that were enough
        left = small.pop()
        small[-1] += left
    return groups + [combine(some) for some in small if some]


def attack_class(
    original: Floats,
    released: Floats,
    feature_class: Ints,
    seed: int,
    most_attacked: int,
    point_variable: int,
    among: Ints | None = None,
) -> dict[str, Attack]:
    """Every attacker on one duration class, by name."""
    draw = generator(seed, "attacked", original.shape[2])
    scope = Scope(feature_class, np.sort(draw.permutation(len(original))[:most_attacked]), among)
    known, found = class_features(original), class_features(released)
    attacks = {
        "feature_raw": feature_attack(known, found, scope),
        "feature_standardised": feature_attack(known, found, scope, scale=standard_scale(known)),
    }
    x, y = original[:, point_variable], released[:, point_variable]
    for m in POINTS:
        for match in MATCHES:  # both are shown the same points
            points = generator(seed, "points", original.shape[2], m)
            attacks[f"{match}_{m}"] = point_attack(x, y, m, match, points, scope)
    absent = null_pattern(original), null_pattern(released)
    attacks["null_pattern"] = pattern_attack(*absent, scope, count="distance")
    attacks["measurement_times"] = pattern_attack(bends(original), bends(released), scope)
    attacks["extreme_times"] = pattern_attack(extreme_times(original), extreme_times(released), scope)
    attacks["rank_order"] = rank_attack(x, y, scope)
    attacks["all_values"] = whole_attack(original, released, scope)
    return attacks


def class_features(values: Floats) -> Floats:
    """(persons, 4 · variables): mean, population variance, minimum, maximum; NaN where the variable is absent."""
    there = ~np.isnan(values)
    some = there.any(axis=2)
    n = np.maximum(there.sum(axis=2), 1)
    mean = np.where(there, values, 0.0).sum(axis=2) / n
    variance = np.where(there, values - mean[:, :, None], 0.0)
    variance = (variance * variance).sum(axis=2) / n
    low = np.where(there, values, np.inf).min(axis=2, initial=np.inf)
    high = np.where(there, values, -np.inf).max(axis=2, initial=-np.inf)
    stacked = np.stack([mean, variance, low, high], axis=2)
    stacked[~some] = np.nan
    return stacked.reshape(len(values), -1)
