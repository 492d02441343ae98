"""Event sequences on Spark: the release of DuckDB, from an open session and by Connect; counts alone come out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import csv

from sqldeid import Job, JobError, Options, anonymize, verify
from sqldeid.engine.spark import SparkEngine
from sqldeid.events.generate import SCHEMA
from tests.support.foreign import bag
from tests.support.foreign_events import HOSTILE, OWN, QUOTED, SEEDED, hostile, job, told
from tests.support.on_spark import Both, on_both
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CANARY = "canary7f3a"
FAR = f"""SELECT who, {QUOTED}, level, row, CASE WHEN row = 3 THEN DATE '294300-01-01' ELSE day END AS day
          FROM sequences WHERE level IS NULL OR level < 9"""
RICH = OWN | SEEDED | {"source": {"query": FAR}, "time": "day", "clusters": {"hashes": 10, "shingle": 3}}
RICH |= {"factors": ["weekday", "duration", "level % 2"], "where": QUOTED + " IS NOT NULL"}
"""Dates that no timestamp reaches, a threshold by the fence, shingles, states of two columns, an expression."""


def marked() -> pa.Table:
    """The hostile rows, every object and every state with a word that is found again wherever it goes."""
    rows = hostile()
    for name in ("who", HOSTILE):
        texts = [None if text is None else f"{CANARY} {text}" for text in rows.column(name).to_pylist()]
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(texts))
    return rows


def transfers(folder: Path) -> pa.Table:
    """Of the MIMIC demo, with times as every engine has them."""
    rows = csv.read_csv(folder / "mimic3demo/TRANSFERS.csv")
    fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


@pytest.fixture(scope="module")
def both(spark: SparkSession, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    tables = {"sequences": marked(), "transfers": transfers(shared_data)}
    with on_both(spark, tmp_path_factory.mktemp("both"), tables) as there:
        yield there


def test_a_release_is_the_same_on_spark_and_only_counts_come_out(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark gives to Python is looked at, the catalogue's answers, too; and all that goes in.

    States that the release shows come out for its codebook, once they are written.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    left, came, gives, put = [], [], DataFrame.toArrow, SparkEngine.put

    def given(engine: SparkEngine, name: str, rows: Any) -> Any:
        came.append(rows if isinstance(rows, pa.Table) else rows.read_all())
        return put(engine, name, came[-1])

    def asked(frame: DataFrame) -> pa.Table:
        left.append(gives(frame))
        return left[-1]

    monkeypatch.setattr(DataFrame, "toArrow", asked)
    monkeypatch.setattr(SparkEngine, "put", given)
    wanted = job("counted", RICH)
    there = anonymize(wanted, both.spark).releases["x"]
    monkeypatch.undo()
    here = anonymize(wanted, both.file).releases["x"]
    assert there.events > 50 and told(there) == told(here)
    assert there.evaluation == pytest.approx(here.evaluation, rel=1e-9)
    assert bag(both.there("counted.x")) == bag(both.here("counted.x"))
    released = {str(value) for row in both.there("counted.x") for value in row}
    for rows in [*left, *came]:
        if "shown" in rows.column_names:
            assert released >= set(map(str, rows.column("shown").to_pylist()))
        else:
            assert CANARY not in str(rows.to_pylist())
    for rows in left:
        texts = [rows.column(f.name).to_pylist() for f in rows.schema if pa.types.is_string(f.type)]
        if "shingle" in rows.column_names:
            assert len(texts) == 1 and re.fullmatch(r"[0-9-]*", "".join(texts[0]))
        assert not {"object", "part", "position", "moment", "who"} & set(rows.column_names)
    assert any(rows.column_names == SCHEMA.names and len(rows) == there.events for rows in came)


def test_the_mimic_demo(both: Both) -> None:
    """The jobs of examples/events_study, with a seed, on real data: both methods in one run."""
    folder = ROOT / "examples/events_study"
    sections = tomllib.loads((folder / "transfers.toml").read_text(encoding="utf-8"))["events"]
    for section in sections.values():
        section |= {"generate": {"seed": 7, "objects": 150}, "attacks": False}
    before = both.catalogue()
    wanted = Job.parse({"events": sections, "release": {"schema": "demo", "as": "view"}}, folder=folder)
    here = anonymize(wanted, both.file).releases
    for database, only in ((both.spark, ("transfers_ratio",)), (both.url, tuple(sections))):
        there = anonymize(wanted, database, options=Options(only=only, replace=True, without_ledger=True)).releases
        assert told(there["transfers_ratio"]) == told(here["transfers_ratio"])
        assert there["transfers_ratio"].source["events"] > 500
        assert bag(both.there("demo.transfers_ratio")) == bag(both.here("demo.transfers_ratio"))
    assert there["transfers_private"].source == here["transfers_private"].source
    assert verify(wanted, both.url)["transfers_private"].objects == 150
    made = {entry[1] for entry in both.catalogue() - before if entry[0] == "demo"}
    assert all(re.fullmatch(r"(transfers_(ratio|private)(__[0-9a-f]{8})?)?", name) for name in made) and len(made) == 5


def test_groups_of_laplace(both: Both, tmp_path: Path) -> None:
    """With noise that hardly counts, and a seed, objects come in the same groups, in the same shares, as on DuckDB."""
    (tmp_path / "states.txt").write_text("\n".join(f"{CANARY} it's {w}" for w in "abcdef"), encoding="utf-8")
    privacy = {"method": "laplace", "epsilon": 1000.0, "states": str(tmp_path / "states.txt"), "other": "else"}
    section = {"source": "sequences", "object": "who", "order": "row", "state": HOSTILE, "attacks": False}
    made = {"privacy": privacy | {"groups": {"level": ["0", "2"]}}, "generate": {"objects": 400, "seed": 1}}
    wanted = job("grouped", section | made)
    counts = []
    for database, rows in ((both.spark, both.there), (both.file, both.here)):
        assert anonymize(wanted, database).releases["x"].objects == 400
        assert verify(wanted, database)["x"].objects == 400
        objects = dict(tuple(row)[:2] for row in rows("grouped.x"))
        counts.append({level: list(objects.values()).count(level) for level in ("0", "2", None)})
    there, here = counts
    assert sum(there.values()) == 400 and min(there.values()) > 20
    assert there == here


@pytest.mark.deep
def test_a_value_that_fails_is_not_told_and_nothing_is_left(both: Both, capfd: pytest.CaptureFixture[str]) -> None:
    before, settings = both.catalogue(), dict(both.spark.conf.getAll)
    bad = {"source": {"query": f"SELECT s.*, CAST(s.{QUOTED} AS DOUBLE) AS bad FROM sequences AS s"}, "state": "bad"}
    for database in (both.spark, both.url):
        with pytest.raises(JobError, match=r"events\.x\.source.*cannot be converted") as error:
            anonymize(job("failed", OWN | SEEDED | bad), database)
        shown = capfd.readouterr()
        assert CANARY not in str(error.value) + shown.out + shown.err
    assert both.catalogue() == before and dict(both.spark.conf.getAll) == settings
