"""What the choice of a node tells equals the enumeration of all source tables that agree with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import exp, log

import numpy as np
import pytest

from sqldeid.tables.attacks.minimal import (
    MOST_DRAWN_ROWS,
    TRIED,
    Finer,
    Reading,
    Sharpened,
    believe,
    believe_within,
    draws_for,
    number_columns,
    predecessors,
    sharpened,
)
from sqldeid.tables.criteria import ClassCriterion
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.criteria.t_closeness import TCloseness

Way = tuple[int, ...]
Holds = Callable[[list[int], list[int]], bool]
"""Whether a criterion holds of a class's values, beside those of the whole table."""

TWO = DistinctLDiversity("s", 2)


def reading_of(
    groups: list[tuple[int, ...]],
    labels: list[list[int]],
    node: tuple[int, ...],
    values: list[int],
    *,
    k: int,
    criterion: ClassCriterion,
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
    return Reading(group, owner, rows, ((0, criterion, whole),), k, allowed, chosen, tuple(finer))


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


def distinct(l: int) -> Holds:
    """At least l values."""
    return lambda values, whole: len(set(values)) >= l


def entropy(l: int) -> Holds:
    """An entropy of at least that of l equally likely values."""
    return lambda values, whole: exp(-sum(p * log(p) for p in shares(values).values())) >= l - 1e-9


def recursive(c: Fraction, l: int) -> Holds:
    """The most frequent value is had by fewer than c times the rows without the l - 1 most frequent ones."""

    def holds(values: list[int], whole: list[int]) -> bool:
        counts = sorted(Counter(values).values(), reverse=True)
        return counts[0] < c * sum(counts[l - 1 :])

    return holds


def close(t: Fraction, distance: str) -> Holds:
    """The earth mover's distance to the whole table, between values that are equally far, or ranked."""

    def holds(values: list[int], whole: list[int]) -> bool:
        p, q = shares(values), shares(whole)
        gaps = [p.get(v, Fraction(0)) - q[v] for v in sorted(q)]
        if distance == "equal":
            return sum(map(abs, gaps)) / 2 <= t
        return sum(abs(sum(gaps[: i + 1], Fraction(0))) for i in range(len(gaps))) / max(len(gaps) - 1, 1) <= t

    return holds


def shares(values: list[int]) -> dict[int, Fraction]:
    return {v: Fraction(n, len(values)) for v, n in Counter(values).items()}


def agrees(reading: Reading, way: Way, holds: Holds) -> bool:
    """Whether no predecessor was preferred, class by class."""
    for f in reading.finer:
        members: dict[int, list[int]] = {}
        for person, group in enumerate(reading.group.tolist()):
            members.setdefault(int(f.owner[group]), []).append(person)
        suppressed = lost = 0
        for persons in members.values():
            if len(persons) < reading.k or not holds([way[p] for p in persons], reading.values[0].tolist()):
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
    reading = reading_of(groups, labels, node, values, k=2, criterion=TWO, allowed=allowed)
    assert told(reading, distinct(2))[0]


OTHERS: list[tuple[ClassCriterion, Holds]] = [
    (EntropyLDiversity("s", 2), entropy(2)),
    (EntropyLDiversity("s", 3), entropy(3)),
    (RecursiveLDiversity("s", 2, Fraction(2)), recursive(Fraction(2), 2)),
    (RecursiveLDiversity("s", 3, Fraction(3)), recursive(Fraction(3), 3)),
    (TCloseness("s", Fraction(1, 4), "equal"), close(Fraction(1, 4), "equal")),
    (TCloseness("s", Fraction(1, 4), "ordered"), close(Fraction(1, 4), "ordered")),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("criterion", "holds"), OTHERS)
def test_belief_by_other_criteria_equals_the_enumeration(criterion: ClassCriterion, holds: Holds) -> None:
    """Random tables of seven persons; one of them at least must tell something, or the test says nothing."""
    rng, telling = np.random.default_rng(7), 0
    for _ in range(5):
        groups = [tuple(int(x) for x in rng.integers(0, 2, 2)) for _ in range(7)]
        values = sorted(rng.integers(0, 3, 7).tolist())
        values = [sorted(set(values)).index(v) for v in values]
        rng.shuffle(values)
        reading = reading_of(groups, [[0, 0], [0, 0]], (1, 1), values, k=2, criterion=criterion, allowed=1)
        kept, every = told(reading, holds)
        telling += 0 < kept < every
    assert telling


def told(reading: Reading, holds: Holds) -> tuple[int, int]:
    """Compare what is drawn with all ways; how many ways are kept, and how many there are."""
    every = sorted(set(ways(reading)))
    kept = [way for way in every if agrees(reading, way, holds)]
    for way in every:
        assert reading.refuses(np.array([way])) == (way in set(kept))
    belief = believe(reading, 2000, 1)
    assert abs(belief.kept / belief.drawn - len(kept) / len(every)) < 0.05
    if not kept:
        assert not belief.kept
        return 0, len(every)
    counted = Counter((int(g), v) for way in kept for g, v in zip(reading.group, way, strict=True))
    there = reading.moved()
    for group in {int(g) for g in reading.group[there]}:
        for value in range(int(reading.values.max()) + 1):
            drawn = belief.rows[0][group, value] / max(belief.kept, 1)
            assert abs(drawn - counted[group, value] / len(kept)) < 0.03 + 3 / belief.kept**0.5
    return len(kept), len(every)


def test_a_homogeneous_half_is_found() -> None:
    """Two and two: the finer node failed, so the halves are alike, but nobody knows which half has which value."""
    reading = reading_of([(0,), (0,), (1,), (1,)], [[0, 0]], (1,), [0, 0, 1, 1], k=2, criterion=TWO, allowed=0)
    kept = [way for way in ways(reading) if agrees(reading, way, distinct(2))]
    assert {tuple(sorted(way[:2])) for way in kept} == {(0, 0), (1, 1)}
    found = sharpened(reading, believe(reading, 2000, 1), 0, 0.5)
    assert found == Sharpened(alone=0, least=0, most=4, told=0, rows=4)


def test_a_belief_beyond_one_half_is_found() -> None:
    """Wong's case: the finer class of two must be alike, and there is only one value that two persons have."""
    groups = [(0,), (0,), (1,), (1,), (1,), (1,)]
    reading = reading_of(groups, [[0, 0]], (1,), [0, 0, 1, 2, 3, 4], k=2, criterion=TWO, allowed=0)
    found = sharpened(reading, believe(reading, 4000, 1), 0, 0.5)
    assert (found.alone, found.least, found.rows) == (0, 2, 6)
    assert found.told == 6


def test_what_sizes_alone_refuse_tells_nothing() -> None:
    reading = reading_of([(0,), (1,), (2,), (3,)], [[0, 0, 0, 0]], (1,), [0, 0, 1, 1], k=2, criterion=TWO, allowed=0)
    assert not reading.telling() and not reading.moved().any()
    assert sharpened(reading, believe(reading, 200, 1), 0, 0.4) == Sharpened(4, 4, 4, 0, 4)


def test_of_ways_that_never_agree_nothing_is_told() -> None:
    """Also where all rows of a class show one value, of which a single draw that agreed would seem to say something."""
    always = TCloseness("s", Fraction(1), "equal")
    reading = reading_of([(0,), (0,), (1,), (1,)], [[0, 0]], (1,), [0, 0, 0, 0], k=2, criterion=always, allowed=0)
    belief = believe_within(reading, 1)
    assert (belief.kept, belief.drawn) == (0, TRIED)
    assert sharpened(reading, belief, 0, 0.5) == Sharpened(alone=4, least=0, most=4, told=0, rows=4)


def test_what_is_told_is_drawn_apart_from_what_was_tried() -> None:
    """Else the ways told of would be chosen by what they show."""
    reading = reading_of([(0,), (0,), (1,), (1,)], [[0, 0]], (1,), [0, 0, 1, 1], k=2, criterion=TWO, allowed=0)
    assert believe(reading, TRIED, 1).kept
    found, apart = believe_within(reading, 1), believe(reading, draws_for(4), 2)
    assert (found.kept, found.drawn) == (apart.kept, apart.drawn) == (apart.kept, 2000)
    assert (found.rows[0] == apart.rows[0]).all()


@pytest.mark.parametrize("rows", [0, 1, 3_000, 40_000, 200_000, 963_000])
def test_draws_keep_to_their_rows(rows: int) -> None:
    draws = draws_for(rows)
    assert 20 <= draws <= 2000
    assert draws == 20 or draws * rows <= MOST_DRAWN_ROWS


@pytest.mark.parametrize("most", [5, 4000])
def test_tuples_are_numbered_in_their_order(most: int) -> None:
    rng = np.random.default_rng(1)
    shown = [rng.integers(0, most, 200) for _ in range(4)]
    tuples = list(zip(*(s.tolist() for s in shown), strict=True))
    order = sorted(set(tuples))
    assert number_columns(shown).tolist() == [order.index(t) for t in tuples]
