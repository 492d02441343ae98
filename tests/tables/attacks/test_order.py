"""A release whose order is the source's is found, and one whose order follows from its rows is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.job import Job
from sqldeid.sql import identifier, render, table_name
from sqldeid.tables.attacks import order, run
from sqldeid.tables.attacks.base import Attacked
from tests.support.sources import job, qi

ROWS = 400


def source(path: Path, *, enum: bool = False) -> Path:
    rng = np.random.default_rng(3)
    people = pa.table(
        {
            "id": np.arange(ROWS),
            "a": rng.integers(0, 9, ROWS),
            "b": [None if x == 2 else f"{x}" for x in rng.integers(0, 3, ROWS)],
            "s": rng.integers(0, 30, ROWS),
            "t": [None if x == 2 else float(x) for x in rng.integers(0, 4, ROWS)],
        }
    )
    with duckdb.connect(str(path)) as c:
        c.register("given", people)
        c.execute("CREATE TABLE t AS FROM given")
        if enum:
            c.execute("CREATE TYPE backwards AS ENUM (" + ", ".join(f"'{29 - i}'" for i in range(30)) + ")")
            c.execute("ALTER TABLE t ALTER s TYPE backwards USING CAST(CAST(s AS VARCHAR) AS backwards)")
    return path


def asked(search: str = "frontier", *, bare: bool = False, **release: Any) -> Job:
    shown = {} if bare else {"s": {"role": "sensitive"}, "t": {"role": "insensitive"}}
    columns = {"id": {"role": "identifying"}, "a": qi({"bands": [3]}), "b": qi(), **shown}
    privacy = {"k": 4, "suppression_limit": 0.2}
    part = {"source": "t", "person": "id", "columns": columns, "privacy": privacy, "search": {"method": search}}
    return job({"into": "out.duckdb", **release}, Path(), t=part)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("search", ["frontier", "local"])
@pytest.mark.parametrize("release", [{}, {"as": "parquet", "into": "out"}, {"as": "view"}])
def test_our_order_tells_nothing(
    release: dict[str, str], search: str, bare: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = sqldeid.anonymize(asked(search, bare=bare, **release), source(tmp_path / "db.duckdb"))
    [told] = result.releases.values()
    assert told.attacks.order.unordered.value == 0 and told.attacks.order.unordered.of == told.released - 1
    assert "order" not in dict(told.attacks.facts())["Undone"]
    assert "unordered" not in json.dumps(result.to_public()) and "Order of rows" in result.to_html()


@pytest.mark.parametrize(("planted", "share"), [("ORDER BY id", 0.5), ("ORDER BY HASH(id)", 0.5), ("", 0.0)])
def test_an_order_that_leaks_is_found(
    planted: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows as the source has them; rows in an order drawn anew, which cannot be told from it; and rows as written."""
    monkeypatch.chdir(tmp_path)
    made: list[order.RowOrder] = []

    def make(attacked: Attacked) -> Any:
        engine = attacked.engine
        shown = f"SELECT a // 3 AS a, b, s, t, id FROM {engine.resolve(('t',)).sql()}"
        where = planted or "ORDER BY a, b NULLS LAST, s, t NULLS LAST"
        engine.execute(f"CREATE TEMP TABLE planted AS SELECT a, b, s, t FROM ({shown}) AS r {where}")
        found = order.ATTACK.make(replace(attacked, written=table_name("temp", "main", "planted")))
        made.append(found)  # type: ignore[arg-type]
        return found

    changed = [a if a.name != "order" else replace(a, make=make) for a in run.attacks()]
    monkeypatch.setattr(run, "attacks", lambda: iter(changed))
    sqldeid.anonymize(asked(), source(tmp_path / "db.duckdb"))
    assert made[0].unordered.value == pytest.approx(share, abs=0.1)
    assert ("order that may be the source's" in made[0].said) == (share > 0)


def test_what_is_not_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = sqldeid.anonymize(asked(), source(tmp_path / "db.duckdb", enum=True)).releases["t"].attacks
    assert {one.attack: one.reason for one in told.left_out}["order"].startswith("a column's own order")


@pytest.mark.parametrize(("most", "found"), [(100, (6, 2)), (3, (3, 0)), (0, (0, 0))])
def test_rows_out_of_order_are_counted(most: int, found: tuple[int, int]) -> None:
    """NULL is last; equal rows are in order."""
    columns = [identifier("q 0"), identifier("o")]
    with duckdb.connect() as c:
        c.execute('CREATE TABLE "writ ten" ("q 0" VARCHAR, o INTEGER)')
        rows = "('a', 1), ('a', 1), ('a', NULL), ('a', 3), (NULL, 1), ('b', 2)"
        c.execute(f'INSERT INTO "writ ten" VALUES {rows}')
        told = {"written": table_name("writ ten"), "columns": columns, "most": most}
        assert c.execute(render("tables/attacks/count_unordered", **told)).fetchall() == [found]
