"""Attacks on a release by who knows something of the original series, while both are at hand; memory is bounded.

All releases of a length are candidates; some of its persons, drawn at random, are attacked. If more than
`CELLS` values would have to be kept, the persons beyond are neither candidates nor attacked: the attacker then searches
fewer and finds more, so the figures err against the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sqldeid.series.attack_report import POINTS, AttackReport
from sqldeid.series.attacks import Attack, combine, point_attack
from sqldeid.series.blocks import Block
from sqldeid.series.features import Classes, Measured
from sqldeid.series.utility import Outcomes

Array = NDArray[np.float64]
ATTACKED, ATTACKED_BEFORE, LEAST = 3000, 1000, 20
"""Persons attacked in all, those on the originals alone, and the least of a length that are attacked."""
CELLS = 4_000_000


@dataclass(slots=True)
class Witness:
    """Originals and releases, by length.

    Parameters
    ----------
    variables
        How many there are.
    """

    variables: int
    cells: int = 0
    left_out: int = 0
    kept: dict[int, list[tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]]] = field(default_factory=dict)

    def see(self, block: Block, measured: Measured, classes: Classes) -> None:
        """Keep the released persons of a block, as long as there is room."""
        rows = np.flatnonzero(~classes.dropped[block.rows])
        persons = np.unique(measured.person_at[block.rows[rows]])
        room = max((CELLS - self.cells) // (block.length * self.variables), 0)
        self.left_out += max(len(persons) - room, 0)
        persons = persons[:room]
        if len(persons) == 0:
            return
        mine = np.isin(measured.person_at[block.rows], persons)
        at = np.searchsorted(persons, measured.person_at[block.rows[mine]])
        variable = measured.features.variable_number[block.rows[mine]]
        original, released = (np.full((len(persons), self.variables, block.length), np.nan) for _ in range(2))
        original[at, variable], released[at, variable] = block.original[mine], block.released[mine]
        self.cells += original.size
        self.kept.setdefault(block.length, []).append(
            (original, released, classes.of_person[persons], measured.persons[persons])
        )

    def outcomes(self, known: Outcomes) -> Iterator[tuple[Array, Array, Array]]:
        """By length: originals, releases, and the outcome of each person."""
        for parts in self.kept.values():
            original, released, _, persons = (np.concatenate([p[i] for p in parts]) for i in range(4))
            yield original, released, known.of(persons)

    def attack(self, draw: np.random.Generator) -> dict[str, object]:
        """All attacks, summed over lengths (`sqldeid.series.attack_report`); `before`: on the originals themselves."""
        stacked = {
            length: tuple(np.concatenate([p[i] for p in parts]) for i in range(3))
            for length, parts in self.kept.items()
        }
        if not stacked:
            return {}
        records = sum((~np.isnan(original)).sum(axis=(0, 2)) for original, _, _ in stacked.values())
        known = int(np.argmax(records))
        found = AttackReport(int(draw.integers(2**31)), max(ATTACKED // len(stacked), LEAST), known)
        for original, released, classes in stacked.values():
            found.add(original, released, classes)
        before = {
            str(m): {
                match: _unchanged([o[:, known] for o, _, _ in stacked.values()], m, match, draw) for match in MATCHES
            }
            for m in POINTS
        }
        return {**found.to_dict(), "raw_points_before": before, "persons_left_out": self.left_out}


MATCHES: tuple[Literal["nearest", "affine"], ...] = ("nearest", "affine")


def _unchanged(
    originals: list[Array], known: int, match: Literal["nearest", "affine"], draw: np.random.Generator
) -> dict[str, float]:
    """The raw-point attack where the originals are released as they are."""
    attacks: list[Attack] = []
    for values in originals:
        rows = np.sort(draw.permutation(len(values))[: max(ATTACKED_BEFORE // len(originals), LEAST)])
        attacks.append(point_attack(values, values, known, match, draw, rows=rows))
    total = combine(attacks)
    return {"persons": total.persons, "sole": total.sole_share, "link": total.link_share}
