"""The public grid of Mondrian's cuts: cells, bounds, what a type's resolution is, and what a label may hold."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import duckdb
import pytest

from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.sql import column
from sqldeid.tables.plan.grid import Grid, grid_of, roundest

KINDS = {
    "INTEGER": "integer",
    "HUGEINT": "number",
    "DECIMAL(10,2)": "number",
    "DECIMAL(12, 3)": "number",
    "DOUBLE": "float",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}


def made(type_: str, asked: int | float | str | None = None) -> Grid:
    return grid_of(Column("v", type_, KINDS[type_]), asked, "tables.t.columns.v.hierarchy.grid")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "step"),
    [("INTEGER", 1), ("HUGEINT", 1), ("DECIMAL(10,2)", Fraction(1, 100)), ("DECIMAL(12, 3)", Fraction(1, 1000))],
)
def test_a_type_with_a_resolution_needs_no_grid(type_: str, step: Fraction) -> None:
    assert made(type_).step == step


@pytest.mark.parametrize(
    ("type_", "asked", "told"),
    [
        ("DOUBLE", None, "has no resolution of its own"),
        ("DOUBLE", "day", "holds numbers"),
        ("INTEGER", 0.5, "write a multiple of 1"),
        ("DECIMAL(10,2)", 0.005, "write a multiple of 0.01"),
        ("DATE", "hour", 'one of "day", "week"'),
        ("TIMESTAMP", 5, '"second", "minute", "hour", "day", "week"'),
    ],
)
def test_what_is_no_grid_of_a_type_is_refused(type_: str, asked: int | float | str | None, told: str) -> None:
    with pytest.raises(JobError, match=told):
        made(type_, asked)


@pytest.mark.parametrize(
    ("type_", "asked", "value", "cell", "text"),
    [
        ("INTEGER", 5, "44", 8, "40"),
        ("INTEGER", 5, "-1", -1, "-5"),
        ("DECIMAL(10,2)", None, "0.29", 29, "0.29"),
        ("DECIMAL(10,2)", None, "100000.29", 10000029, "100000.29"),
        ("DECIMAL(10,2)", 0.25, "1.10", 4, "1"),
        ("DOUBLE", 0.1, "0.3", 3, "0.3"),
        ("DOUBLE", 0.1, "0.29", 2, "0.2"),
        ("DOUBLE", 2.5, "-0.0", 0, "0"),
        ("DATE", None, "'1969-12-31'", -1, "1969-12-31"),
        ("DATE", "week", "'2024-02-29'", 2826, "2024-02-26"),
        ("TIMESTAMP", None, "'2150-02-03 23:59:59.999999'", 65777, "2150-02-03 00:00:00"),
        ("TIMESTAMP", "hour", "'2150-02-03 23:59:59.999999'", 1578671, "2150-02-03 23:00:00"),
    ],
)
def test_a_value_lies_in_its_cell(type_: str, asked: int | float | None, value: str, cell: int, text: str) -> None:
    from sqldeid.tables.mondrian.plan import Cut

    grid = made(type_, asked)
    cut = Cut("v", Column("v", type_, KINDS[type_]), "range", grid)  # type: ignore[arg-type]
    with duckdb.connect() as c:
        found = c.execute(
            f"SELECT {cut.value.sql('duckdb')} FROM (SELECT CAST({value} AS {type_}) AS v) AS s"
        ).fetchone()
    assert found == (cell,)
    assert grid.shown(cell) == text and grid.holds(text)
    assert column("v", "s") is not None


def test_the_roundest_number_is_the_first_of_the_coarsest_step_that_hits() -> None:
    steps = [s * 10**p for p in range(4) for s in (1, 2)]
    for low, high in itertools.combinations(range(-120, 121), 2):
        hits = {s: [v for v in range(low, high + 1) if v % s == 0] for s in steps}
        coarsest = max(s for s in steps if hits[s])
        assert roundest(low, high) == (0 if low <= 0 <= high else hits[coarsest][0])
    assert roundest(7, 7) == 7 and roundest(1_000_001, 1_999_999) == 1_200_000


def test_a_bound_tells_no_neighbour_but_where_they_are_one_step_apart() -> None:
    """Whoever knows the rule lists all neighbours that give a bound: two of each, but where one number was to take."""
    sides = defaultdict(set)
    for left, right in itertools.combinations(range(-130, 131), 2):
        sides[roundest(left + 1, right)].add((left, right))
    for bound in range(-100, 101):
        lefts, rights = ({pair[i] for pair in sides[bound]} for i in range(2))
        certain = len(lefts) == 1 or len(rights) == 1
        assert not certain or sides[bound] == {(bound - 1, bound)}, bound


def test_a_bound_tells_its_step_to_the_left_and_to_the_right_the_next_coarser_one() -> None:
    """All pairs of neighbours that give a bound, and no other; of 0 all pairs on its sides."""
    steps, most = [1, 2, 10, 20, 100, 200], 130
    sides = defaultdict(set)
    for left, right in itertools.combinations(range(-most, most + 1), 2):
        sides[roundest(left + 1, right)].add((left, right))
    assert len(sides[0]) == most * (most + 1)
    for bound in {*range(-99, 100)} - {0}:
        place = max(i for i, step in enumerate(steps) if bound % step == 0)
        step, coarser = steps[place], steps[place + 1]
        rights = range(bound, (bound // coarser + 1) * coarser)
        assert sides[bound] == set(itertools.product(range(bound - step, bound), rights)), bound
    assert sides[12] == set(itertools.product((10, 11), range(12, 20)))


def test_only_numbers_of_the_grid_are_allowed() -> None:
    fives, tenths, days = made("INTEGER", 5), made("DOUBLE", 0.1), made("DATE")
    assert all(
        fives.allows(x) for x in ("[40, 45)", "< 40", "≥ 45 or missing", "*", "missing", "not missing", None, 40.0)
    )
    assert not any(fives.allows(x) for x in ("[41, 45)", "< 4e1x", "≤ 40", "(40, 45]", "secret", 42.5))
    assert tenths.allows(0.3) and tenths.allows(round(17 * 0.1, 1)) and not tenths.allows(0.35)
    assert days.allows("[2024-02-29, 2024-03-01)") and not days.allows("[2024-02-30, 2024-03-01)")


def test_a_mean_is_the_nearest_number_of_the_grid() -> None:
    assert made("INTEGER").mean(41.5) == 42 and made("INTEGER").mean(41.4) == 41
    assert made("INTEGER", 5).mean(8) == 40  # of 40 … 44, whose middle is 42
    assert made("DOUBLE", 10).mean(0.2) == 10  # of middles 5, 15 …: 7
    assert made("DOUBLE", 0.1).mean(2.5) == 0.3
