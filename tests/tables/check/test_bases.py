"""Which classes travel, and how they do: estimates, the memory of the bench, portions, and errors on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import Settings, own_instance
from sqldeid.engine.remote import draining
from sqldeid.errors import EngineError
from sqldeid.sql import render
from sqldeid.tables.check.bases import CLASS_BYTES, Sizes, meet, most_classes
from sqldeid.tables.check.check import portions


@pytest.fixture
def bench() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine(own_instance(None, Settings(memory_limit="1GB")), "memory", "main", own=True)
    yield engine
    engine.close()


def test_the_bench_has_room_for_as_many_classes_as_its_memory_limit_says(bench: DuckDBEngine) -> None:
    assert most_classes(bench) == pytest.approx(1e9 / CLASS_BYTES, rel=0.001)


@pytest.mark.parametrize("columns", [2, 3])
def test_estimates_are_those_of_independent_columns(columns: int) -> None:
    """Even columns that know nothing of each other: as many cells are met as rows drawn at random meet."""
    random = np.random.default_rng(columns)
    rows, groups = 20_000, (64, 16, 1)
    codes = random.integers(0, groups[0], size=(columns, rows))
    entropies = tuple(tuple(float(np.log(g)) for g in groups) for _ in range(columns))
    sizes = Sizes(rows, entropies, (groups,) * columns, 0.0, {})
    for level, group in enumerate(groups):
        merged = np.minimum(codes * group // groups[0], group - 1)
        found = len(np.unique(merged, axis=1).T)
        assert sizes.expected((level,) * columns) == pytest.approx(found, rel=0.05)


def test_estimates_heed_what_was_counted() -> None:
    sizes = Sizes(1000, ((5.0, 0.0),) * 2, ((150, 1),) * 2, 0.0, {(0, 0): 40, (0, 1): 30})
    assert sizes.expected((0, 0)) == 40
    assert sizes.expected((0, 1)) == 30
    assert sizes.expected((1, 0)) == 40, "no more than the node below has"
    assert sizes.expected((1, 1)) == 1
    sizes.known.clear()
    sizes.known[1, 0] = 990
    assert sizes.expected((0, 0)) >= 990, "no fewer than the node above has"


def test_the_meet_is_the_highest_node_below_all() -> None:
    assert meet([(2, 1, 0), (1, 1, 3), (3, 2, 3)]) == (1, 1, 0)


def test_portions_keep_the_order_and_the_weight() -> None:
    assert portions([], 3) == []
    assert portions([1, 2, 1, 9, 0, 3], 3) == [[0, 1], [2], [3], [4, 5]]
    assert portions([0, 0, 0], 3) == [[0, 1, 2]]


def test_rows_are_brought_table_by_table_and_what_goes_wrong_with_them_is_told(bench: DuckDBEngine) -> None:
    part = pa.table({"n": pa.array([1, 2], pa.int64())})
    with draining(part.schema, [part, part]) as rows:
        brought = bench.put("brought", rows)
    assert bench.query(render("engine/count_rows", table=brought)).to_pylist() == [{"rows": 4}]

    def broken() -> Iterator[pa.Table]:
        yield part
        raise EngineError("the server went away")

    with pytest.raises(EngineError, match="the server went away"), draining(part.schema, broken()) as rows:
        bench.put("brought", rows)
