"""What two tables of a run tell together equals what sets of persons tell, and stands in no public file."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Options
from sqldeid.errors import EngineError
from sqldeid.job import Job
from sqldeid.run import composing
from tests.support.foreign import in_postgres
from tests.support.on_spark import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDENTIFYING, SENSITIVE = {"role": "identifying"}, {"role": "sensitive"}


def qi(*bands: int) -> dict[str, object]:
    return {"role": "quasi-identifying", "hierarchy": {"bands": list(bands)}}


def table(columns: dict[str, object], k: int, limit: float = 0.0, **more: Any) -> dict[str, Any]:
    known = {"source": "p", "person": "seq", "columns": {"seq": IDENTIFYING, **columns}}
    return {**known, "privacy": {"k": k, "suppression_limit": limit}, **more}


def people(seed: int, rows: int = 40) -> pa.Table:
    random = np.random.default_rng(seed)
    ages, stays = random.integers(0, 30, rows), random.integers(0, 12, rows)
    ills = [None if x == 4 else f"d{x}" for x in random.integers(0, 5, rows)]
    return pa.table(
        {"seq": np.arange(rows), "age": ages, "los": stays, "ill": ills, "cost": random.integers(0, 3, rows)}
    )


def two(search: str, *, shared: bool = True, **into: object) -> Job:
    """Two releases of other columns of the same persons.

    Both show the illness where `shared`, and then nobody is suppressed, for that could be subtracted.
    """
    limit = 0.0 if shared else 0.3
    shown = {"ill": SENSITIVE} if shared else {"cost": SENSITIVE}
    here = table({"age": qi(5, 10), "ill": SENSITIVE}, 3, limit, search={"method": search})
    there = table({"los": qi(3, 6), **shown}, 4, limit)
    return Job.parse({"release": into, "tables": {"a": here, "b": there}})


def slow(rows: list[dict[str, Any]], k: tuple[int, int]) -> list[dict[str, Any]]:
    """By person: `a` and `b` are the labels of the classes, None where suppressed."""
    classes: tuple[dict[str, set[int]], ...] = (defaultdict(set), defaultdict(set))
    values: tuple[dict[str, set[object]], ...] = (defaultdict(set), defaultdict(set))
    for row in rows:
        for side, name in enumerate("ab"):
            if row[name] is not None:
                classes[side][row[name]].add(row["seq"])
                values[side][row[name]].add(row["ill"])
    both = [row for row in rows if row["a"] is not None and row["b"] is not None]
    sets = [classes[0][row["a"]] & classes[1][row["b"]] for row in both]
    common = [values[0][row["a"]] & values[1][row["b"]] for row in both]
    before = [len(values[0][row["a"]]) == 1 or len(values[1][row["b"]]) == 1 for row in both]
    return [
        {
            "persons": len(both),
            "smallest": min(map(len, sets), default=0),
            "alone": sum(len(s) == 1 for s in sets),
            "below": sum(len(s) < least for s in sets),
            "one": sum(len(c) == 1 for c in common),
            "before": sum(before),
        }
        for least in k
    ]


def found(result: sqldeid.Result) -> list[dict[str, Any]]:
    told = []
    for name in "ab":
        [beside] = result.to_dict()["releases"][name]["attacks"]["composition"]["beside"]
        counts = {key: round(beside[key]["value"] * beside["persons"]) for key in ("alone", "below")}
        for column in beside["columns"]:
            assert column["column"] == "ill"
            counts |= {key: round(column[key]["value"] * beside["persons"]) for key in ("one", "before")}
        told.append({"persons": beside["persons"], "smallest": beside["smallest"], **counts})
    return told


def labels(source: pa.Table, result: sqldeid.Result) -> list[dict[str, Any]]:
    """The persons with the labels of their classes, from the nodes that were released."""
    width = {
        "a": (1, 5, 10, None)[result.releases["a"].node["age"]],
        "b": (1, 3, 6, None)[result.releases["b"].node["los"]],
    }
    rows = source.to_pylist()
    for name, column, k in (("a", "age", 3), ("b", "los", 4)):
        wide = width[name]
        counts: dict[object, int] = defaultdict(int)
        for row in rows:
            row[name] = "*" if wide is None else f"{row[column] // wide}"
            counts[row[name]] += 1
        for row in rows:
            if counts[row[name]] < k:
                row[name] = None
    return rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_found_equals_sets_of_persons(seed: int, shared: bool) -> None:
    source = people(seed, 12 + 16 * seed)
    with duckdb.connect() as c:
        c.register("given", source)
        c.execute("CREATE TABLE p AS FROM given")
        c.unregister("given")
        result = sqldeid.anonymize(two("frontier", shared=shared), c)
    expected = slow(labels(source, result), (3, 4))
    if not shared:
        expected = [{key: x for key, x in told.items() if key not in ("one", "before")} for told in expected]
    assert found(result) == expected
    assert "composition" not in json.dumps(result.to_public()) and "beside" not in json.dumps(result.to_public())
    assert "alone are in both of their groups" in result.to_html()


def test_planted_twins_are_found() -> None:
    """Who is in a class of many in both, and alone in the two together; and nobody, where both are one column's."""
    rows = pa.table(
        {"seq": range(60), "age": [i // 10 for i in range(60)], "los": [i % 10 for i in range(60)], "ill": range(60)}
    )
    whole = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    with duckdb.connect() as c:
        c.register("given", rows)
        c.execute("CREATE TABLE p AS SELECT *, age AS again FROM given")
        c.unregister("given")
        parts = {name: table({name: whole, "ill": SENSITIVE}, 5) for name in ("age", "los")}
        result = sqldeid.anonymize(Job.parse({"tables": parts}), c)
        [beside] = result.releases["age"].attacks.composition.beside
        assert (beside.persons, beside.smallest, beside.alone.value, beside.below.value) == (60, 1, 1, 1)
        [ill] = beside.columns
        assert (ill.one.value, ill.before.value) == (1, 0)
        parts = {name: table({name: whole, "ill": SENSITIVE}, 5) for name in ("age", "again")}
        result = sqldeid.anonymize(Job.parse({"tables": parts}), c, options=Options(replace=True))
        [beside] = result.releases["age"].attacks.composition.beside
        assert (beside.smallest, beside.alone.value, beside.below.value) == (10, 0, 0)
        assert beside.columns[0].one.value == 0


def test_a_class_of_k_less_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person of a class of k is taken out of what was placed: the k - 1 others are told, and nobody else."""
    intersected = composing._intersected

    def plant(asked: Any, engine: Any, number: int) -> Any:
        [table] = [t.table for t in asked.traces if t.names == ("age",)]
        engine.execute(
            f"DELETE FROM {table.sql('duckdb')} WHERE class = 3 AND rowid IN (SELECT MIN(rowid) FROM "
            f"{table.sql('duckdb')} WHERE class = 3)"
        )
        return intersected(asked, engine, number)

    whole = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    rows = pa.table({"seq": range(60), "age": [i // 10 for i in range(60)], "one": [1] * 60})
    parts = {name: table({name: whole}, 10) for name in ("age", "one")}
    for planted in (False, True):
        if planted:
            monkeypatch.setattr(composing, "_intersected", plant)
        with duckdb.connect() as c:
            c.register("given", rows)
            c.execute("CREATE TABLE p AS FROM given")
            c.unregister("given")
            [beside] = sqldeid.anonymize(Job.parse({"tables": parts}), c).releases["age"].attacks.composition.beside
        assert (beside.persons, beside.smallest) == ((59, 9) if planted else (60, 10))
        assert round(beside.below.value * beside.persons) == (9 if planted else 0) and beside.alone.value == 0


def reasons(result: sqldeid.Result, name: str) -> dict[str, str]:
    return {one.column: one.reason for one in result.releases[name].attacks.left_out if one.attack == "composition"}


def test_what_is_not_compared_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    with duckdb.connect() as c:
        c.register("given", people(1))
        c.execute("CREATE TABLE p AS FROM given")
        c.execute("CREATE TABLE q AS SELECT seq AS other, age, los FROM given")
        c.execute("CREATE TABLE v AS SELECT CAST(seq AS VARCHAR) AS seq, los FROM given")
        c.unregister("given")
        parts = {
            "a": table({"age": whole}, 3),
            "apart": table({"los": whole}, 3, never_with=["a"]),
            "stranger": {
                **table({}, 3),
                "source": "q",
                "person": "other",
                "columns": {"los": whole, "other": IDENTIFYING},
            },
            "spelt": table({"los": whole}, 3, source="v", never_with=["apart", "stranger"]),
            "mute": table({"cost": whole}, 3, attacks=False),
        }
        result = sqldeid.anonymize(Job.parse({"tables": parts}), c)
        told = reasons(result, "a")
        assert told.keys() == {"apart", "stranger", "spelt"}
        assert "nobody is given both" in told["apart"]
        assert "neither person key nor source" in told["stranger"] and "different types" in told["spelt"]
        assert [b.release for b in result.releases["a"].attacks.composition.beside] == ["mute"]
        assert result.releases["mute"].attacks is None
        alone = sqldeid.anonymize(Job.parse({"tables": {"a": parts["a"]}}), c, options=Options(replace=True))
        assert reasons(alone, "a") == {"": composing.ALONE}
        assert f"Two releases together: {composing.ALONE}" in alone.to_html()
        monkeypatch.setenv("SQLDEID_KEY", "0123456789abcdef" * 4)
        held = Options(replace=True, ledger=tmp_path / "ledger", without_ledger=True)
        with_ledger = sqldeid.anonymize(Job.parse({"tables": {"a": parts["a"]}}), c, options=held)
        assert reasons(with_ledger, "a") == {"": composing.FIRST}


def test_beside_linked_tables_nobody_says_that_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "0123456789abcdef" * 4)
    whole = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    named = {"seq": {**IDENTIFYING, "pseudonym": True}}
    items = {**table({"item": whole}, 3), "source": "items", "parent": "a", "items": "item", "known": 1}
    del items["columns"]["seq"]
    with duckdb.connect() as c:
        c.register("given", people(1))
        c.execute("CREATE TABLE p AS FROM given")
        c.execute("CREATE TABLE items AS SELECT seq, 'x' AS item FROM given")
        c.unregister("given")
        linked = {"a": table({"age": whole, **named}, 3), "b": table({"los": whole, **named}, 3, link="a")}
        child = {"a": linked["a"], "c": items}
        for parts in (linked, child):
            result = sqldeid.anonymize(Job.parse({"tables": parts}), c, options=Options(replace=True))
            told = [reasons(result, name) for name in parts if hasattr(result.releases[name], "attacks")]
            assert told
            assert all(composing.ALONE not in one.values() for one in told)


@pytest.mark.usefixtures("attacks_may_fail")
def test_a_failure_costs_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run's transaction is gone with it; the second does not try again."""
    with duckdb.connect() as c:
        c.register("given", people(2))
        c.execute("CREATE TABLE p AS FROM given")
        c.unregister("given")

        def fail(asked: object, engine: Any, number: int) -> None:
            engine.query("SELECT ERROR('x')")

        monkeypatch.setattr(composing, "_intersected", fail)
        result = sqldeid.anonymize(two("frontier"), c)
        assert all("could not be made" in reasons(result, name)[""] for name in "ab")
        assert all(result.releases[name].attacks.disclosure is not None for name in "ab")
        assert c.execute("SELECT COUNT(*) FROM release.a").fetchall() != [(0,)]


def test_tests_see_what_the_engine_says_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EngineError("x")

    monkeypatch.setattr(composing, "_intersected", fail)
    with duckdb.connect() as c, pytest.raises(EngineError):
        c.register("given", people(2))
        c.execute("CREATE TABLE p AS FROM given")
        sqldeid.anonymize(two("frontier"), c)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", ["frontier", "local"])
def test_in_postgres_the_same_is_found(search: str, postgres_cluster: str) -> None:
    with duckdb.connect() as c:
        c.register("given", people(3, 60))
        c.execute("CREATE TABLE p AS FROM given")
        c.unregister("given")
        ours = sqldeid.anonymize(two(search), c)
    with in_postgres(postgres_cluster) as server:
        server.load("p", people(3, 60))
        assert found(sqldeid.anonymize(two(search, schema="anon"), server.database)) == found(ours)


@pytest.mark.xdist_group("spark")
def test_on_spark_the_same_is_found(spark: SparkSession) -> None:
    with duckdb.connect() as c:
        c.register("given", people(3, 60))
        c.execute("CREATE TABLE p AS FROM given")
        c.unregister("given")
        ours = sqldeid.anonymize(two("frontier"), c)
    load(spark, "p", people(3, 60))
    assert found(sqldeid.anonymize(two("frontier", schema="composed"), spark)) == found(ours)
