"""Linked tables on Spark, classic and Connect: both releases are those of DuckDB, row by row, and checked alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Options, VerificationError, anonymize, verify
from sqldeid.engine.opening import Settings
from sqldeid.run import explain
from sqldeid.run.foreign import open_engine
from sqldeid.tables.plan.linking import link
from sqldeid.tables.plan.plan import plan
from sqldeid.tables.rows.linked import check_sources, join_sources
from sqldeid.tables.write.unchanged_source import telling_of_changes
from tests.support.foreign import bag, hold_listed, running
from tests.support.foreign_tables import told
from tests.support.linked_tables import NAMES, blanked, settled, stacked, tables, with_key
from tests.support.on_spark import Both, on_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["settled"]

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with on_both(spark, tmp_path_factory.mktemp("linked"), tables()) as there:
        yield there


@pytest.fixture
def key(tmp_path: Path) -> Options:
    return with_key(tmp_path)


def overwrite(spark: SparkSession, table: str, rows: str) -> None:
    """What a table holds, made of what it held."""
    kept = spark.sql(rows).toArrow()
    spark.createDataFrame(kept).createOrReplaceTempView("given")
    spark.sql(f"INSERT OVERWRITE TABLE {table} SELECT * FROM given")
    spark.sql("DROP VIEW given")


@pytest.mark.deep
@pytest.mark.always
def test_linked_releases_are_those_of_duckdb(both: Both, key: Options, settled: None) -> None:
    """As views, by a classic session, a column out of a third table; nothing else is left."""
    wanted, before = stacked(schema="joined", **{"as": "view"}), both.catalogue()
    [planned] = sqldeid.plan(wanted, both.url)
    with running() as ran:
        there = anonymize(wanted, both.spark, options=key).releases
    hold_listed(explain(planned, wanted, both.url).statements or (), ran)
    here = anonymize(wanted, both.file, options=key).releases
    for name in NAMES:
        assert told(there[name]) == told(here[name])
        assert bag(both.there(f"joined.{name}")) == bag(both.here(f"joined.{name}"))
    made = {name.partition("__")[0] for schema, name in both.catalogue() - before if schema != "folder"}
    assert made == {"", *NAMES}


def test_blanked_rows_of_a_query_by_connect(both: Both, key: Options, settled: None) -> None:
    """As tables; checked by a classic session, and refused by it once somebody's row is gone from one of them."""
    wanted = blanked(schema="blanked")
    there, here = (anonymize(wanted, d, options=key).releases for d in (both.url, both.file))
    for name in NAMES:
        assert told(there[name]) == told(here[name])
        assert bag(both.there(f"blanked.{name}")) == bag(both.here(f"blanked.{name}"))
    assert dict(verify(wanted, both.spark, options=key)) == dict(verify(wanted, both.file, options=key))
    overwrite(both.spark, "blanked.stays", "SELECT * FROM blanked.stays ORDER BY same LIMIT 100")
    with pytest.raises(VerificationError, match="pseudonyms do not stand once in each of these linked tables"):
        verify(wanted, both.spark)


def test_a_join_that_is_not_of_the_sources_is_seen(both: Both) -> None:
    """One row of it has another's value: where the tables are joined once more, it is not the same, on either side."""
    wanted = blanked()
    with ExitStack() as stack:
        engine = open_engine(both.spark, Settings(), stack)
        engine.begin()
        joined = join_sources(link([plan(name, wanted.tables[name], engine, Path()) for name in NAMES]), engine)
        check_sources(joined, engine)
        rows = both.spark.sql(f"SELECT * FROM {joined.plan.source.sql('spark')}").toArrow()
        place = rows.column_names.index("people/true_row")
        moved = pa.array([34 if row == 33 else row for row in rows.column(place).to_pylist()], pa.int64())
        wrong = engine.put("wrong", rows.set_column(place, "people/true_row", moved))
        told_so = r"tables\.people\.link: .* 2 rows differ .*; where the source changed meanwhile, run again"
        with pytest.raises(VerificationError, match=told_so), telling_of_changes(engine):
            check_sources(replace(joined, plan=replace(joined.plan, source=wrong)), engine)
