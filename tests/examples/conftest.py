"""A small database and a job for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.examples.cli import JOB


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a database of sixty people and a job of two releases."""
    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(15 + i % 60 AS INTEGER) AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'person ' || i AS name, "
            "'illness ' || (i % 7) AS illness, 1000 * (i % 4) AS income FROM range(60) AS r(i)"
        )
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path
