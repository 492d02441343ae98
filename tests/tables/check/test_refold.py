"""Folding the classes split by sensitive values further never changes a verdict."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.opening import open_connection
from sqldeid.tables.check import refold
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.release.node import checker_of


def test_verdicts_are_the_same_on_folded_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, i * 7 % 31 AS a, i * 13 % 29 AS b, i * i % 7 AS s, i % 3 AS u "
        "FROM range(3000) r(i)"
    )
    columns: dict[str, object] = {c: {"role": "quasi-identifying", "hierarchy": {"bands": [2, 4, 8, 16]}} for c in "ab"}
    columns |= {c: {"role": "sensitive"} for c in "su"}
    privacy = {
        "k": 3,
        "suppression_limit": 0.3,
        "l_diversity": [
            {"column": "s", "l": 2, "kind": "entropy"},
            {"column": "s", "l": 2, "kind": "recursive", "c": 2.0},
            {"column": "u", "l": 2, "scope": "joint"},
        ],
        "t_closeness": {"column": "s", "t": 0.3, "distance": "ordered"},
    }
    table = {"source": "t", "person": "id", "columns": columns, "privacy": privacy}
    job = sqldeid.Job.parse({"tables": {"t": table}}, folder=Path())
    with open_connection(connection) as engine:
        engine.begin()
        plan = planning.plan("t", job.tables["t"], engine, Path())
        folded = fold(plan, engine)
        nodes = [n for n in plan.lattice if sum(n) >= 4]
        found = {}
        for least in (10, 10**9):
            monkeypatch.setattr(refold, "LEAST_ROWS", least)
            checker = checker_of(plan, folded, engine)
            found[least] = [e for i in range(0, len(nodes), 5) for e in checker(nodes[i : i + 5])]
            judge = checker.judge
            assert judge is not None
            folds = [len(r._tables) for r in judge._respreads.values()]
            assert (max(folds) > 1) == (least == 10)
        assert found[10] == found[10**9]
        assert any(e.failing > e.core_failing > 0 for e in found[10])
