"""A search that takes long: stopped by Ctrl-C or by its own limit, on a lattice of 78 billion nodes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import finish, run, start

COLUMNS = [f"q{j}" for j in range(14)]
JOB = """
[release]
into = "out.duckdb"

[tables.people]
source = "people"
person = "id"

[tables.people.columns]
{columns}

[tables.people.privacy]
k = 5
suppression_limit = 0.05

[tables.people.search]
{search}
"""


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 20,000 people in fourteen skewed columns."""
    drawn = ", ".join(
        f"CAST(hash(i * 31 + {j}) % 32 * (hash(i * 17 + {j}) % 2) AS INTEGER) AS {name}"
        for j, name in enumerate(COLUMNS)
    )
    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute(f"CREATE TABLE people AS SELECT i AS id, {drawn} FROM range(20000) AS r(i)")
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, "")
    return tmp_path


def write_job(folder: Path, search: str) -> None:
    rule = '{ role = "quasi-identifying", hierarchy = { bands = [2, 4, 8, 16] } }'
    columns = "\n".join(f"{name} = {rule}" for name in COLUMNS)
    (folder / "job.toml").write_text(JOB.format(columns=columns, search=search))


def test_ctrl_c_in_a_search_tells_the_best_node_and_the_gap(wide):
    process = start("anonymize", "db.duckdb", "--job", "job.toml", "--json", "-", "-v", cwd=wide, PYTHONUNBUFFERED="1")
    assert process.stderr is not None
    while b"searching the lattice" not in process.stderr.readline():
        pass
    time.sleep(2)
    os.kill(process.pid, signal.SIGINT)
    sent = time.monotonic()
    ran = finish(process)
    assert time.monotonic() - sent < 20
    assert ran.code == 130, ran
    error = ran.json["error"]
    assert (error["code"], error["kind"]) == (130, "interrupted")
    assert set(error["best"]["node"]) == set(COLUMNS)
    assert 0 < error["best"]["loss"] <= 1
    assert 0 < error["gap"] <= error["best"]["loss"]
    first = ", ".join(f"{name} {level}" for name, level in list(error["best"]["node"].items())[:12])
    assert f"best node so far: {first}" in ran.err
    assert f", loss {error['best']['loss']:.6g}, gap at most {error['gap']:.6g}" in ran.err
    assert "nothing was published" in ran.err
    assert sorted(p.name for p in wide.iterdir()) == ["db.duckdb", "job.toml"]


def test_a_time_limit_releases_the_best_node_with_its_gap(wide, capsys):
    write_job(wide, "time_limit = 1")
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--json", "result.json", "--certificate", "c.json")
    assert ran.code == 0, ran
    search = json.loads((wide / "result.json").read_text())["releases"]["people"]["search"]
    assert search["optimal"] is False
    assert search["gap"] > 0
    words = " ".join(ran.out.split())
    assert f"not proven least: at most {search['gap']:.6g} too high" in words
    assert "78,364,164,096 nodes checked" in words
    found = run(capsys, "verify", "db.duckdb", "--job", "job.toml", "--certificate", "c.json", "--json", "-")
    assert found.code == 0, found
    proof = found.json["releases"]["people"]["certificate"]
    assert proof["value"] - proof["bound"] == pytest.approx(search["gap"], abs=1e-12)
