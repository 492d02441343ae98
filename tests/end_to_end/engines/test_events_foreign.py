"""A job of events gives the same release on every engine: the same counts, and with a seed the same rows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from sqldeid import Options, anonymize, plan, verify
from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.engine.opening import Settings
from sqldeid.engine.postgres import PostgresEngine
from sqldeid.errors import JobError, VerificationError
from sqldeid.events.generate import SCHEMA
from sqldeid.events.plan import plan as resolve
from sqldeid.events.release import read_private
from sqldeid.events.synthesize import count_tables
from sqldeid.job import Job
from sqldeid.job.events import Events
from sqldeid.run.places import reading
from tests.support.events import WARD_STATES, kind_c, kind_t, laplace
from tests.support.foreign import Both, Foreign, InPostgres, bag, foreign, in_duckdb
from tests.support.foreign_events import OWN, QUOTED, SEEDED, hostile, job, told
from tests.support.places import ROOT

__all__ = ["foreign"]


@pytest.fixture(scope="module")
def both(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Both:
    tables = {"t": transfer_rows(120, 1), "c": procedure_rows(80, 1), "h": hostile()}
    for name, rows in tables.items():
        foreign.load(name, rows)
    return Both(foreign, in_duckdb(tmp_path_factory.mktemp("both") / "events.duckdb", tables))


FAR = f"""SELECT who, {QUOTED}, level, row, CASE WHEN row = 3 THEN DATE '294300-01-01' WHEN row = 4 THEN DATE 'infinity'
           ELSE day END AS day FROM h"""
RELEASES: dict[str, dict[str, Any]] = {
    "timed": kind_t(**{"source": "t"} | SEEDED),
    "an order alone": kind_c(**{"source": "c"} | SEEDED),
    "fence and shingles": OWN | SEEDED | {"clusters": {"hashes": 10, "shingle": 3}},
    "dates": OWN | SEEDED | {"time": "day"},
    "far dates": OWN | SEEDED | {"time": "day", "source": {"query": FAR}},
    "ends by duration": OWN | SEEDED | {"end": "duration", "privacy": {"method": "none"}},
    "expressions": OWN | SEEDED | {"factors": ["hour", "year", "level % 2"], "where": QUOTED + " IS NOT NULL"},
    "a query": OWN | SEEDED | {"source": {"query": "SELECT h.* FROM h WHERE h.level >= 0"}, "state": "level"},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_the_same_on_every_engine(name: str, both: Both) -> None:
    wanted = job(f"of {name}", RELEASES[name])
    there, here = (anonymize(wanted, d).releases["x"] for d in (both.foreign.database, both.file))
    assert there.events > 50, "an empty release says nothing"
    assert told(there) == told(here)
    assert there.evaluation == pytest.approx(here.evaluation, rel=1e-9)
    assert bag(both.foreign.read(f'"of {name}".x')) == bag(both.rows(f'"of {name}".x'))
    assert verify(wanted, both.foreign.database)["x"] == verify(wanted, both.file)["x"]


@pytest.mark.deep
def test_attacks_find_the_same(both: Both) -> None:
    """Objects are chosen by hash, and only how many have a set of states is counted."""
    wanted = job("attacked", RELEASES["timed"] | {"attacks": True})
    there, here = (anonymize(wanted, d).releases["x"] for d in (both.foreign.database, both.file))
    assert set(there.attacks) == {"membership", "canary"}
    assert there.attacks == here.attacks
    assert bag(both.foreign.read("attacked.x")) == bag(both.rows("attacked.x"))


@pytest.mark.deep
def test_laplace_counts_the_same_over_public_domains(both: Both, tmp_path: Path) -> None:
    """Its noise cannot be seeded: what it is added to is the same, and the release is checked."""
    wards = tmp_path / "wards.txt"
    wards.write_text("\n".join(WARD_STATES), encoding="utf-8")
    kinds = "CASE WHEN hadm_id % 3 = 0 THEN 'a' WHEN hadm_id % 3 = 1 THEN 'it''s' END AS kind"
    kinds += ", CAST(hadm_id % 2 AS INTEGER) AS odd"
    section = kind_t(
        source={"query": f"SELECT t.*, {kinds} FROM t"},
        privacy=laplace(wards, groups={"kind": ["it's", "b", "a"], "odd": ["0", "1"]}),
        factors=["weekday"],
        generate={"objects": 100},
        attacks=False,  # they fit the noised models twenty times, and read nothing but what is compared here
    )
    del section["gap_hours"]
    wanted = job("noised", section)
    exact = []
    for database in (both.foreign.database, both.file):
        found = anonymize(wanted, database).releases["x"]
        assert found.objects == 100 and found.guarantee.differentially_private
        assert verify(wanted, database)["x"].objects == 100
        with reading(database, None, Settings(), command="anonymize") as engine:
            planned = resolve("x", Events.model_validate(section), engine, tmp_path)
            assert planned.domain is not None
            exact.append(count_tables(planned.domain, read_private(planned, engine).placed, engine))
    for name in exact[0].__dataclass_fields__:
        there, here = (getattr(tables, name) for tables in exact)
        if name == "factors":
            assert set(there) == {"weekday", "group"} and all(np.array_equal(there[f], here[f]) for f in there)
        else:
            assert np.array_equal(there, here)
    assert exact[0].transitions.sum() > 400
    groups = exact[0].groups
    assert len(groups) == 7 and groups.sum() == 120 and np.count_nonzero(groups) == 5, "nobody is b; the rest is last"


@pytest.mark.deep
def test_counts_go_over_the_wire_and_no_row_of_the_source(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of states, sets and clusters leave, with counts, means, days and sums of hashes; what was made comes in.

    Once it is written, the states that it shows leave, too, for its codebook.
    """
    left, came, query, put = [], [], PostgresEngine.query, PostgresEngine.put

    def asked(engine: PostgresEngine, sql: str) -> pa.Table:
        left.append(query(engine, sql))
        return left[-1]

    def given(engine: PostgresEngine, name: str, rows: Any) -> Any:
        came.append(rows if isinstance(rows, pa.Table) else rows.read_all())
        return put(engine, name, came[-1])

    monkeypatch.setattr(PostgresEngine, "query", asked)
    monkeypatch.setattr(PostgresEngine, "put", given)
    found = anonymize(job("moved", RELEASES["timed"] | {"attacks": True}), both.foreign.database).releases["x"]
    for rows in left:
        assert not {"object", "part", "position", "moment", "subject_id", "intime"} & set(rows.column_names)
        for field in rows.schema:
            if pa.types.is_string(field.type) and field.name == "shown":
                released = {str(value) for row in both.foreign.read("moved.x") for value in row}
                assert released >= set(map(str, rows.column("shown").to_pylist()))
            elif pa.types.is_string(field.type):
                assert re.fullmatch(r"shingle|persons|whole|c\d+|made_by", field.name)
                assert re.fullmatch(r"[0-9-]*", "".join(rows.column(field.name).to_pylist()))
            if pa.types.is_timestamp(field.type):
                assert field.name == "first" and len(set(rows.column("first").to_pylist())) == 1
    assert any(rows.column_names == SCHEMA.names and len(rows) == found.events for rows in came)
    assert found.moved["rows"] == sum(map(len, left + came))
    assert found.moved["bytes"] > sum(rows.nbytes for rows in left)


CHANGES = {
    "of its states": "UPDATE checked.x SET eventtype = 'nowhere' WHERE object_number = 1",
    "not numbered": "UPDATE checked.x SET object_number = object_number + 1",
    "are missing": "UPDATE checked.x SET intime = NULL WHERE object_number = 2",
    "not in order": "UPDATE checked.x SET intime = TIMESTAMP '2101-01-01' WHERE object_number < 9",
    "the columns": "ALTER TABLE checked.x ADD COLUMN hadm_id INTEGER",
    "neighbouring states": "UPDATE checked.x SET eventtype = 'discharge', curr_wardid = NULL",
}


@pytest.mark.deep
def test_a_changed_release_is_refused_and_nothing_of_ours_is_left(both: Both) -> None:
    """Whatever is changed is found, in a release that is whole again afterwards."""
    import psycopg

    assert isinstance(both.foreign, InPostgres)
    before, wanted = both.foreign.catalogue(), job("checked", RELEASES["timed"])
    assert [p.name for p in plan(wanted, both.foreign.database)] == ["x"]
    assert both.foreign.catalogue() == before
    anonymize(wanted, both.foreign.database)
    assert {entry[:2] for entry in both.foreign.catalogue() - before} == {("checked", ""), ("checked", "x")}
    kept = both.foreign.read("checked.x")
    for words, change in CHANGES.items():
        both.foreign.run("CREATE TABLE checked.kept AS SELECT * FROM checked.x", change)
        with pytest.raises(VerificationError, match=words):
            verify(wanted, both.foreign.database)
        both.foreign.run(
            "ALTER TABLE checked.x DROP COLUMN IF EXISTS hadm_id",
            "DELETE FROM checked.x",
            "INSERT INTO checked.x SELECT * FROM checked.kept",
            "DROP TABLE checked.kept",
        )
    verify(wanted, both.foreign.database)
    assert bag(both.foreign.read("checked.x")) == bag(kept)
    with psycopg.connect(both.foreign.address) as connection:
        again = anonymize(
            job("checked", RELEASES["timed"]), connection, options=Options(replace=True, without_ledger=True)
        )
    assert again.releases["x"].events == len(kept)


def test_a_view_stands_on_a_frozen_snapshot(both: Both) -> None:
    wanted = Job.parse({"events": {"x": RELEASES["dates"]}, "release": {"schema": "seen", "as": "view"}})
    for database in (both.foreign.database, both.file):
        anonymize(wanted, database)
        verify(wanted, database)
    assert bag(both.foreign.read("seen.x")) == bag(both.rows("seen.x"))


def test_a_public_list_of_numbers_that_engines_write_otherwise(both: Both, tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("0.0\n1.0\n", encoding="utf-8")
    section = kind_c(
        source={"query": "SELECT *, CAST(row AS DOUBLE) AS number FROM h"}, object="who", order="row", state="number"
    )
    section["privacy"] = laplace(tmp_path / "numbers.txt", timed=False)
    assert plan(job("numbers", section), both.file)
    with pytest.raises(JobError, match=r"events\.x\.state: number is of type DOUBLE"):
        plan(job("numbers", section), both.foreign.database)


@pytest.mark.deep
def test_the_mimic_demo(foreign: Foreign, shared_data: Path, tmp_path: Path) -> None:
    """The jobs of examples/events_study, with a seed, on real data: both methods in one run."""
    folder = ROOT / "examples/events_study"
    rows = csv.read_csv(shared_data / "mimic3demo/TRANSFERS.csv")
    foreign.load("TRANSFERS", rows.cast(pa.schema([f.with_type(_in_us(f.type)) for f in rows.schema])))
    file = in_duckdb(tmp_path / "mimic.duckdb", {"TRANSFERS": rows})
    sections = tomllib.loads((folder / "transfers.toml").read_text(encoding="utf-8"))["events"]
    for section in sections.values():
        section |= {"generate": {"seed": 7, "objects": 150}, "attacks": False}
    wanted = Job.parse({"events": sections, "release": {"schema": "demo"}}, folder=folder)
    there, here = (anonymize(wanted, d).releases for d in (foreign.database, file))
    assert told(there["transfers_ratio"]) == told(here["transfers_ratio"])
    assert there["transfers_ratio"].source["events"] == rows.num_rows > 500
    assert there["transfers_private"].source == here["transfers_private"].source
    assert verify(wanted, foreign.database)["transfers_private"].objects == 150
    with duckdb.connect(str(file)) as c:
        released = c.execute("FROM demo.transfers_ratio").fetchall()
    assert bag(foreign.read("demo.transfers_ratio")) == bag(released)


def _in_us(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
