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
from sqldeid.sql import column, render, table_name
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
    columns = [column("q 0", "w"), column("o", "w")]
    with duckdb.connect() as c:
        c.execute('CREATE TABLE "writ ten" ("q 0" VARCHAR, o INTEGER)')
        rows = "('a', 1), ('a', 1), ('a', NULL), ('a', 3), (NULL, 1), ('b', 2)"
        c.execute(f'INSERT INTO "writ ten" VALUES {rows}')
        told = {"written": table_name("writ ten"), "columns": columns, "most": most}
        assert c.execute(render("tables/attacks/count_unordered", **told)).fetchall() == [found]


@pytest.mark.parametrize("search", ["frontier", "local", "mondrian"])
@pytest.mark.parametrize(
    ("type_", "spellings"),
    [
        ("VARCHAR COLLATE NOCASE", ("'x'", "'X'")),
        ("VARCHAR COLLATE NOACCENT", ("'a'", "'ä'")),
        ("INTERVAL", ("INTERVAL 30 DAY", "INTERVAL 1 MONTH")),
        ("INTERVAL[]", ("[INTERVAL 30 DAY]", "[INTERVAL 1 MONTH]")),
        ("STRUCT(i INTERVAL)", ("{'i': INTERVAL 30 DAY}", "{'i': INTERVAL 1 MONTH}")),
    ],
)
def test_values_that_are_equal_and_differ_do_not_keep_the_sources_order(
    type_: str, spellings: tuple[str, str], search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sort leaves them as they came: the same rows, the other way round in the source, give the same release."""
    monkeypatch.chdir(tmp_path)
    first, second = spellings
    a = qi({"median": "range"}) if search == "mondrian" else qi({"bands": [3]})
    columns = {"id": {"role": "identifying"}, "a": a, "s": {"role": "sensitive"}}
    part = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 4}, "search": {"method": search}}
    found = []
    for place, direction in enumerate(("ASC", "DESC")):
        path = tmp_path / f"{place}.duckdb"
        with duckdb.connect(str(path)) as c:
            c.execute(f"CREATE TABLE t (id INTEGER, a INTEGER, s {type_})")
            value = f"CASE WHEN HASH(i) % 2 = 0 THEN {first} ELSE {second} END"
            c.execute(f"INSERT INTO t SELECT i, i % 3, {value} FROM RANGE(90) AS r(i) ORDER BY i {direction}")
        into = f"out{place}.duckdb"
        told = sqldeid.anonymize(job({"into": into}, Path(), t=part), path).releases["t"].attacks
        assert told.order is None or told.order.unordered.value == 0
        with duckdb.connect(into, read_only=True) as c:
            found.append(c.execute("SELECT a, CAST(s AS VARCHAR) FROM release.t").fetchall())
    assert len(set(found[0])) > len({a for a, _ in found[0]})
    assert found[0] == found[1]
