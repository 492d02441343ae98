"""Integers that are counted as bits are as many as a set has, whatever their type, spread and repeats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.engine.opening import Settings
from sqldeid.run import reading
from sqldeid.sql import column, render, table_name
from sqldeid.tables.plan.plan import plan
from tests.support.examples import examples
from tests.support.files import write
from tests.support.sources import job, qi, release

TYPES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127) + 1, 2**127 - 1),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


@st.composite
def keys(draw: st.DrawFn) -> tuple[str, list[int | None]]:
    """A type, and keys near each other or near its ends, some of them NULL or there twice."""
    name = draw(st.sampled_from(sorted(TYPES)))
    low, high = TYPES[name]
    start = draw(st.sampled_from([low, high - 300, -150, 0]) | st.integers(low, high))
    near = st.integers(max(low, start), min(high, max(low, start) + 300))
    drawn = near | st.none() if draw(st.booleans()) else near | st.integers(low, high) | st.none()
    return name, draw(st.lists(drawn, max_size=12))


@settings(deadline=None, max_examples=examples(100))
@given(keys())
def test_counts_are_those_of_a_set(connection: duckdb.DuckDBPyConnection, asked: tuple[str, list[int | None]]) -> None:
    kind, values = asked
    connection.execute(f"CREATE OR REPLACE TABLE t (id {kind})")
    for value in values:
        connection.execute(f"INSERT INTO t VALUES ({value if value is not None else 'NULL'})")
    told = render("tables/rows/check_person", source=table_name("t"), person=column("id", "s"), numbered=True)
    there = [v for v in values if v is not None]
    assert connection.execute(told).fetchall() == [(len(values), len(there), len(set(there)))]


def test_views_and_text_are_read_once(tmp_path: Path) -> None:
    """A view may be slow, or give other rows the second time: only a table's integers are counted by their range."""
    path = tmp_path / "db.duckdb"
    write(
        path,
        "CREATE TABLE people AS SELECT i AS id, 'p' || i AS name, i % 2 AS age FROM range(20) AS r(i)",
        "CREATE VIEW seen AS SELECT * FROM people",
    )
    found = {}
    for source, person in [("people", "id"), ("seen", "id"), ("people", "name")]:
        part = release({"age": qi()}, source=source, person=person, k=2)
        parsed = job({"into": "out.duckdb"}, tmp_path, r=part)
        with reading(path, path, Settings()) as engine:
            found[source, person] = plan("r", parsed.tables["r"], engine, parsed.folder).numbered
    assert found == {("people", "id"): True, ("seen", "id"): False, ("people", "name"): False}
