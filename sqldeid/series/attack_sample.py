"""Run the attacks on a release of series block by block while originals are at hand, in bounded memory.

All releases of a length are candidates; some of its persons, drawn at random, are attacked. If more than
`CELLS` values would have to be kept, the persons beyond are neither candidates nor attacked: the attacker then searches
fewer and finds more, so the figures err against the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.series.attack_report import POINTS, AttackReport
from sqldeid.series.attacks import MATCHES, Attack, Match, Scope, combine, point_attack
from sqldeid.series.blocks import Block
from sqldeid.series.features import Classes, Measured
from sqldeid.series.utility import Outcomes

Kept = tuple[Floats, Floats, Ints, Ints, Ints]
"""Originals, releases, feature classes, persons, classes of a linked table; of persons in the same order."""
Stacked = tuple[Floats, Floats, Ints, Ints]
ATTACKED, ATTACKED_BEFORE, LEAST = 3000, 1000, 20
"""Persons attacked in all, those on the originals alone, and the least of a length that are attacked."""
CELLS = 4_000_000


@dataclass(slots=True)
class AttackSample:
    """Originals and releases, by length.

    Parameters
    ----------
    variables
        How many there are.
    """

    variables: int
    cells: int = 0
    left_out: int = 0
    linked: bool = False
    kept: dict[int, list[Kept]] = field(default_factory=dict)

    def add(self, block: Block, measured: Measured, classes: Classes, table_class: Ints | None = None) -> None:
        """Keep the released persons of a block, as long as there is room.

        Parameters
        ----------
        table_class
            (persons,) the class of the table that the release is linked to, for attackers who know the row.
        """
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
        row = np.zeros(len(persons), dtype=np.int64) if table_class is None else table_class[persons]
        self.linked |= table_class is not None
        self.kept.setdefault(block.length, []).append(
            (original, released, classes.of_person[persons], measured.persons[persons], row)
        )

    def outcomes(self, known: Outcomes) -> Iterator[tuple[Floats, Floats, Floats]]:
        """By length: originals, releases, and the outcome of each person."""
        for parts in self.kept.values():
            original, released, _, _ = _stack(parts)
            persons = np.concatenate([p[3] for p in parts])
            yield original, released, known.of(persons)

    def pairs(self) -> Iterator[tuple[int, Floats, Floats]]:
        """By length: it, and (persons, variables, length) of originals and releases."""
        for length, parts in sorted(self.kept.items()):
            original, released, _, _ = _stack(parts)
            yield length, original, released

    def attack(self, draw: np.random.Generator) -> dict[str, object]:
        """All attacks, summed over lengths (`sqldeid.series.attack_report`); `before`: on the originals themselves.

        Of a linked release also `given_table_row`: the same by who knows the person's row in the table release, and
        searches those with an equal one.
        """
        stacked = {length: _stack(parts) for length, parts in self.kept.items()}
        if not stacked:
            return {}
        found = _attacks(stacked, draw, linked=False)
        given = {"given_table_row": _attacks(stacked, draw, linked=True)} if self.linked else {}
        return {**found, **given, "persons_left_out": self.left_out}


def _stack(parts: Sequence[Kept]) -> Stacked:
    """All of a length, without the persons."""
    original, released = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    return original, released, np.concatenate([p[2] for p in parts]), np.concatenate([p[4] for p in parts])


def _attacks(stacked: Mapping[int, Stacked], draw: np.random.Generator, *, linked: bool) -> dict[str, object]:
    """All attacks on originals, releases, feature classes and table classes, by length."""
    records = sum((~np.isnan(original)).sum(axis=(0, 2)) for original, *_ in stacked.values())
    known = int(np.argmax(records))
    report = AttackReport(int(draw.integers(2**31)), max(ATTACKED // len(stacked), LEAST), known)
    for original, released, classes, rows in stacked.values():
        report.add(original, released, classes, rows if linked else None)
    tried = [(original[:, known], rows if linked else None) for original, _, _, rows in stacked.values()]
    before = {str(m): {match: _unchanged(tried, m, match, draw) for match in MATCHES} for m in POINTS}
    return {**report.to_dict(), "raw_points_before": before}


def _unchanged(
    originals: list[tuple[Floats, Ints | None]],
    known: int,
    match: Match,
    draw: np.random.Generator,
) -> dict[str, float]:
    """The raw-point attack where the originals are released as they are."""
    attacks: list[Attack] = []
    for values, among in originals:
        rows = np.sort(draw.permutation(len(values))[: max(ATTACKED_BEFORE // len(originals), LEAST)])
        attacks.append(point_attack(values, values, known, match, draw, Scope(rows=rows, among=among)))
    total = combine(attacks)
    return {"persons": total.persons, "sole": total.sole_share, "link": total.link_share}
