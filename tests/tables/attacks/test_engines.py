"""What attackers achieve on Postgres and Spark is what they achieve on DuckDB, with control groups and all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.job import Job
from tests.support.foreign import in_postgres
from tests.support.on_spark import load
from tests.support.sources import job, qi

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("control_groups")

COMPARED = {"downcoding", "singling_out", "linkability", "inference", "disclosure", "groups"}


def persons() -> pa.Table:
    rng = np.random.default_rng(11)
    sexes = [("f", "m", None)[x] for x in rng.integers(0, 3, 300)]
    ills = [None if x == 4 else f"d{x}" for x in rng.integers(0, 5, 300)]
    return pa.table(
        {
            "id": np.arange(300),
            "age": rng.integers(0, 40, 300),
            "sex": sexes,
            "ill": ills,
            "cost": rng.integers(0, 9, 300),
        }
    )


def asked(method: str, schema: str, source: str = "p") -> Job:
    columns = {
        "id": {"role": "identifying"},
        "age": qi({"bands": [5, 10]}),
        "sex": qi(),
        "ill": {"role": "sensitive"},
        "cost": {"role": "insensitive"},
    }
    privacy = {"k": 4, "suppression_limit": 0.1, "l_diversity": {"column": "ill", "l": 2}}
    part = {"source": source, "person": "id", "columns": columns, "secrets": ["cost"], "search": {"method": method}}
    return job({"schema": schema}, Path(), t={**part, "privacy": privacy})


def achieved(wanted: Job, database: Any) -> dict[str, Any]:
    """All figures but of the order of rows; what is left out, too."""
    found = sqldeid.anonymize(wanted, database).to_dict()["releases"]["t"]["attacks"]
    found["left_out"] = sorted(str(one) for one in found["left_out"] if one["attack"] != "order")
    return {name: told for name, told in found.items() if name != "order"}


def in_duckdb(method: str) -> dict[str, Any]:
    with duckdb.connect() as c:
        c.register("given", persons())
        c.execute("CREATE TABLE p AS FROM given")
        c.unregister("given")
        found = achieved(asked(method, "anon"), c)
    expected = COMPARED | ({"minimality"} if method == "frontier" else set())
    assert found.keys() >= expected - ({"downcoding"} if method == "frontier" else set())
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["frontier", "local"])
def test_on_postgres(method: str, postgres_cluster: str) -> None:
    with in_postgres(postgres_cluster) as server:
        server.load("p", persons())
        assert achieved(asked(method, "anon"), server.database) == in_duckdb(method)


@pytest.mark.xdist_group("spark")
def test_on_spark(spark: SparkSession) -> None:
    load(spark, "attacked_p", persons())
    assert achieved(asked("frontier", "attacked", "attacked_p"), spark) == in_duckdb("frontier")
