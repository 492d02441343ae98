"""On Postgres and Spark, too, a release is not replaced, nor given a companion, where its source has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.sql import column, identifier, render, table_name
from tests.support.changing import MONDRIAN, SERIES, TABLE
from tests.support.foreign import in_duckdb, in_postgres
from tests.support.on_spark import Both, load, named
from tests.support.spark_tables import both

__all__ = ["both"]

REPLACE = sqldeid.Options(replace=True)
SURE = sqldeid.Options(replace=True, without_ledger=True)
EVENTS = {
    "attacks": False,
    "object": "id",
    "time": "at",
    "state": ["ward"],
    "privacy": {"method": "ratio", "epsilon": 5.0},
}


def parts(people: str, charted: str) -> dict[str, Any]:
    """All kinds of release that are compared, of two tables."""
    return {
        "tables": {"r": {"source": people, **TABLE}, "m": {"source": people, **MONDRIAN}},
        "series": {"s": {"source": charted, **SERIES}},
        "events": {"e": {"source": people, **EVENTS}},
    }


def people(number: int, *, moved: bool = False) -> pa.Table:
    every = range(1, number + 1)
    wards = ["c" if moved and i == 3 else "ab"[i % 2] for i in every]
    table = {
        "id": pa.array(every, pa.int64()),
        "age": pa.array([20 + i % 3 for i in every], pa.int32()),
        "ward": wards,
        "at": pa.array([1_000_000_000_000_000 + i * 1_000_000 for i in every], pa.timestamp("us")),
    }
    return pa.table(table)


def charted(number: int) -> pa.Table:
    rows = [(i, h, "HR", 60 + i * 1.7 + (i * 7 + h * 3) % 5) for i in range(1, number + 1) for h in range(6)]
    ids, hours, items, values = zip(*rows, strict=True)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "hour": pa.array(hours, pa.int32()), "item": items, "value": values}
    )


@dataclass
class Engine:
    """A database of another engine, its tables, and where releases go in it."""

    database: Any
    load: Any
    schema: str

    def job(self, folder: Path, only: str, into: str = "") -> sqldeid.Job:
        everything = parts(*self.names)
        section = next(s for s, releases in everything.items() if only in releases)
        place = {"into": str(folder / into)} if into else {"schema": self.schema}
        return sqldeid.Job.parse({"release": place, section: {only: everything[section][only]}})

    @property
    def names(self) -> tuple[str, str]:
        return "changing_people", "changing_charted"

    def fill(self, number: int, *, moved: bool = False) -> None:
        self.load(self.names[0], people(number, moved=moved))
        self.load(self.names[1], charted(number))


@pytest.fixture
def postgres_engine(postgres_cluster: str) -> Iterator[Engine]:
    with in_postgres(postgres_cluster) as server:

        def fill(name: str, rows: pa.Table) -> None:
            with server.connect() as c:
                c.execute(f"DROP TABLE IF EXISTS {name}")
            server.load(name, rows)

        yield Engine(server.database, fill, "release")


@pytest.fixture
def spark_engine(both: Both, request: pytest.FixtureRequest) -> Engine:
    def fill(name: str, rows: pa.Table) -> None:
        both.spark.sql(f"DROP TABLE IF EXISTS {name}")
        load(both.spark, name, rows)

    return Engine(both.spark, fill, named(request.node.name))


def hold(engine: Engine, folder: Path, name: str, into: str) -> None:
    """A release is replaced while nothing changes, and not once a value, or the persons, have changed."""
    engine.fill(8)
    asked = engine.job(folder, name, into)
    sqldeid.anonymize(asked, engine.database)
    sqldeid.anonymize(asked, engine.database, options=REPLACE)
    for change in ({"number": 9}, {"number": 9, "moved": True}):
        engine.fill(**change)
        if name == "s" and "moved" in change:
            continue  # nobody is moved in the table that series are of
        with pytest.raises(JobError, match=r"has changed since.*--without-ledger") as refused:
            sqldeid.anonymize(asked, engine.database, options=REPLACE)
        assert refused.value.key == "--without-ledger"
        sqldeid.anonymize(asked, engine.database, options=SURE)
    sqldeid.verify(asked, engine.database)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("into", ["", "out.duckdb"])
@pytest.mark.parametrize("name", ["r", "m", "s", "e"])
def test_only_an_unchanged_source_is_released_again(
    postgres_engine: Engine, tmp_path: Path, name: str, into: str
) -> None:
    hold(postgres_engine, tmp_path, name, into)


@pytest.mark.parametrize(("name", "into"), [("r", ""), ("r", "out.duckdb"), ("m", ""), ("s", ""), ("e", "")])
@pytest.mark.xdist_group("spark")
def test_on_spark_too(spark_engine: Engine, tmp_path: Path, name: str, into: str) -> None:
    hold(spark_engine, tmp_path, name, into)


@pytest.mark.xdist_group("spark")
def test_nulls_within_values_count_on_spark(both: Both) -> None:
    """Its hash passes over them: two lists whose NULL moved would be one."""
    spark, wanted = both.spark, {**TABLE, "source": "nested"}
    wanted["columns"] = {**TABLE["columns"], "tags": {"role": "insensitive"}}
    asked = sqldeid.Job.parse({"release": {"schema": "of_nested"}, "tables": {"n": wanted}})
    made = (
        "CREATE TABLE nested AS SELECT id, CAST(20 + id % 3 AS INT) AS age, 'a' AS ward, "
        "ARRAY({}, {}) AS tags FROM RANGE(1, 9)"
    )
    for first, second in (("'a'", "NULL"), ("NULL", "'a'")):
        spark.sql("DROP TABLE IF EXISTS nested")
        spark.sql(made.format(f"CAST({first} AS STRING)", f"CAST({second} AS STRING)"))
        if first == "'a'":
            sqldeid.anonymize(asked, spark)
            sqldeid.anonymize(asked, spark, options=REPLACE)
    with pytest.raises(JobError, match="has changed since"):
        sqldeid.anonymize(asked, spark, options=REPLACE)
    spark.sql("DROP TABLE nested")


def test_what_a_session_sets_is_no_change(postgres_engine: Engine, tmp_path: Path) -> None:
    """Zone, styles of dates and digits of floats change spellings; a row in another order changes nothing."""
    postgres_engine.fill(8)
    asked = postgres_engine.job(tmp_path, "e")
    sqldeid.anonymize(asked, postgres_engine.database)
    url = postgres_engine.database
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGTZ", "Asia/Tokyo")
        patch.setenv("PGDATESTYLE", "German")
        patch.setenv("PGOPTIONS", "-c extra_float_digits=-10 -c intervalstyle=sql_standard")
        postgres_engine.load(postgres_engine.names[0], people(8).take(list(reversed(range(8)))))
        sqldeid.anonymize(asked, url, options=REPLACE)


def test_a_column_that_is_spelt_otherwise_is_the_same(tmp_path: Path) -> None:
    """DuckDB does not tell ward from WARD: a change of its values is seen, the spelling alone is none."""
    path = in_duckdb(tmp_path / "source.duckdb", {"people": people(8)})
    asked = sqldeid.Job.parse(
        {"release": {"into": str(tmp_path / "out.duckdb")}, "tables": {"r": {"source": "people", **TABLE}}}
    )
    sqldeid.anonymize(asked, path)
    with duckdb.connect(str(path)) as c:
        c.execute("ALTER TABLE people RENAME ward TO other")
        c.execute('ALTER TABLE people RENAME other TO "WARD"')
    sqldeid.anonymize(asked, path, options=REPLACE)
    with duckdb.connect(str(path)) as c:
        c.execute("UPDATE people SET ward = 'c' WHERE id = 3")
        c.execute("ALTER TABLE people RENAME ward TO other")
        c.execute("ALTER TABLE people RENAME other TO Ward")
    with pytest.raises(JobError, match="has changed since"):
        sqldeid.anonymize(asked, path, options=REPLACE)


@pytest.mark.xdist_group("spark")
def test_sums_of_hashes_are_exact_on_spark(both: Both) -> None:
    """They are put together from parts of hashes; the marks of earlier versions hold the sums of whole ones."""
    load(both.spark, "summed", people(500))
    columns = [{"name": identifier(n), "column": column(c)} for n, c in (("c0", "age"), ("c1", "ward"))]
    asked = render("run/sum_columns", "spark", source=table_name("summed"), person=column("id"), columns=columns)
    found = both.spark.sql(asked).toArrow().to_pylist()[0]
    key, age, ward = "s.id", "s.age, s.age IS NULL", "s.ward, s.ward IS NULL"
    hashed = {"persons": key, "whole": f"{key}, {age}, {ward}", "c0": f"{key}, {age}", "c1": f"{key}, {ward}"}
    read = both.spark.sql(f"SELECT {', '.join(f'XXHASH64({t}) AS {n}' for n, t in hashed.items())} FROM summed AS s")
    rows = read.toArrow().to_pydict()
    assert {n: found[n] for n in hashed} == {n: str(sum(rows[n])) for n in hashed}
    assert min(map(min, rows.values())) < 0 < max(map(max, rows.values()))
