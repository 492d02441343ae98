"""Local recoding in Postgres and on Spark: the release of DuckDB, row by row, and what changed is refused there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqldeid import Options, VerificationError, anonymize, assess, plan, verify
from sqldeid.job import Job
from sqldeid.run import explain
from tests.support.foreign import Both, bag, foreign, hold_listed, in_duckdb, running
from tests.support.foreign_tables import (
    KEYED,
    RELEASES,
    both,
    people,
    told,
)
from tests.support.local_tables import go_the_wide_way
from tests.support.on_spark import load
from tests.support.sources import job
from tests.support.spark import PORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["both", "foreign"]
NAMES = (
    *("k", "blank", "types", "types as text", "only quasi-identifiers", "times cut", "cut, every value", "cut, bands"),
    *("filter", "query", "l distinct", "l recursive", "t", "delta", "beta", "m"),
    *("stack first of all", "stack summaries"),
    "by k, then l",
)


def local(name: str, **more: Any) -> dict[str, Any]:
    rolled = {n: 1 for n, c in RELEASES[name]["columns"].items() if c["role"] == "quasi-identifying"}
    beside = {"recoding": name in ("k", "types"), "roll_up": rolled if name in ("k", "types", "filter") else {}}
    beside["hierarchies"] = name in ("k", "types", "filter")
    search = {**RELEASES[name].get("search", {}), "method": "local"}
    return {**RELEASES[name], "search": search, **beside, **more}


def released(table: dict[str, Any], schema: str, kind: str = "table") -> Job:
    return job({"schema": schema, "as": kind}, "", r=table)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_that_of_duckdb(name: str, both: Both) -> None:
    wanted = released(local(name), f"local_{NAMES.index(name)}", "view" if name == "filter" else "table")
    [planned] = plan(wanted, both.foreign.database)
    with running() as ran:
        there = anonymize(wanted, both.foreign.database).releases["r"]
    hold_listed(explain(planned, wanted, both.foreign.database).statements or (), ran)
    ours = anonymize(wanted, both.file).releases["r"]
    assert there.classes > 1
    assert told(there) == told(ours)
    assert bag(both.foreign.read(f"local_{NAMES.index(name)}.r")) == bag(both.rows(f"local_{NAMES.index(name)}.r"))
    if wanted.tables["r"].roll_up:
        for beside in ("rolled_up", "hierarchies"):
            there_now = f"local_{NAMES.index(name)}.r_{beside}"
            assert bag(both.foreign.read(there_now)) == bag(both.rows(there_now))
    assert told(verify(wanted, both.foreign.database)["r"]) == told(verify(wanted, both.file)["r"])
    for looked in (False, True):
        here = assess(wanted, both.file, release=looked)
        assert told(assess(wanted, both.foreign.database, release=looked)) == told(here)


WAYS: dict[str, dict[str, Any]] = {
    "few layers": {"layers": 3},
    "the wide way": {},
    "few layers, the wide way": {"layers": 3},
    "time enough": {"time_limit": 600},
    "another loss, weighed": {"loss": "prec"},
}


@pytest.mark.deep
@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_forming_classes_is_that_of_duckdb(way: str, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    if "wide" in way:
        go_the_wide_way(monkeypatch)
    schema = f"local_way_{[*WAYS].index(way)}"
    wanted = released(local("types", search={"method": "local", **WAYS[way]}), schema)
    there = anonymize(wanted, both.foreign.database).releases["r"]
    ours = anonymize(wanted, both.file).releases["r"]
    assert told(there) == told(ours) and not there.search["stopped"]
    if "layers" in way:
        assert len(there.layers) <= 3
    for table in ("r", "r_layers", "r_rolled_up", "r_hierarchies"):
        if table != "r_layers" or wanted.tables["r"].recoding:
            assert bag(both.foreign.read(f"{schema}.{table}")) == bag(both.rows(f"{schema}.{table}"))
    assert told(verify(wanted, both.foreign.database)["r"]) == told(verify(wanted, both.file)["r"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wide", [False, True])
def test_a_search_that_was_cut_short_gives_a_release(wide: bool, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        go_the_wide_way(monkeypatch)
    wanted = released(local("k", search={"method": "local", "time_limit": 1e-6}), f"local_short_{int(wide)}")
    there = anonymize(wanted, both.foreign.database).releases["r"]
    assert there.search["stopped"] and 0 <= there.bound <= there.loss["loss"] <= 1
    assert any("the time was over" in w for w in there.warnings)
    assert verify(wanted, both.foreign.database)["r"].k == there.k >= wanted.tables["r"].privacy.k


@pytest.mark.deep
def test_pseudonyms_and_shifted_dates(both: Both, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    options = Options(key_file=tmp_path / "key")
    wanted = released({**KEYED, "search": {"method": "local"}}, "local_keyed")
    for database in (both.foreign.database, both.file):
        found = anonymize(wanted, database, options=options).releases["r"]
        assert found.to_public()["status"] == "pseudonymised, not anonymous"
        for key in (Options(), options):
            assert verify(wanted, database, options=key)["r"].k == found.k
        (tmp_path / "other").write_text("0123456789abcdff" * 4)
        with pytest.raises(VerificationError, match="or the key is another"):
            verify(wanted, database, options=Options(key_file=tmp_path / "other"))


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_a_release_goes_into_files_here(kind: str, both: Both, tmp_path: Path) -> None:
    into = "out" if kind == "parquet" else "out.duckdb"
    wanted = job({"into": into, "as": kind}, tmp_path, r=local("types"))
    there = anonymize(wanted, both.foreign.database).releases["r"]
    assert len(there.written) == 4 and verify(wanted, both.foreign.database)["r"].k == there.k
    again = {"into": f"again_{into}", "as": kind}
    ours = anonymize(job(again, tmp_path, r=local("types")), both.file).releases["r"]
    assert told(there) == told(ours)


def test_what_was_changed_is_refused(both: Both) -> None:
    wanted = released(local("k"), "local_changed")
    anonymize(wanted, both.foreign.database)
    both.foreign.run("UPDATE local_changed.r SET days = 1 - days WHERE days IN (0, 1)")  # type: ignore[attr-defined]
    with pytest.raises(VerificationError, match="are not those of persons of the source"):
        verify(wanted, both.foreign.database)


@pytest.mark.xdist_group("spark")
def test_on_spark_it_is_that_of_duckdb_and_what_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """From the session as tables, from the Connect server as views."""
    load(spark, "people", people())
    here = in_duckdb(tmp_path / "people.duckdb", {"people": people()})
    url = f"sc://127.0.0.1:{spark.conf.get(PORT)}"
    try:
        for kind, database, name in (
            ("table", spark, "k"),
            ("view", url, "t"),
            ("table", url, "only quasi-identifiers"),
        ):
            wanted = released(local(name), f"spark_local_{name[0]}", kind)
            there, ours = (anonymize(wanted, d).releases["r"] for d in (database, here))
            assert told(there) == told(ours) and there.classes > 1
            rows = spark.sql(f"SELECT * FROM spark_local_{name[0]}.r").toArrow()
            assert bag(list(zip(*(c.to_pylist() for c in rows.columns), strict=True))) == bag(
                Both(None, here).rows(f"spark_local_{name[0]}.r")  # type: ignore[arg-type]
            )
            assert told(verify(wanted, database)["r"]) == told(verify(wanted, here)["r"])
        spark.sql("CREATE TABLE kept AS SELECT * FROM spark_local_k.r")
        spark.sql(
            "INSERT OVERWRITE TABLE spark_local_k.r SELECT * EXCEPT (days, recoding), 1 - days, recoding FROM kept"
        )
        with pytest.raises(VerificationError, match="are not those of persons of the source"):
            verify(released(local("k"), "spark_local_k"), spark)
    finally:
        for name in ("people", "kept"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.xdist_group("spark")
def test_on_spark_few_layers_found_the_wide_way_are_those_of_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    load(spark, "people", people())
    here = in_duckdb(tmp_path / "people.duckdb", {"people": people()})
    wanted = released(local("types", search={"method": "local", "layers": 3, "time_limit": 600}), "spark_way")
    try:
        with pytest.MonkeyPatch.context() as patched:
            go_the_wide_way(patched)
            there, ours = (anonymize(wanted, d).releases["r"] for d in (spark, here))
        assert told(there) == told(ours) and not there.search["stopped"]
        for table in ("r", "r_layers", "r_rolled_up", "r_hierarchies"):
            rows = spark.sql(f"SELECT * FROM spark_way.{table}").toArrow()
            assert bag(list(zip(*(c.to_pylist() for c in rows.columns), strict=True))) == bag(
                Both(None, here).rows(f"spark_way.{table}")  # type: ignore[arg-type]
            )
        assert told(verify(wanted, spark)["r"]) == told(verify(wanted, here)["r"])
    finally:
        spark.sql("DROP TABLE IF EXISTS people")
