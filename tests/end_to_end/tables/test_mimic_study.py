"""The jobs of examples/mimic_study, and first admissions, on the MIMIC-III demo: alike on every engine.

Node, losses, what is suppressed, and the released rows are DuckDB's, in Postgres, on Spark, and by Spark Connect.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import Job, Options, TableRelease, anonymize, verify
from tests.support.foreign import InPostgres, bag, in_postgres
from tests.support.foreign_tables import told
from tests.support.on_spark import load
from tests.support.places import ROOT
from tests.support.real_data import FIRST_ADMISSIONS, MIMIC_TABLES
from tests.support.sources import IDENTIFYING, INSENSITIVE, qi, release
from tests.support.spark import PORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STUDY = ROOT / "examples/mimic_study"
FILES = ("ola", "chapters", "inverse_ola")
ADMITTED = {
    "subject_id": IDENTIFYING,
    **{name: qi(f"mimic3/{name}") for name in "gender dob_year insurance language religion marital_status".split()},
    "procedure_code": qi("icd9/procedures", uncovered="prefix"),
    "admission_type": INSENSITIVE,
}
NAMES = {name.split("_")[0].lower(): f"mimiciii.{name.lower()}" for name in MIMIC_TABLES}


def study(name: str) -> Job:
    """A job of the study, or of first admissions, released into a schema of its name."""
    if name in FILES:
        asked = tomllib.loads((STUDY / f"{name}.toml").read_text(encoding="utf-8"))
        return Job.parse({**asked, "release": {"schema": name}}, folder=STUDY)
    query = {"query": FIRST_ADMISSIONS.format(**NAMES)}
    part = release(ADMITTED, source=query, k=3, limit=0.1, person="subject_id")
    return Job.parse({"release": {"schema": name}, "tables": {"patients": part}})


@pytest.fixture(scope="module")
def demo(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that the study reads, in a DuckDB file."""
    path = tmp_path_factory.mktemp("study") / "mimic.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE SCHEMA mimiciii")
        for name, columns in MIMIC_TABLES.items():
            c.execute(f"CREATE TABLE mimiciii.{name} ({columns})")
            c.execute(f"COPY mimiciii.{name} FROM '{shared_data}/mimic3demo/{name}.csv' (HEADER true)")
    return path


def tables(demo: Path) -> Iterator[tuple[str, pa.Table]]:
    """The same tables as they are loaded elsewhere."""
    with duckdb.connect(str(demo), read_only=True) as c:
        for name in NAMES.values():
            yield name.removeprefix("mimiciii."), c.sql(f"FROM {name}").to_arrow_table()


def assert_same(name: str, there: TableRelease, rows: list[tuple[Any, ...]], demo: Path) -> None:
    """What was released elsewhere is what DuckDB releases of the same tables."""
    here = anonymize(study(name), demo, options=Options(replace=True, without_ledger=True)).releases["patients"]
    assert (there.node, there.loss, there.suppressed) == (here.node, here.loss, here.suppressed)
    assert told(there) == told(here)
    assert there.released, "an empty release says nothing"
    with duckdb.connect(str(demo), read_only=True) as c:
        assert bag(rows) == bag(c.execute(f"SELECT * FROM {name}.patients").fetchall())


@pytest.fixture(scope="module")
def in_a_cluster(postgres_cluster: str, demo: Path) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as database:
        database.run("CREATE SCHEMA mimiciii")
        for name, rows in tables(demo):
            database.load(name, rows)
            database.run(f"ALTER TABLE {name} SET SCHEMA mimiciii")
        yield database


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*FILES, "admissions"])
def test_in_postgres(name: str, in_a_cluster: InPostgres, demo: Path) -> None:
    found = anonymize(study(name), in_a_cluster.database).releases["patients"]
    assert_same(name, found, in_a_cluster.read(f"{name}.patients"), demo)
    assert verify(study(name), in_a_cluster.database)["patients"].released == found.released


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, demo: Path) -> Iterator[SparkSession]:
    spark.sql("CREATE SCHEMA mimiciii")
    for name, rows in tables(demo):
        load(spark, f"mimiciii.{name}", rows)
    yield spark
    spark.sql("DROP SCHEMA mimiciii CASCADE")


@pytest.mark.xdist_group("spark")
def test_on_spark(on_spark: SparkSession, demo: Path) -> None:
    """From an open session, and again by Connect: that release takes its place.

    One job of the four, for time: the others differ in hierarchies and in the search, which run beside Spark.
    """
    name = "ola"
    for database in (on_spark, f"sc://127.0.0.1:{on_spark.conf.get(PORT)}"):
        found = anonymize(study(name), database, options=Options(replace=True, without_ledger=True)).releases[
            "patients"
        ]
        on_spark.sql(f"REFRESH TABLE {name}.patients")  # the other session replaced it
        rows = on_spark.sql(f"SELECT * FROM {name}.patients").toArrow()
        assert_same(name, found, list(zip(*(c.to_pylist() for c in rows.columns), strict=True)), demo)
