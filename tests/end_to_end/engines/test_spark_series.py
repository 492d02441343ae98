"""Series on Spark: the release of DuckDB, value by value, from an open session and from a Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from sqldeid import Options, anonymize, plan, verify
from sqldeid.errors import VerificationError
from sqldeid.series import release, shape, transfer
from tests.support.benchmark_series import demo, seeded
from tests.support.foreign import bag
from tests.support.foreign_series import CHOICES, WHO, charted, periodic, stays, told, wanted
from tests.support.foreign_tables import told as told_of_table
from tests.support.linked_foreign import LINKED
from tests.support.linked_foreign import job as followed
from tests.support.linked_foreign import tables as linked_tables
from tests.support.on_spark import Both, named, on_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def both(spark: SparkSession, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Series made up and the MIMIC demo's; clock times are of a time zone on Spark, as its tables have them."""
    linked = {f"linked_{name}": rows for name, rows in linked_tables().items()}
    tables = {
        "charted": charted(),
        "periodic": periodic(),
        "stays": stays(),
        **linked,
        **demo(shared_data / "mimic3demo"),
    }
    with on_both(spark, tmp_path_factory.mktemp("series"), tables) as there:
        there.run(
            "CREATE TABLE zoned AS SELECT * EXCEPT (at), CAST(at AS TIMESTAMP_LTZ) AS at FROM charted",
            "DROP TABLE charted",
            "ALTER TABLE zoned RENAME TO charted",
        )
        yield there


WHO_QUOTED = f"`{WHO}`"
HERE = ("wide, clock, cohort", "projection, labels, where", "own features, query", "a column for each variable")


@pytest.mark.deep
@pytest.mark.parametrize("choice", HERE)
def test_a_release_is_that_of_duckdb(both: Both, choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "AT_ONCE", 400)  # several portions each way
    schema = named(choice)
    job = wanted(schema, **CHOICES[choice])  # type: ignore[arg-type]
    there, here = (anonymize(job, d).releases["vitals"] for d in (both.spark, both.file))
    assert here.released > 10
    assert bag(both.there(f"{schema}.vitals")) == bag(both.here(f"{schema}.vitals"))
    assert repr(told(there)) == repr(told(here))
    assert there.tau == pytest.approx(here.tau, abs=1e-9)
    assert [p.to_dict() for p in plan(job, both.spark)] == [p.to_dict() for p in plan(job, both.file)]


def test_rows_that_come_meanwhile_are_of_nobody_in_the_release(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark makes again what it kept of a table that another session writes to: nobody is numbered anew by that."""
    both.spark.sql("CREATE TABLE moving AS SELECT * FROM charted")
    with duckdb.connect(str(both.file)) as c:
        c.execute("CREATE VIEW moving AS FROM charted")
    more = f"SELECT '0' || {WHO_QUOTED}, minute / 4, item, value, at FROM charted WHERE {WHO_QUOTED} LIKE '%7'"

    def between(*parts: object) -> None:
        both.spark.newSession().sql(f"INSERT INTO moving ({WHO_QUOTED}, minute, item, value, at) {more}")

    job = wanted("moving", source="moving")
    here = anonymize(job, both.file).releases["vitals"]
    with monkeypatch.context() as patched:
        patched.setattr(shape, "read_outcomes", between)  # after lengths were measured, before series are cut to them
        there = anonymize(job, both.spark).releases["vitals"]
    assert repr(told(there)) == repr(told(here))
    assert bag(both.there("moving.vitals")) == bag(both.here("moving.vitals"))
    both.spark.sql("DROP TABLE moving")


def test_the_mimic_demo_is_the_same_on_duckdb_spark_and_connect(both: Both) -> None:
    """The mortality benchmark's stays and their 17 variables."""
    job = seeded()
    here = anonymize(job, both.file).releases["vitals"]
    assert here.persons == 57 and here.released > 40
    rows, checked = bag(both.here("preset.vitals")), verify(job, both.file)["vitals"].to_dict()
    for database in (both.spark, both.url):
        there = anonymize(job, database, options=Options(replace=True, without_ledger=True)).releases["vitals"]
        assert repr(told(there)) == repr(told(here))
        assert bag(both.there("preset.vitals")) == rows
    assert verify(job, both.url)["vitals"].to_dict() == checked


def test_series_that_follow_a_table_are_those_of_duckdb(both: Both) -> None:
    """With a criterion on the join, from a Connect server."""
    table, series = LINKED[1]
    job = followed("linked", {**table, "source": "linked_stays"}, {**series, "source": "linked_charted"})
    there, here = (anonymize(job, database).releases for database in (both.url, both.file))
    assert here["vitals"].released > 20
    for name in ("people", "vitals"):
        assert bag(both.there(f"linked.{name}")) == bag(both.here(f"linked.{name}"))
    assert told_of_table(there["people"]) == told_of_table(here["people"])
    assert repr(told(there["vitals"])) == repr(told(here["vitals"]))
    checked = [verify(job, database) for database in (both.url, both.file)]
    assert checked[0]["people"] == checked[1]["people"]
    assert checked[0]["vitals"].to_dict() == checked[1]["vitals"].to_dict()


def test_series_come_out_once_and_go_back_once(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside them figures of persons and of classes alone; a portion that is lost on its way back is seen."""
    before = both.catalogue()
    with monkeypatch.context() as patched, pytest.raises(VerificationError, match="series are not of the length"):
        rows_of = release.rows_of
        patched.setattr(release, "rows_of", lambda *parts: rows_of(*parts).slice(1))
        anonymize(wanted("counted"), both.spark)
    assert both.catalogue() == before
    found = anonymize(wanted("counted"), both.spark).releases["vitals"]
    written, series = len(both.there("counted.vitals")), found.released * len(found.variables)
    assert 2 * written < found.moved["rows"] < 2 * written + 8 * series + 100
    both.spark.sql("CREATE TABLE changed AS SELECT * FROM counted.vitals")
    both.spark.sql(
        "INSERT OVERWRITE counted.vitals SELECT person_number, step, variable, "
        "value + CASE WHEN person_number = 1 THEN 1 ELSE 0 END FROM changed"
    )
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(wanted("counted"), both.spark)
    both.spark.sql("DROP TABLE changed")
