"""No statement of an attack compares rows pair by pair; `benchmarks/attack_cost.py` prints it of a million rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from benchmarks.attack_cost import slow_joins, watching
from sqldeid.engine.opening import open_connection
from sqldeid.job import Job
from tests.support.sources import qi

ROWS = 20_000
COLUMNS = {"a": qi({"bands": [5, 50]}), "b": qi(), "s": {"role": "sensitive"}}
TEMPLATES = Path(__file__).parents[3] / "sql" / "templates" / "tables" / "attacks"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(
            f"""CREATE TABLE t AS SELECT i AS id, CAST(HASH(i) % 400 AS INTEGER) AS a,
                CAST(HASH(i + 1) % 7 AS INTEGER) AS b, CAST(HASH(i + 2) % 9 AS INTEGER) AS s
                FROM RANGE({ROWS}) AS r(i)"""
        )
    return path


def table(**more: Any) -> dict[str, Any]:
    return {"source": "t", "person": "id", "columns": COLUMNS, "privacy": {"k": 5, "suppression_limit": 0.02}, **more}


@pytest.mark.deep
@pytest.mark.usefixtures("control_groups")
def test_no_statement_compares_many_rows_with_many(source: Path) -> None:
    closeness = {"k": 5, "suppression_limit": 0.1, "t_closeness": {"column": "s", "t": 0.2}}
    jobs = [
        {"node": table(privacy=closeness)},
        {"local": table(search={"method": "local"})},
        {"one": table(privacy={"k": 5}), "other": {**table(privacy={"k": 5}), "columns": {**COLUMNS, "a": qi()}}},
    ]
    seen: dict[str, set[str]] = {}
    for number, tables in enumerate(jobs):
        into = {"into": str(source.with_name(f"{number}.duckdb"))}
        with watching() as watch:
            sqldeid.anonymize(Job.parse({"release": into, "tables": tables}), source)
        for (phase, name), (_, _, joins) in watch.found.items():
            if phase != "release":
                seen.setdefault(name, set()).update(joins)
    assert not {name: joins for name, joins in seen.items() if joins}
    assert {"run/intersect_classes", "run/intersect_values", "tables/attacks/guess_values"} <= seen.keys()
    attacks = {path.name.split(".")[0] for path in TEMPLATES.glob("*.jinja")}
    assert attacks <= {name.rpartition("/")[2] for name in seen}


def test_a_join_of_many_with_many_is_seen() -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT range AS x FROM RANGE(5000)")
        with open_connection(c) as engine:
            assert slow_joins(engine, "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.x + b.x > 7")
            assert slow_joins(engine, "SELECT COUNT(*) FROM t AS a CROSS JOIN t AS b")
            assert not slow_joins(engine, "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.x = b.x")
            assert not slow_joins(engine, "SELECT COUNT(*) FROM t AS a CROSS JOIN (SELECT * FROM t LIMIT 3) AS b")
