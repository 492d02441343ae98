"""Tables on Spark: the release of DuckDB, from an open session and from a Connect server; all of it or nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from sqldeid import EngineError, JobError, Listener, Options, VerificationError, anonymize, assess, plan, verify
from sqldeid.engine.opening import Settings
from sqldeid.publish import Destination
from sqldeid.run.foreign import open_engine, open_staging
from sqldeid.sql import identifier, render
from sqldeid.sql.dialects import transpile
from tests.support.foreign import bag
from tests.support.foreign_tables import RELEASES, people, told
from tests.support.on_spark import Both, load, named
from tests.support.places import ROOT
from tests.support.real_data import ADULT
from tests.support.sources import job, qi, release
from tests.support.spark_tables import both

if TYPE_CHECKING:
    pass

__all__ = ["both"]


pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.deep
@pytest.mark.parametrize(
    "name",
    [
        *("blank", "types", "only quasi-identifiers", "query", "dates and means", "l entropy, blank", "t", "m"),
        *("times cut", "cut, every value", "many rows, l", "delta", "beta", "k-map, the rest", "delta-presence"),
        "average, at risk, l",
        "aggregated",
    ],
)
def test_a_release_is_the_same_on_spark(name: str, both: Both) -> None:
    schema = named(name)
    wanted = job({"schema": schema}, r=RELEASES[name])
    there, here = anonymize(wanted, both.spark), anonymize(wanted, both.file)
    assert told(there.releases["r"]) == told(here.releases["r"])
    assert there.releases["r"].released, "an empty release says nothing"
    assert bag(both.there(f"{schema}.r")) == bag(both.here(f"{schema}.r"))


@pytest.mark.deep
def test_a_sample_holds_the_same_persons_on_spark(both: Both, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("".join(f"{i * 7 % 256:02x}" for i in range(32)))
    key.chmod(0o600)
    wanted, options = job({"schema": "sampled"}, r=RELEASES["k"] | {"sample": 0.4}), Options(key_file=key)
    there = anonymize(wanted, both.spark, options=options).releases["r"]
    here = anonymize(wanted, both.file, options=options).releases["r"]
    assert 60 < there.rows < 180
    assert told(there) == told(here)
    assert bag(both.there("sampled.r")) == bag(both.here("sampled.r"))
    assert told(verify(wanted, both.spark, options=options)) == told(verify(wanted, both.file, options=options))


@pytest.mark.deep
@pytest.mark.always
def test_a_connect_server_gives_the_same_and_nothing_else_is_left(both: Both) -> None:
    wanted = job({"schema": "connected", "as": "view"}, r=RELEASES["k"])
    before = both.catalogue()
    [planned] = plan(wanted, both.url)
    assert planned.name == "r" and both.catalogue() == before
    there, here = anonymize(wanted, both.url), anonymize(wanted, both.file)
    assert told(there.releases["r"]) == told(here.releases["r"])
    assert there.to_dict()["source"] == {"database": both.url, "engine": "spark"}
    assert bag(both.there("connected.r")) == bag(both.here("connected.r"))
    assert (
        told(verify(wanted, both.url)["r"])
        == told(verify(wanted, both.spark)["r"])
        == told(verify(wanted, both.file)["r"])
    )
    for released in (False, True):
        assert told(assess(wanted, both.url, release=released)) == told(assess(wanted, both.file, release=released))
    made = {entry[1] for entry in both.catalogue() - before if entry[0] == "connected"}
    assert len(made) == 3 and {"", "r"} < made and all(re.fullmatch(r"(r(__[0-9a-f]{8})?)?", name) for name in made)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_comment_that_no_run_wrote_is_told(kind: str, both: Both) -> None:
    wanted = job({"schema": f"commented_{kind}", "as": kind}, r=RELEASES["k"])
    anonymize(wanted, both.spark)
    assert verify(wanted, both.spark)["r"].released
    names = [entry[1] for entry in both.catalogue() if entry[0] == f"commented_{kind}" and entry[1]]
    read = next(name for name in names if (name == "r") == (kind == "table"))  # a view's comments are in its text
    shown = both.spark.table(f"commented_{kind}.r").columns[-1]
    both.run(f"ALTER TABLE commented_{kind}.{read} ALTER COLUMN `{shown}` COMMENT 'ask Miller'")
    with pytest.raises(VerificationError, match=f"of commented_{kind}.{read} has a comment that no run wrote"):
        verify(wanted, both.spark)


def test_a_default_that_no_run_wrote_is_told(both: Both) -> None:
    wanted = job({"schema": "defaulted"}, r=RELEASES["k"])
    anonymize(wanted, both.spark)
    shown = both.spark.table("defaulted.r").columns[-1]
    both.run(f"ALTER TABLE defaulted.r ALTER COLUMN `{shown}` SET DEFAULT NULL")
    with pytest.raises(VerificationError, match="has a default that no run wrote"):
        verify(wanted, both.spark)


def test_releases_are_compared_as_in_duckdb(both: Both) -> None:
    """Rows of two unlinked releases that match few of the other, by what both show; and again by verify."""
    wanted = job({"schema": "compared"}, r=RELEASES["types"], again=RELEASES["types"])
    there, here = (anonymize(wanted, database).joinable for database in (both.spark, both.file))
    assert [dict(pair) for pair in there] == [dict(pair) for pair in here]
    assert any(there[0]["below"])
    assert [pair.to_dict() for pair in verify(wanted, both.spark).joinable] == [dict(pair) for pair in there]


def test_cohorts_are_compared_as_in_duckdb(both: Both) -> None:
    """One person more is refused; disjoint cohorts, and the same persons at other levels, are not."""
    asked = {name: value for name, value in RELEASES["k"].items() if name != "where"}
    fewer, rest = ({**asked, "where": f"id {than} (SELECT max(id) FROM people)"} for than in ("<", "<="))
    for database in (both.spark, both.file):
        with pytest.raises(JobError, match=r"tables\.s: beside tables\.r, .* can subtract"):
            anonymize(job({"schema": "cohorts"}, r=fewer, s=rest), database)
    halves = ({**asked, "where": f"id % 2 = {half}"} for half in (0, 1))
    assert anonymize(job({"schema": "halves"}, **dict(zip("rs", halves, strict=True))), both.spark).releases


def test_a_table_that_rows_were_added_to_goes_as_a_whole(both: Both) -> None:
    """And is not dropped again at the end."""
    with ExitStack() as stack:
        engine = open_engine(both.spark, Settings(), stack)
        engine.begin()
        before, table = both.catalogue(), engine.workbench("t")
        name = table.sql("spark")
        engine.execute(f"CREATE TEMPORARY VIEW {name} AS SELECT 1 AS a")
        for row in (2, 3):
            engine.execute(f"INSERT INTO {name} SELECT {row} AS a")
        assert sorted(engine.query(f"SELECT a FROM {name}").column("a").to_pylist()) == [1, 2, 3]
        engine.drop(table)
        assert both.catalogue() == before and not engine._temporary


def test_only_classes_go_over_the_wire(both: Both) -> None:
    found = anonymize(job({"schema": "moved"}, r=RELEASES["only quasi-identifiers"]), both.spark)
    assert 0 < found.releases["r"].moved["rows"] < 300


@pytest.mark.parametrize("as_", ["view", "table"])
def test_what_was_there_comes_back_where_a_later_step_fails(as_: str, both: Both) -> None:
    """The second release's staged table is dropped by somebody else just before it would appear."""
    schema, columns = f"back_{as_}", {"select": qi({"bands": [5, 10]})}
    first = job({"schema": schema, "as": as_}, a=release(columns, source="people", k=2, limit=0.5), b=RELEASES["k"])
    anonymize(first, both.spark)
    before, was = both.catalogue(), {name: bag(both.there(f"{schema}.{name}")) for name in "ab"}
    second = job({"schema": schema, "as": as_}, a=release(columns, source="people", k=60, limit=0.5), b=RELEASES["k"])

    def step(name: str, what: str) -> None:
        if what == "publishing":
            for row in both.spark.sql(f"SHOW TABLES IN {schema} LIKE 'b__*'").toArrow().to_pylist():
                if (schema, row["tableName"]) not in before:
                    both.spark.sql(f"DROP TABLE {schema}.{row['tableName']}")

    with pytest.raises((EngineError, JobError)):
        anonymize(second, both.spark, options=Options(replace=True, without_ledger=True), listener=Listener(step=step))
    assert both.catalogue() == before
    assert {name: bag(both.there(f"{schema}.{name}")) for name in "ab"} == was
    anonymize(second, both.spark, options=Options(replace=True, without_ledger=True))
    assert bag(both.there(f"{schema}.a")) != was["a"]
    assert len({entry for entry in both.catalogue() if entry[0] == schema}) == len(
        {entry for entry in before if entry[0] == schema}
    )
    assert {name: found.rows for name, found in verify(second, both.spark).items()} == {"a": 300, "b": 300}


KILLED = """
import os, sys
from sqldeid import Job, Options, anonymize
from sqldeid.publish.spark import OnSpark
flip = OnSpark._flip
def dies(self, made, back):
    if back:
        os.kill(os.getpid(), 9)
    flip(self, made, back)
OnSpark._flip = dies
anonymize(Job.load(sys.argv[1]), sys.argv[2], options=Options(replace=True, without_ledger=True))
"""
JOB = """
[release]
schema = "killed"
as = "view"
[tables.a]
source = "people"
rows_are_persons = true
columns.select = { role = "quasi-identifying", hierarchy = { bands = [5, 10] } }
privacy = { k = %d, suppression_limit = 0.5 }
[tables.b]
source = "visits"
rows_are_persons = true
columns.n = { role = "quasi-identifying", hierarchy = { suppress = true } }
privacy = { k = %d, suppression_limit = 0.5 }
"""


def test_a_run_killed_between_two_flips_leaves_every_view_readable(both: Both, tmp_path: Path) -> None:
    """The next run clears what the killed one left."""
    file = tmp_path / "job.toml"
    file.write_text(JOB % (2, 2))
    wanted = sys.modules["sqldeid"].Job.load(file)
    anonymize(wanted, both.spark)
    before = both.catalogue()
    file.write_text(JOB % (40, 2))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(file), both.url],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    left = both.catalogue() - before
    assert len({entry for entry in left if entry[0] == "killed"}) == 2
    assert both.there("killed.a") and len(both.there("killed.b")) == 300
    wanted = sys.modules["sqldeid"].Job.load(file)
    anonymize(wanted, both.spark, options=Options(replace=True, without_ledger=True))
    assert len(both.catalogue()) == len(before)
    assert verify(wanted, both.spark)["a"].k >= 40


@pytest.mark.deep
@pytest.mark.always
@pytest.mark.parametrize("what", ["folding the source", "verifying what was written", "publishing"])
def test_nothing_is_left_of_a_run_that_fails(what: str, both: Both) -> None:
    before = both.catalogue()

    def step(name: str, begins: str) -> None:
        if begins == what:
            raise KeyboardInterrupt

    settings = {
        name: both.spark.conf.get(name) for name in ("spark.sql.timestampType", "spark.sql.variable.substitute")
    }
    with pytest.raises(BaseException, match="interrupted"):
        anonymize(job({"schema": "failed"}, r=RELEASES["k"]), both.spark, listener=Listener(step=step))
    assert both.catalogue() == before
    assert {name: both.spark.conf.get(name) for name in settings} == settings


def test_a_table_dropped_midway_is_told_without_its_values(both: Both) -> None:
    load(both.spark, "going", people())
    wanted = job({"schema": "gone"}, r={**RELEASES["k"], "source": "going"})
    before = both.catalogue()

    def step(name: str, begins: str) -> None:
        if begins == "writing the release":
            both.spark.sql("DROP TABLE going")

    with pytest.raises((EngineError, JobError)) as error:
        anonymize(wanted, both.spark, listener=Listener(step=step))
    said = str(error.value)
    assert any(words in said for words in ("not there", "no longer", "there is no table or view going"))
    assert {entry for entry in before - both.catalogue() if entry[0] == "default"} == {("default", "going")}
    assert not both.catalogue() - before


def test_rows_are_added_to_a_temporary_table_again_and_again(both: Both) -> None:
    """Each part keeps its rows, and what is added may read what is there already."""
    first = 'CREATE TEMPORARY TABLE {t} AS SELECT id, "select" AS age FROM people WHERE id < 3'
    more = "INSERT INTO {t} SELECT id, age FROM people_of_test WHERE id NOT IN (SELECT id FROM {t}) AND id < {n}"
    for database in (both.spark, both.url):
        with ExitStack() as stack:
            engine = open_engine(database, Settings(), stack)
            engine.begin()
            given = engine.put("given", pa.table({"id": pa.array(range(9), pa.int64()), "age": pa.array([7] * 9)}))
            table = engine.workbench("grow'n")
            here, there = table.sql("duckdb"), given.sql("duckdb")
            engine.execute(transpile(first.format(t=here), "spark").replace("TABLE", "VIEW"))
            for n in (5, 6, 8):
                engine.execute(transpile(more.format(t=here, n=n).replace("people_of_test", there), "spark"))
            assert [c.name for c in engine.columns(table)] == ["id", "age"]
            found = engine.query(render("engine/read_table", table=table, columns=[identifier("id")]))
            assert sorted(found.column(0).to_pylist()) == list(range(8))
        assert not [r for r in both.spark.sql("SHOW VIEWS").toArrow().to_pylist() if "sqldeid_" in r["viewName"]]


@pytest.mark.deep
def test_messages_hold_no_value_and_no_statement(both: Both, capfd: pytest.CaptureFixture[str]) -> None:
    where = "CAST(CASE WHEN illness = 'flu' THEN 'canary7f3a' ELSE '1' END AS DOUBLE) = 1"
    with pytest.raises(JobError, match="cannot be converted") as error:
        anonymize(job({"schema": "bad"}, r={**RELEASES["k"], "where": where}), both.url)
    shown = capfd.readouterr()
    assert "canary7f3a" not in str(error.value) + shown.out + shown.err


def test_a_difference_of_dates_is_refused(both: Both) -> None:
    """It would be released as another type than DuckDB's."""
    query = f"SELECT *, DATE '2020-01-02' - DATE '2020-01-01' AS days FROM {RELEASES['k']['source']}"
    with pytest.raises(JobError, match=r"tables\.r\.source\.query: days: a difference of two dates"):
        anonymize(job({"schema": "bad"}, r={**RELEASES["k"], "source": {"query": query}}), both.spark)


def test_a_release_is_not_written_over_another(both: Both) -> None:
    wanted = job({"schema": "taken"}, r=RELEASES["only quasi-identifiers"])
    anonymize(wanted, both.spark)
    with pytest.raises(JobError, match="exists already; allow it to be replaced with --replace"):
        anonymize(wanted, both.spark)
    both.spark.sql("CREATE TABLE taken.mine AS SELECT 1 AS a")
    with pytest.raises(JobError, match="was not made by sqldeid"):
        anonymize(
            job({"schema": "taken"}, mine=RELEASES["k"]), both.spark, options=Options(replace=True, without_ledger=True)
        )
    with pytest.raises(JobError, match="letters, digits and _ alone"):
        anonymize(job({"schema": "of k"}, r=RELEASES["k"]), both.spark)


def test_a_session_that_behaves_as_an_older_spark(both: Both) -> None:
    """Lists of schemas had another column then, on which every run ended; numbers with an exponent were decimals."""
    older = {
        **dict.fromkeys(["keepCommandOutputSchema", "exponentLiteralAsDecimal.enabled"], "true"),
        **dict.fromkeys(["statisticalAggregate", "setopsPrecedence.enabled"], "true"),
    }
    try:
        for name, value in older.items():
            both.spark.conf.set(f"spark.sql.legacy.{name}", value)
        with ExitStack() as stack:
            engine = open_engine(both.spark, Settings(), stack)
            engine.begin()
            assert engine.query("SELECT TYPEOF(3600e0) AS t").to_pylist() == [{"t": "double"}]
        for name, value in older.items():
            assert both.spark.conf.get(f"spark.sql.legacy.{name}") == value
    finally:
        for name in older:
            both.spark.conf.unset(f"spark.sql.legacy.{name}")


def test_a_session_serves_one_run_at_a_time(both: Both) -> None:
    """The one that ended first gave the session its own settings back under the other."""
    wanted = job({"schema": "alone"}, r=RELEASES["k"])
    refusals: list[str] = []

    def nested(release: str, step: str) -> None:
        with pytest.raises(JobError, match=r"another run of sqldeid uses this session.*newSession\(\)") as raised:
            assess(wanted, both.spark)
        refusals.append(raised.value.message)

    anonymize(wanted, both.spark, listener=Listener(step=nested))
    assert refusals


def test_a_catalogue_in_memory_takes_no_release(both: Both) -> None:
    with ExitStack() as stack:
        engine = open_engine(both.spark, Settings(), stack)
        engine.begin()
        assert engine.capabilities.persistent_catalog
        engine._persistent = False  # type: ignore[attr-defined]  # a static setting: another JVM would be needed
        with pytest.raises(JobError, match="keeps its catalogue in memory"):
            open_staging(engine, Destination("table", "release", None), ["r"], replace=False)


def test_a_text_in_braces_is_not_replaced(both: Both, tmp_path: Path) -> None:
    """Spark would put settings and the environment in its place."""
    (tmp_path / "illness.csv").write_text("flu;sick ${env:HOME};*\ncold;sick ${env:HOME};*\n")
    columns = {"illness": qi(str(tmp_path / "illness.csv")), "select": qi()}
    wanted = release(columns, source="people", k=80, limit=0.0, where="illness IN ('flu', 'cold')")
    anonymize(job({"schema": "braces"}, r=wanted), both.spark)
    assert {row[0] for row in both.there("braces.r")} == {"sick ${env:HOME}"}


def test_adult_is_the_same_on_duckdb_spark_and_connect(both: Both, shared_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "adult.duckdb"
    with duckdb.connect(str(file)) as c:
        c.execute(
            "CREATE TABLE adult AS SELECT ROW_NUMBER() OVER () AS id, * FROM read_csv(?, delim = ';', header = true)",
            [str(shared_data / "adult/adult.csv")],
        )
        load(both.spark, "adult", c.sql("SELECT * FROM adult").to_arrow_table())
    columns = {c: qi(str(shared_data / f"adult/adult_hierarchy_{c}.csv")) for c in ADULT}
    asked = job({"schema": "whole"}, adult=release(columns, source="adult", k=5, limit=0.05, person="id"))
    here = anonymize(asked, file).releases["adult"]
    with duckdb.connect(str(file)) as c:
        wanted = bag(c.execute("SELECT * FROM whole.adult").fetchall())
    for database in (both.spark, both.url):
        there = anonymize(asked, database, options=Options(replace=True, without_ledger=True)).releases["adult"]
        assert told(there) == told(here)
        assert there.node == here.node and there.loss == here.loss and there.suppressed == here.suppressed == 1346
        assert bag(both.there("whole.adult")) == wanted
    both.spark.sql("DROP TABLE adult")
