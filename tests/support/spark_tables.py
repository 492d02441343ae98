"""The people of every engine, on Spark and in a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.foreign_tables import people
from tests.support.on_spark import Both, on_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    visits = pa.table({"id": pa.array(range(300), pa.int64()), "n": pa.array([i % 2 for i in range(300)], pa.int64())})
    with on_both(spark, tmp_path_factory.mktemp("both"), {"people": people(), "visits": visits}) as there:
        yield there
