"""Lengths and classes within a table's classes equal a plain recursion, class by class; what is left is in both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import open_connection
from sqldeid.errors import JobError, VerificationError
from sqldeid.job.series import Series
from sqldeid.making import Making
from sqldeid.numbering import TableClasses
from sqldeid.series.link import Link, combine, members, raised
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.planning import plan
from sqldeid.series.recheck import recheck
from sqldeid.series.release import run
from sqldeid.series.shape import Shaped, shape
from sqldeid.series.verify_link import verify_linked
from tests.support.series_data import features, mondrian

pytestmark = pytest.mark.duckdb14

VARIABLES = {"a": {"items": [1]}, "b": {"items": [2]}}


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with duckdb.connect() as connection, open_connection(connection) as found:
        found.begin()
        yield found


def planned(engine: DuckDBEngine, frame: pd.DataFrame, **changes: object) -> SeriesPlan:
    engine.connection.register("frame", frame)
    engine.connection.execute("CREATE OR REPLACE TABLE charted AS SELECT * FROM frame")
    asked = {
        **{"source": "charted", "person": "p", "time": "t", "time_unit": "hours", "variable": "v", "value": "x"},
        **{"variables": VARIABLES, "durations": {"k": 2}, "privacy": {"k": 2, "nulls": "null-strict"}, "link": "t"},
    }
    return plan("s", Series.model_validate({**asked, **changes}), engine, Path())


def put_classes(engine: DuckDBEngine, classes: dict[int, int], k: int) -> TableClasses:
    rows = pa.table(
        {"person": [str(p) for p in classes], "class": pa.array(list(classes.values()), pa.int64())},
        schema=pa.schema({"person": pa.string(), "class": pa.int64()}),
    )
    return TableClasses("t", k, engine.put("classes", rows))


def random_case(seed: int, *, gaps: bool) -> tuple[dict[int, np.ndarray], dict[int, int]]:
    """Series (variables, hours) of persons, some without a row; classes of persons, some without series."""
    draw = np.random.default_rng(seed)
    series = {}
    for person in range(int(draw.integers(20, 60))):
        values = np.round(draw.normal(80, 20, (2, int(draw.choice([3, 4, 5, 8])))), 3)
        if gaps and draw.random() < 0.3:
            values[1] = np.nan
        series[person * 3] = values
    persons = [p for p in range(0, 200, 3) if draw.random() < 0.8]
    return series, {p: int(draw.integers(1, 5)) for p in persons}


def as_frame(series: dict[int, np.ndarray]) -> pd.DataFrame:
    rows = [
        (p, h, v + 1, float(x))
        for p, values in series.items()
        for v, row in enumerate(values)
        for h, x in enumerate(row)
        if not np.isnan(x)
    ]
    return pd.DataFrame(rows, columns=["p", "t", "v", "x"])


def least_lost(lengths: list[int], k: int) -> int:
    """Fewest steps lost by any way to put persons in groups of k and more, each as long as its shortest."""
    falling = sorted(lengths, reverse=True)
    best = [0] + [10**9] * len(falling)
    for stop, start in sorted((b, a) for a, b in combinations(range(len(falling) + 1), 2)):
        if stop - start >= k:
            lost = sum(falling[start:stop]) - (stop - start) * falling[stop - 1]
            best[stop] = min(best[stop], best[start] + lost)
    return best[-1]


def person_of(engine: DuckDBEngine, shaped: Shaped) -> dict[int, int]:
    """Row of the measured persons → the person's key."""
    assert shaped.link is not None
    read = engine.query(f"SELECT person_number, person FROM {shaped.link.joined.sql('duckdb')}").to_pylist()
    key = {row["person_number"]: int(row["person"]) for row in read}
    return {i: key[int(n)] for i, n in enumerate(shaped.measured.persons)}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(8))
def test_lengths_and_classes_equal_a_recursion_within_each_class(engine: DuckDBEngine, seed: int) -> None:
    series, classes = random_case(seed, gaps=False)
    k_table, k_series, k_lengths = (int(k) for k in np.random.default_rng(seed + 99).integers(2, 5, 3))
    asked = planned(
        engine, as_frame(series), durations={"k": k_lengths}, privacy={"k": k_series, "nulls": "null-strict"}
    )
    k = max(k_table, k_series)
    shaped = shape(raised(asked, k_table), engine, lambda name, text: None, put_classes(engine, classes, k_table))
    key = person_of(engine, shaped)
    found = {key[i]: (int(shaped.measured.lengths[i]), int(shaped.classes.of_person[i])) for i in range(len(key))}
    for number in set(classes.values()):
        mine = [p for p in series if classes.get(p) == number]
        least = max(k, k_lengths)
        assert {p for p in mine if p in found} == (set(mine) if len(mine) >= least else set())
        if len(mine) < least:
            continue
        lost = sum(series[p].shape[1] - found[p][0] for p in mine)
        assert lost == least_lost([series[p].shape[1] for p in mine], least)
        for length in {found[p][0] for p in mine}:
            there = sorted(p for p in mine if found[p][0] == length)
            assert len(there) >= least
            points = features(np.stack([series[p][:, -length:] for p in there])).reshape(len(there), -1)
            order = [c for v in range(2) for c in (4 * v + 3, 4 * v, 4 * v + 2, 4 * v + 1)]  # by name: max, mean, …
            expected = mondrian(points[:, order], k, "null-strict")
            pairs = {(int(e), found[p][1]) for e, p in zip(expected, there, strict=True)}
            assert len(pairs) == len({e for e, _ in pairs}) == len({c for _, c in pairs})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(6))
def test_who_is_left_shares_a_combined_class_with_k(engine: DuckDBEngine, seed: int) -> None:
    """Persons without series, without a row, with a variable missing: in both or neither, k everywhere."""
    series, classes = random_case(seed, gaps=True)
    asked = raised(planned(engine, as_frame(series), privacy={"k": 2}), 3)
    table = put_classes(engine, classes, 3)
    try:
        shaped = shape(asked, engine, lambda name, text: None, table)
    except JobError as refused:
        assert "link" in str(refused)
        return
    left = np.zeros(len(shaped.measured.persons), dtype=np.int64)
    left[np.unique(shaped.measured.person_at[~shaped.classes.dropped])] = 1
    assert shaped.link is not None
    out = members(asked, shaped.link, shaped.measured, shaped.classes, np.cumsum(left) * left, engine)
    rows = engine.query(f"SELECT * FROM {out.table.sql('duckdb')}").to_pandas()
    rows["person"] = rows.person.astype(int)
    assert set(rows.person) <= set(series) & set(classes) and not rows.number.duplicated().any()
    assert rows.groupby("class").size().min() >= 3
    assert rows.assign(table=rows.person.map(classes)).groupby("class").table.nunique().max() == 1
    assert rows.assign(table=rows.person.map(classes)).groupby("table").size().min() >= 3
    shown = {}
    for i, key in person_of(engine, shaped).items():
        mine = (shaped.measured.person_at == i) & ~shaped.classes.dropped
        shown[key] = tuple(shaped.measured.features.variable_number[mine])
    assert rows.assign(v=rows.person.map(shown)).groupby("class").v.nunique().max() == 1
    assert out.account["released"] == len(rows) and out.account["in_both"] == len(set(series) & set(classes))


def test_classes_that_fail_a_criterion_go_whole_and_change_no_other(engine: DuckDBEngine) -> None:
    series, classes = random_case(3, gaps=False)
    asked = raised(planned(engine, as_frame(series)), 2)
    table = put_classes(engine, classes, 2)
    before = shape(asked, engine, lambda name, text: None, table)
    chosen = np.unique(combine(before.measured, before.classes))[::3]
    judged = TableClasses(table.name, table.k, table.persons, lambda persons: chosen)
    after = shape(asked, engine, lambda name, text: None, judged)
    gone = np.isin(combine(before.measured, before.classes), chosen)
    assert np.array_equal(before.classes.of_person, after.classes.of_person)
    left = np.unique(after.measured.person_at[~after.classes.dropped])
    assert set(left) == set(np.flatnonzero(~gone)) - _too_few(before, ~gone, asked.part.durations.k)
    assert gone.any() and len(left)


def _too_few(shaped: Shaped, kept: np.ndarray, k: int) -> set[int]:
    """Persons of a (class of the table, length) in which fewer than k are kept."""
    link = shaped.link
    assert isinstance(link, Link)
    pairs = list(zip(link.table_class.tolist(), shaped.measured.lengths.tolist(), strict=True))
    counts = pd.Series([p for p, there in zip(pairs, kept, strict=True) if there]).value_counts()
    return {i for i, pair in enumerate(pairs) if kept[i] and counts[pair] < k}


def test_linked_series_are_not_made_or_checked_without_their_table(engine: DuckDBEngine) -> None:
    asked = planned(engine, as_frame({0: np.ones((2, 3))}))
    for refused in (
        lambda: run(asked, Making(engine, None, "", None)),  # type: ignore[arg-type]
        lambda: recheck(asked, {}, engine.workbench("none"), engine),
    ):
        with pytest.raises(JobError, match="is made and checked with it"):
            refused()


GOOD = {
    "measured": [(n, 0, 5) for n in range(1, 9)],
    "beside": [(n, 1 if n < 5 else 2) for n in range(1, 9)],
    "persons": [(n, 1 if n < 5 else 2, 7 if n < 5 else 8) for n in range(1, 9)],
}
BROKEN = [
    ("beside", [*GOOD["beside"], (8, 2)], "1 rows of tables.t have the number of another row"),
    ("beside", [(1, None), *GOOD["beside"][1:]], "1 rows of tables.t are in no class"),
    ("beside", [*GOOD["beside"], (9, 2)], "1 persons are in tables.t without a series"),
    ("beside", GOOD["beside"][1:], "1 persons have series and no row in tables.t"),
    ("beside", [(1, 2), *GOOD["beside"][1:]], "1 persons are in another class of tables.t"),
    ("persons", [(1, 1, 9), *GOOD["persons"][1:]], "a class of both together has 1 persons, not 3"),
    ("measured", [(1, 0, 4), *GOOD["measured"][1:]], "a class of both together has 1 persons, not 3"),
    ("measured", [(1, 1, 5), *GOOD["measured"][1:]], "a class of both together has 1 persons, not 3"),
]


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("which", "rows", "message"), [("", [], ""), *BROKEN], ids=range(9))
@pytest.mark.parametrize("known", [True, False])
def test_the_join_is_checked_on_what_was_written(
    engine: DuckDBEngine, which: str, rows: list[tuple[int, ...]], message: str, known: bool
) -> None:
    asked = planned(engine, as_frame({0: np.ones((2, 3))}), privacy={"k": 3})
    tables = {**GOOD, **({which: rows} if which else {})}
    names = {
        "measured": ["number", "variable_number", "steps"],
        "beside": ["number", "class"],
        "persons": ["number", "table_class", "class"],
    }
    put = {
        name: engine.put(
            name, pa.table([pa.array(c, pa.int64()) for c in zip(*tables[name], strict=True)], names=names[name])
        )
        for name in GOOD
    }
    persons = put["persons"] if known else None
    if not which or (not known and (which == "persons" or "another class" in message)):
        assert verify_linked(asked, put["measured"], put["beside"], persons, engine) >= 3
        return
    with pytest.raises(VerificationError) as refused:
        verify_linked(asked, put["measured"], put["beside"], persons, engine)
    assert message in str(refused.value)
