"""`sqldeid import-arx`: what it prints, and where it stops."""

from __future__ import annotations

import pytest

from tests.support.arx import Arx, Column, random_project
from tests.support.cli import run

AGES = [[str(i), f"{i // 10}0s", "*"] for i in range(20, 60)]


def test_what_was_not_taken_is_told_and_refuses_the_job(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [[str(20 + i % 40)] for i in range(120)]
    Arx({"age": Column(hierarchy=AGES)}, rows, ["5-anonymity", "(3)-map"]).write(tmp_path / "p.deid")
    ran = run(capsys, "import-arx", "p.deid", "-o", "job.toml")
    assert (ran.code, ran.err) == (0, "")
    assert "120 rows, 1 column" in ran.out
    assert "refused until you decide on it: (3)-map" in " ".join(ran.out.split())
    assert "sqldeid anonymize job.duckdb --job job.toml --plan" in ran.out
    refused = run(capsys, "anonymize", "job.duckdb", "--job", "job.toml")
    assert refused.code == 2
    assert "tables.data.privacy.undecided" in refused.err


def test_an_imported_project_runs_by_the_commands_that_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = random_project(3)
    project.limit = "1.0"
    project.write(tmp_path / "p.deid")
    assert run(capsys, "import-arx", "p.deid", "-o", "job.toml", "-q").out == ""
    for command in ("anonymize", "verify"):
        assert run(capsys, command, "job.duckdb", "--job", "job.toml").code == 0


@pytest.mark.parametrize("output", ["job.csv", "nowhere/job.toml", "-", ".toml"])
def test_a_place_that_does_not_fit_is_refused(output, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random_project(3).write(tmp_path / "p.deid")
    ran = run(capsys, "import-arx", "p.deid", "-o", output)
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) <= 2
    assert [p.name for p in tmp_path.iterdir()] == ["p.deid"]
