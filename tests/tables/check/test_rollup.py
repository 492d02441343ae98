"""Folding the classes further never changes an answer."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqldeid
from sqldeid.engine.opening import open_connection
from sqldeid.tables.check import rollup
from sqldeid.tables.check.check import Checker
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.model.lattice import below
from sqldeid.tables.plan import plan as planning


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=40))
def test_the_common_base_lies_below_most(nodes: list[tuple[int, ...]]) -> None:
    base = rollup.common_base(nodes)
    served = sum(below(base, node) for node in nodes)
    assert served >= 0.8 * len(nodes)
    for axis in range(4):
        higher = (*base[:axis], base[axis] + 1, *base[axis + 1 :])
        assert sum(below(higher, node) for node in nodes) < 0.8 * len(nodes)


def test_answers_are_the_same_on_rolled_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "LEAST_CLASSES", 10)
    monkeypatch.setattr(rollup, "LEAST_NODES", 2)
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, i * 7 % 61 AS a, i * 13 % 47 AS b, i * i % 29 AS c FROM range(3000) r(i)"
    )
    columns = {c: {"role": "quasi-identifying", "hierarchy": {"bands": [2, 4, 8, 16]}} for c in "abc"}
    job = sqldeid.Job.parse(
        {"tables": {"t": {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}}}}, folder=Path()
    )
    with open_connection(connection) as engine:
        engine.begin()
        plan = planning.plan("t", job.tables["t"], engine, Path())
        folded = fold(plan, engine)
        nodes = [n for n in plan.lattice if sum(n) >= 6]
        rolled = Checker(engine, folded, 3, 300, "rolled")
        found = rolled(nodes[:40]) + rolled(nodes[40:], histogram=True)
        assert len(rolled._rollups._tables) > 1
        monkeypatch.setattr(rollup, "LEAST_CLASSES", 10**9)
        plain = Checker(engine, folded, 3, 300, "plain")
        assert found == plain(nodes[:40]) + plain(nodes[40:], histogram=True)
        assert len(plain._rollups._tables) == 1
