"""The search over sets of columns finds what trying every set finds, with fewer; no database."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest

from sqldeid.findings import Uniqueness
from sqldeid.insight.explore_sets import Columns, Tried, borders, count_sets, every_set


def table(seed: int, columns: int, rows: int = 40) -> list[tuple[int, ...]]:
    """Rows whose columns tell more and more apart."""
    draw = random.Random(seed)
    widths = [draw.choice([1, 2, 2, 3, 4, 12]) for _ in range(columns)]
    return [tuple(draw.randrange(w) for w in widths) for _ in range(rows)]


def alone(rows: list[tuple[int, ...]], columns: Columns) -> int:
    sizes = Counter(tuple(row[c] for c in columns) for row in rows)
    return sum(n for n in sizes.values() if n == 1)


class Asked:
    """Measures sets by counting, and remembers what it was asked."""

    def __init__(self, rows: list[tuple[int, ...]]) -> None:
        self.rows, self.sets, self.calls = rows, [], 0

    def __call__(self, sets: list[Columns]) -> list[Uniqueness]:
        self.calls += 1
        assert all(list(s) == sorted(set(s)) and s for s in sets)
        assert not set(sets) & set(self.sets), "a set is measured once"
        self.sets += sets
        n = len(self.rows)
        return [Uniqueness((), n, n, 1, 1.0, {}, {2: alone(self.rows, s)}) for s in sets]


def brute_force(rows: list[tuple[int, ...]], most: int, needed: int) -> tuple[set[Columns], set[Columns]]:
    """Every minimal set that reaches, every maximal one that does not."""
    columns = range(len(rows[0]))
    sets = [s for size in range(1, most + 1) for s in combinations(columns, size)]
    reaching = [s for s in sets if alone(rows, s) >= needed]
    failing = [s for s in sets if alone(rows, s) < needed]
    return (
        {s for s in reaching if not any(set(r) < set(s) for r in reaching)},
        {s for s in failing if not any(set(s) < set(f) for f in failing)},
    )


@pytest.mark.parametrize("seed", range(40))
def test_both_searches_equal_trying_every_set(seed):
    columns = 2 + seed % 6
    rows = table(seed, columns)
    for needed in (1, 10, 20, 39, 40):
        for most in (1, 2, 3, columns):
            most = min(most, columns)
            smallest, largest = brute_force(rows, most, needed)
            reaches = lambda u: u.persons_below[2] >= needed  # noqa: B023, E731
            listed, sought = Tried(Asked(rows)), Tried(Asked(rows))
            assert set(every_set(columns, most, listed, reaches)) == smallest
            order = sorted(range(columns), key=lambda c: alone(rows, (c,)))
            found = borders(order, most, sought, reaches)
            assert (set(found[0]), set(found[1])) == (smallest, largest if most == columns else set())
            untried = {s for n in range(1, most + 1) for s in combinations(range(columns), n)} - set(listed.found)
            assert all(any(set(m) < set(s) for m in smallest) for s in untried), "only supersets are left out"
            assert len(listed.found) + len(untried) == count_sets(columns, most)


def test_supersets_are_not_tried_and_borders_need_few_sets():
    draw = random.Random(5)
    rows = [(i, *(draw.randrange(2) for _ in range(9)), draw.randrange(90)) for i in range(200)]
    listed, sought = Asked(rows), Asked(rows)
    reaches = lambda u: u.persons_below[2] >= 150  # noqa: E731
    every_set(11, 3, Tried(listed), reaches)
    assert len(listed.sets) == count_sets(10, 3) + 1, "nothing holds the key but the key itself"
    assert listed.calls == 3
    order = sorted(range(11), key=lambda c: len({row[c] for row in rows}))
    smallest, largest = borders(order, 11, Tried(sought), reaches)
    assert (0,) in smallest
    assert len(sought.sets) < count_sets(11, 11) / 3
    assert set(map(frozenset, smallest)) == set(map(frozenset, brute_force(rows, 11, 150)[0]))
    assert largest
