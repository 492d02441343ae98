"""Hierarchies whose levels stand in Postgres or on Spark: the release of DuckDB, row by row; a plan lists the reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import Job, anonymize, plan, verify
from sqldeid.run import explain
from tests.support.foreign import Both, Foreign, bag, foreign, hold_listed, in_duckdb, running
from tests.support.foreign_tables import AGE, SEX, people, told
from tests.support.on_spark import Both as BothSpark
from tests.support.on_spark import on_both
from tests.support.sources import job, qi, release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["foreign"]


def tables() -> dict[str, pa.Table]:
    """The people, a table of levels of their ages and of their texts, and links from wards up two ways."""
    ages = [*range(20, 50), None, 20]
    texts = ["f", "it's", None, "a\nb"]
    links = [(0, 10, 1), (1, 10, 1), (1, 9, 1), (2, 11, 1), (9, 20, 1), (10, 20, 1), (11, 21, 1), (0, 0, 0), (2, 21, 2)]
    child, parent, steps = (pa.array(column, pa.int64()) for column in zip(*links, strict=True))
    return {
        "people": people(),
        "levels": pa.table(
            {
                "select": pa.array(ages, pa.int32()),
                "Ten": pa.array([None if a is None else f"'{a // 10}0s'" for a in ages]),
                "of": pa.array(["unknown" if a is None else "young" if a < 40 else "old" for a in ages]),
            }
        ),
        "words": pa.table({"leaf": texts, "g": ["f", "ü", "none", "ü"]}),
        "links": pa.table({"child": child, "select": parent, "steps": steps}),
    }


def wanted(schema: str) -> Job:
    columns: dict[str, Any] = {
        AGE: qi({"table": "levels"}),
        SEX: qi({"query": "SELECT g, leaf FROM words", "columns": ["leaf", "g"]}),
        "Wärd": qi({"parents": "links", "child": "child", "parent": "SELECT", "separation": "steps", "depths": [2, 1]}),
    }
    table = release(columns, source="people", person="id", k=120, limit=0.4, search={"weights": {AGE: 0.1, SEX: 0.1}})
    return job({"schema": schema}, "", r=table)


def hold_alike(there: Any, here: Path, read: Any) -> None:
    asked = wanted("levels_there")
    with running() as ran:
        found = anonymize(asked, there).releases["r"]
    [planned] = plan(asked, there)
    hold_listed(explain(planned, asked, there).statements or (), ran - {"tables/plan/read_levels"})
    ours = anonymize(asked, here).releases["r"]
    assert told(found) == told(ours) and 0 < found.node["Wärd"] < 3 and found.released
    assert told(verify(asked, there)) == told(verify(asked, here))
    with duckdb.connect(str(here)) as c:
        assert bag(read("levels_there.r")) == bag(c.execute("SELECT * FROM levels_there.r").fetchall())


@pytest.fixture(scope="module")
def both(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Both:
    for name, rows in tables().items():
        foreign.load(name, rows)
    return Both(foreign, in_duckdb(tmp_path_factory.mktemp("both") / "people.duckdb", tables()))


def test_a_release_in_postgres_is_that_of_duckdb(both: Both) -> None:
    hold_alike(both.foreign.database, both.file, both.foreign.read)


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothSpark]:
    with on_both(spark, tmp_path_factory.mktemp("levels"), tables()) as there:
        yield there


@pytest.mark.xdist_group("spark")
def test_a_release_on_spark_is_that_of_duckdb(on_spark: BothSpark) -> None:
    hold_alike(on_spark.url, on_spark.file, on_spark.there)
