"""The examples run as their first lines say."""

from __future__ import annotations

import shutil
import subprocess
import sys

import duckdb

from tests.support.cli import run
from tests.support.places import EXAMPLES


def test_csv_with_hierarchies_of_its_own(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXAMPLES / "adult_csv", tmp_path / "csv")
    monkeypatch.chdir(tmp_path / "csv")
    head = (EXAMPLES / "adult_csv" / "job.toml").read_text().partition("[release]")[0]
    commands = [line.removeprefix("#     sqldeid ") for line in head.splitlines() if line.startswith("#     sqldeid ")]
    assert len(commands) == 2
    for command in commands:
        ran = run(capsys, *command.split())
        assert ran.code == 0, ran
    assert run(capsys, "verify", "people.csv", "--job", "job.toml").code == 0
    released = duckdb.sql("SELECT COUNT(*) FROM 'release/people.parquet' GROUP BY age, sex, education").fetchall()
    assert min(released)[0] >= 5
    assert sum(n for (n,) in released) >= 475


def test_pipeline(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLES / "etl.py", tmp_path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of 2000 visits released" in done.stdout
    sizes = duckdb.sql(f"SELECT COUNT(*) AS n FROM '{tmp_path}/visits.parquet' GROUP BY age, zip, admitted").fetchall()
    assert min(sizes)[0] >= 5
