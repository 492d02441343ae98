"""The Spark job of the examples: its pipeline, its commands through Connect, and the same release as in DuckDB."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import sqldeid
from sqldeid import demo
from tests.support.cli import run
from tests.support.foreign import bag
from tests.support.places import EXAMPLES
from tests.support.spark import PORT
from tests.support.studies import module_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")
FOLDER = EXAMPLES / "spark"


def test_the_pipeline_and_the_commands(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FOLDER / "job.toml", tmp_path / "job.toml")
    pipeline = module_of(FOLDER / "pipeline.py")
    pipeline.load(spark, 2000)
    there = pipeline.run(spark).releases["census"]
    assert "over the wire" in capsys.readouterr().out
    url = f"sc://127.0.0.1:{spark.conf.get(PORT)}"
    planned = run(capsys, "anonymize", url, "--job", "job.toml", "--plan")
    verified = run(capsys, "verify", url, "--job", "job.toml")
    assert (planned.code, verified.code) == (0, 0), planned.err + verified.err
    again = run(capsys, "anonymize", url, "--job", "job.toml")
    assert again.code == 2 and "--replace" in again.err
    path = demo.adult(tmp_path / "adult.duckdb", rows=2000).database
    here = sqldeid.anonymize(sqldeid.Job.load("job.toml"), path).releases["census"]
    assert (there.node, there.loss, there.suppressed) == (here.node, here.loss, here.suppressed)
    rows = spark.sql("SELECT * FROM deidentified.census").toArrow()
    with duckdb.connect(str(path), read_only=True) as c:
        wanted = bag(c.execute("FROM deidentified.census").fetchall())
    assert bag(list(zip(*(column.to_pylist() for column in rows.columns), strict=True))) == wanted
    spark.sql("DROP TABLE adult")
