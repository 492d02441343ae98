"""Tables on Spark beyond plain releases: child tables stacked, columns explored, what goes with a release, samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from sqldeid import (
    JobError,
    anonymize,
    explore,
    explore_job,
    explore_sequences,
    plan,
    verify,
)
from sqldeid.engine.spark_types import uncommented
from sqldeid.job import Job
from sqldeid.run import explain
from sqldeid.sql import column, identifier, render, table_name
from tests.support.foreign import bag, hold_listed, running
from tests.support.foreign_tables import (
    AGE,
    FIRST,
    ORDERED,
    RELEASES,
    SEX,
    STACK,
    SUMMED,
    WARD,
    asked,
    children,
    hold_beside,
    people,
    sampled,
    told,
)
from tests.support.on_spark import Both, on_both
from tests.support.sources import job, qi
from tests.templates import cases_stack
from tests.templates.cases_stack import CHILD, CHILD_SETUP, KEYS, PICKED, PICKED_SETUP, THROUGH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with on_both(spark, tmp_path_factory.mktemp("tables"), {"people": people(), **children()}) as there:
        yield there


# ---- stacks ----------------------------------------------------------------------------------------------------------

SHOWN = {name: value for name, value in STACK.items() if name != "hierarchy"} | {"role": "insensitive"}
MEASURED = {**SUMMED, "role": "insensitive"}
BY_SEQ = {"order": "seq", "then": "code"}
STACKS = {
    "first": {**STACK, **ORDERED, "first": 2},
    "of_longest": {**SHOWN, **FIRST, **BY_SEQ, "pick": "longest", "pick_order": "stay", "items": [1, 3]},
    "mean": {**MEASURED, "aggregate": "mean", "value": "seq"},
}
"""What single rows hold is released as it stands, so that each value is compared; other orders are in `TWINS`."""


def test_stacked_rows_are_those_of_duckdb(both: Both) -> None:
    """And made once more by verification: from there, too, on either engine."""
    wanted = job({"schema": "stacked"}, r=asked({SEX: qi()}, k=3, stack=STACKS))
    [planned] = plan(wanted, both.url)
    with running() as ran:
        there = anonymize(wanted, both.spark).releases["r"]
    hold_listed(explain(planned, wanted, both.url).statements or (), ran)
    here = anonymize(wanted, both.file).releases["r"]
    assert told(there) == told(here)
    rows = both.there("stacked.r")
    assert bag(rows) == bag(both.here("stacked.r"))
    values = [{row[i] for row in rows} for i in range(len(rows[0]))]
    assert all(len(different) > 1 for different in values[1:]), "a column of one value says nothing"
    assert told(verify(wanted, both.url)["r"]) == told(verify(wanted, both.file)["r"])


OPEN = {
    "child": {**STACK, "through": "stays", "through_on": "stay", "order": "came", "first": 2},
    "between": {**STACK, "through": "stays", "through_on": "stay", "pick": "first", "pick_order": "id", **BY_SEQ},
}


@pytest.mark.parametrize("which", OPEN)
def test_an_order_that_leaves_rows_open_is_refused_alike(which: str, both: Both) -> None:
    wanted = job({"schema": "open"}, r=asked({SEX: qi()}, k=3, stack={"c": {"first": 2, **OPEN[which]}}))
    said = []
    for database in (both.spark, both.file):
        with pytest.raises(JobError, match="leaves open which row") as error:
            anonymize(wanted, database)
        said.append(str(error.value))
    assert said[0] == said[1]


def _names(letter: str, *columns: str) -> list[dict[str, object]]:
    return [
        {"name": identifier(f"{letter}{i}"), "there": identifier(f"n{i}"), "column": column(*c.split(".")[::-1])}
        for i, c in enumerate(columns)
    ]


def _stacking(**other: object) -> dict[str, object]:
    places = other.pop("places", [1, 3])
    asked = {"stacked": table_name("made"), "relation": CHILD, "keys": KEYS, "picked": None, "joins": []}
    asked |= {"order": _names("o", "c.select"), "value": column(cases_stack.CODE, "c"), "last": False, "most": 4}
    asked |= {"places": places, "telling": [{"first": 1, "second": 2}, {"first": 2, "second": 3}], "unordered": False}
    asked["values"] = [{"name": identifier(f"v{i}"), "place": place} for i, place in enumerate(places)]  # type: ignore
    return asked | other


def _picking(**other: object) -> dict[str, object]:
    asked = {"picked": table_name("made"), "relation": cases_stack.BETWEEN, "keys": cases_stack.BETWEEN_KEYS}
    asked |= {"joins": _names("j", "t.hadm"), "extra": _names("x", "t.at"), "order": _names("o", "t.at")}
    return asked | {"pick": True, "last": False} | other


TWINS = {
    "in order": ("tables/rows/stack_rows", _stacking()),
    "from the last": ("tables/rows/stack_rows", _stacking(last=True)),
    "as a set": ("tables/rows/stack_rows", _stacking(unordered=True, places=[1, 2])),
    "all equal in order": ("tables/rows/stack_rows", _stacking(order=_names("o", "c.id"))),
    "through": ("tables/rows/stack_rows", _stacking(**THROUGH)),
    "first": ("tables/rows/pick_rows", _picking()),
    "last": ("tables/rows/pick_rows", _picking(last=True)),
    "any": ("tables/rows/pick_rows", _picking(order=_names("o", "t.id"), extra=[])),
    "all": ("tables/rows/pick_rows", _picking(pick=False, order=[])),
}


@pytest.fixture(scope="module")
def twins(spark: SparkSession) -> Iterator[tuple[SparkSession, duckdb.DuckDBPyConnection]]:
    """Hostile rows on both: NULL keys, orders and values, ties, people of one row."""
    session = spark.newSession()
    with closing(duckdb.connect()) as connection:
        for statement in (*CHILD_SETUP, *cases_stack.BETWEEN_SETUP, *PICKED_SETUP):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO \"chi ld\" VALUES (5, 50, 1, 'a', 1), (5, 50, 1, 'a', 1), (5, 50, NULL, 'c', 2)"
        )
        connection.execute('INSERT INTO "be tween" VALUES (5, 50, 2), (5, 50, 2), (5, 51, NULL), (6, 60, 1)')
        for table in (CHILD, cases_stack.BETWEEN, PICKED):
            rows = connection.table(table.sql("duckdb")).to_arrow_table()
            session.createDataFrame(rows).createOrReplaceTempView(table.sql("spark"))
        yield session, connection


@pytest.mark.parametrize("name", TWINS)
def test_a_statement_of_sparks_own_gives_duckdbs_rows(
    name: str, twins: tuple[SparkSession, duckdb.DuckDBPyConnection]
) -> None:
    session, connection = twins
    template, parameters = TWINS[name]
    connection.execute(render(template, **parameters))
    session.sql(render(template, "spark", **parameters))
    here = connection.execute("SELECT * FROM made").fetchall()
    there = [tuple(row.values()) for row in session.sql("SELECT * FROM made").toArrow().to_pylist()]
    connection.execute("DROP TABLE made")
    session.sql("DROP VIEW made")
    assert bag(there) == bag(here)
    assert len(here) >= 3


# ---- looks -----------------------------------------------------------------------------------------------------------


def test_what_is_looked_at_is_the_same(both: Both) -> None:
    for person in (None, "id"):
        found = [
            explore(d, "people", columns=[SEX, AGE, WARD], person=person, max_size=2) for d in (both.url, both.file)
        ]
        there, here = ((f.persons, f.columns, f.sets, f.smallest) for f in found)
        assert there == here
    wanted = job({}, r=RELEASES["stack first of all"])
    assert explore_job(wanted, both.spark).sets == explore_job(wanted, both.file).sets
    known: dict[str, Any] = {
        "per": ["id"],
        "value": "code",
        "order": ["stay", "seq"],
        "places": [[1], [1, 2]],
        "unordered": [[1, 2]],
    }
    assert told(explore_sequences(both.spark, "codes", **known)) == told(explore_sequences(both.file, "codes", **known))


def test_what_goes_with_a_release_is_the_same(both: Both) -> None:
    """The certificate, checked on the other engine, too; other k and limits; what a report tells of column sets."""
    hold_beside(job({"schema": "proven"}, r=RELEASES["m"]), both.spark, both.file)


def test_a_seeded_sample_is_the_same(both: Both, tmp_path: Path) -> None:
    """Only with a seed can two draws be compared; the sample goes back to Spark, to be written there."""
    wanted = sampled(tmp_path, schema="seeded")
    there, here = (anonymize(wanted, d).releases["r"] for d in (both.url, both.file))
    assert told(there) == told(here)
    assert there.released
    assert bag(both.there("seeded.r")) == bag(both.here("seeded.r"))
    assert told(verify(wanted, both.spark)["r"]) == told(verify(wanted, both.file)["r"])


def test_comments_of_the_source_are_in_no_release(both: Both, tmp_path: Path) -> None:
    """Spark gives what is made of a column the column's comment: it stood in the release's files of Parquet."""
    spark = both.spark
    spark.sql("CREATE TABLE noted (id BIGINT, age INT, ward STRING COMMENT 'ask Miller', sex STRING COMMENT 'Miller')")
    spark.sql(
        "INSERT INTO noted SELECT id, CAST(20 + id % 30 AS INT), CONCAT('w', id % 4), IF(id % 2 = 0, 'f', 'm') "
        "FROM RANGE(200)"
    )
    columns = {"age": qi({"bands": [5, 10]}), "sex": qi(), "ward": {"role": "insensitive"}}
    for method in ("frontier", "local"):
        part = {"source": "noted", "person": "id", "attacks": False, "columns": columns, "privacy": {"k": 3}}
        part["search"] = {"method": method}
        asked = Job.parse({"release": {"schema": f"of_noted_{method}"}, "tables": {"n": part}})
        anonymize(asked, spark)
        listed = spark.sql(f"SHOW TABLES IN of_noted_{method}").collect()  # temporary views of other tests, too
        for table in [row.tableName for row in listed if not row.isTemporary]:
            described = spark.sql(f"DESCRIBE EXTENDED of_noted_{method}.{table}").collect()
            assert not any("Miller" in str(row) for row in described)
            (place,) = (row.data_type for row in described if row.col_name == "Location")
            files = list(Path(place.removeprefix("file:")).glob("*.parquet"))
            assert files and not any(b"Miller" in file.read_bytes() for file in files)
        assert verify(asked, spark)["n"].k >= 3
    spark.sql("DROP TABLE noted")


def test_comments_of_fields_within_a_column_are_in_no_release(both: Both) -> None:
    """A field of a STRUCT has a comment of its own, which goes along with its type."""
    spark = both.spark
    field = "STRUCT<`a, b`: INT COMMENT 'ask Miller', c: STRING NOT NULL COMMENT 'Miller'>"
    spark.sql(f"CREATE TABLE with_fields (id BIGINT, age INT, s {field}, l ARRAY<{field}>)")
    value = "NAMED_STRUCT('a, b', CAST(id % 3 AS INT), 'c', 'x')"
    spark.sql(f"INSERT INTO with_fields SELECT id, CAST(20 + id % 30 AS INT), {value}, ARRAY({value}) FROM RANGE(200)")
    columns = {"age": qi({"bands": [5, 10]}), **{name: {"role": "insensitive"} for name in "sl"}}
    part = {"source": "with_fields", "person": "id", "attacks": False, "columns": columns, "privacy": {"k": 3}}
    asked = Job.parse({"release": {"schema": "of_fields"}, "tables": {"n": part}})
    anonymize(asked, spark)
    described = spark.sql("DESCRIBE EXTENDED of_fields.n").collect()
    (place,) = (row.data_type for row in described if row.col_name == "Location")
    files = list(Path(place.removeprefix("file:")).glob("*.parquet"))
    assert files and not any(b"Miller" in file.read_bytes() for file in files)
    assert spark.sql("SELECT DISTINCT s.`a, b`, l[0].c FROM of_fields.n ORDER BY 1").collect() == [
        (i, "x") for i in range(3)
    ]
    assert verify(asked, spark)["n"].k >= 3
    mapped = spark.sql("SELECT MAP('x', s) AS m FROM with_fields").schema["m"].dataType
    assert "Miller" in mapped.json() and "Miller" not in uncommented(mapped).json()
    spark.sql("DROP TABLE with_fields")
