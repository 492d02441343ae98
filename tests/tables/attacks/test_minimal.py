"""What the choice of a node tells equals the enumeration of all source tables that agree with it."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from sqldeid.tables.attacks.minimal import Finer, Reading, Sharpened, believe, number_columns, predecessors, sharpened
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity

Way = tuple[int, ...]


def reading_of(
    groups: list[tuple[int, ...]],
    labels: list[list[int]],
    node: tuple[int, ...],
    values: list[int],
    *,
    k: int,
    l: int,
    allowed: int,
) -> Reading:
    """Persons by their leaves; `labels[column]` are the groups of its leaves at level 1, and level 2 is all.

    Rows lose one unit for each level of a column, and a suppressed one as many as there are levels.
    """

    def shown(leaves: tuple[int, ...], at: tuple[int, ...]) -> tuple[int, ...]:
        return tuple((x, labels[i][x], 0)[level] for i, (x, level) in enumerate(zip(leaves, at, strict=True)))

    combos = sorted(set(groups))
    order = sorted(range(len(groups)), key=lambda p: (shown(groups[p], node), groups[p]))
    group = np.array([combos.index(groups[p]) for p in order])
    classes = sorted({shown(c, node) for c in combos})
    owner = np.array([classes.index(shown(groups[p], node)) for p in order])
    finer = []
    for y in predecessors(node):
        own = [shown(c, y) for c in combos]
        there = sorted(set(own))
        number = np.array([there.index(o) for o in own])
        size = np.bincount(number[group], minlength=len(there))
        few = int(size[size < k].sum())
        unit = 2 * len(node)
        lost = sum(y) * (len(groups) - few) + unit * few
        finer.append(Finer(y, number, size, np.full(len(there), sum(y)) * size, lost, few, unit))
    rows = np.array([[values[p] for p in order]])
    whole = np.bincount(rows[0])
    chosen = (sum(node) * len(groups), 0, node)
    return Reading(group, owner, rows, ((0, DistinctLDiversity("s", l), whole),), k, allowed, chosen, tuple(finer))


def ways(reading: Reading) -> list[Way]:
    """Every way to give the rows of each class to its persons, person by person."""
    blocks = [np.flatnonzero(reading.owner == c).tolist() for c in range(int(reading.owner.max()) + 1)]
    each = [list(permutations(reading.values[0][block].tolist())) for block in blocks]
    found = []
    for chosen in product(*each):
        way = [0] * len(reading.owner)
        for block, given in zip(blocks, chosen, strict=True):
            for person, value in zip(block, given, strict=True):
                way[person] = value
        found.append(tuple(way))
    return found


def agrees(reading: Reading, way: Way, l: int) -> bool:
    """Whether no predecessor was preferred, class by class."""
    for f in reading.finer:
        members: dict[int, list[int]] = {}
        for person, group in enumerate(reading.group.tolist()):
            members.setdefault(int(f.owner[group]), []).append(person)
        suppressed = lost = 0
        for persons in members.values():
            if len(persons) < reading.k or len({way[p] for p in persons}) < l:
                suppressed += len(persons)
                lost += len(persons) * f.suppressed_row
            else:
                lost += len(persons) * sum(f.node)
        if suppressed <= reading.allowed and (lost, suppressed, f.node) < reading.chosen:
            return False
    return True


CASES = [
    # two persons of one leaf beside two of another; only their sensitive values can have refused the finer node
    ([(0,), (0,), (1,), (1,)], [[0, 0]], (1,), [0, 1, 1, 1], 0),
    ([(0,), (0,), (1,), (1,), (2,), (2,)], [[0, 0, 1]], (1,), [0, 0, 1, 1, 0, 1], 0),
    ([(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0)], [[0, 0], [0, 0]], (1, 1), [0, 1, 1, 1, 1, 2], 2),
    ([(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 1)], [[0, 0], [0, 0]], (1, 0), [0, 1, 1, 0, 1, 2], 1),
]


@pytest.mark.parametrize("case", CASES)
def test_belief_equals_the_enumeration(
    case: tuple[list[tuple[int, ...]], list[list[int]], tuple[int, ...], list[int], int],
) -> None:
    groups, labels, node, values, allowed = case
    reading = reading_of(groups, labels, node, values, k=2, l=2, allowed=allowed)
    every = ways(reading)
    kept = [way for way in every if agrees(reading, way, 2)]
    for way in every:
        assert reading.refuses(np.array([way])) == (way in kept)
    assert kept
    belief = believe(reading, 3000, 1)
    assert abs(belief.kept / belief.drawn - len(kept) / len(every)) < 0.05
    counted = Counter((int(g), v) for way in kept for g, v in zip(reading.group, way, strict=True))
    there = reading.moved()
    for group in {int(g) for g in reading.group[there]}:
        for value in range(max(values) + 1):
            drawn = belief.rows[0][group, value] / belief.kept
            assert abs(drawn - counted[group, value] / len(kept)) < 0.1


def test_a_homogeneous_half_is_found() -> None:
    """Two and two: the finer node failed, so the halves are alike, but nobody knows which half has which value."""
    reading = reading_of([(0,), (0,), (1,), (1,)], [[0, 0]], (1,), [0, 0, 1, 1], k=2, l=2, allowed=0)
    kept = [way for way in ways(reading) if agrees(reading, way, 2)]
    assert {tuple(sorted(way[:2])) for way in kept} == {(0, 0), (1, 1)}
    found = sharpened(reading, believe(reading, 2000, 1), 0, 0.5)
    assert found == Sharpened(alone=0, least=0, most=4, told=0, rows=4)


def test_a_belief_beyond_one_half_is_found() -> None:
    """Wong's case: the finer class of two must be alike, and there is only one value that two persons have."""
    groups = [(0,), (0,), (1,), (1,), (1,), (1,)]
    reading = reading_of(groups, [[0, 0]], (1,), [0, 0, 1, 2, 3, 4], k=2, l=2, allowed=0)
    found = sharpened(reading, believe(reading, 4000, 1), 0, 0.5)
    assert (found.alone, found.least, found.rows) == (0, 2, 6)
    assert found.told == 6


def test_what_sizes_alone_refuse_tells_nothing() -> None:
    reading = reading_of([(0,), (1,), (2,), (3,)], [[0, 0, 0, 0]], (1,), [0, 0, 1, 1], k=2, l=2, allowed=0)
    assert not reading.telling() and not reading.moved().any()
    assert sharpened(reading, believe(reading, 200, 1), 0, 0.4) == Sharpened(4, 4, 4, 0, 4)


def test_tuples_are_numbered_in_their_order() -> None:
    rng = np.random.default_rng(1)
    shown = [rng.integers(0, 5, 200) for _ in range(4)]
    tuples = list(zip(*(s.tolist() for s in shown), strict=True))
    order = sorted(set(tuples))
    assert number_columns(shown).tolist() == [order.index(t) for t in tuples]
