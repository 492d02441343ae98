"""A database whose file was damaged is named as such, on all versions of DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.support.cli import run

JOB = """
[release]
into = "out.duckdb"
[tables.people]
source = "people"
rows_are_persons = true
privacy = { k = 2 }
[tables.people.columns.age]
role = "quasi-identifying"
hierarchy = { bands = [10] }
"""


@pytest.mark.duckdb14
def test_a_damaged_source_is_told_as_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "db.duckdb"
    with duckdb.connect(str(source)) as c:
        c.execute("CREATE TABLE people AS SELECT i % 50 AS age FROM range(1000) AS r(i)")
        c.execute("CHECKPOINT")
        block = c.execute("SELECT max(block_id) FROM pragma_storage_info('people')").fetchall()[0][0]
    content = bytearray(source.read_bytes())
    content[3 * 4096 + block * 262_144 + 100] ^= 0xFF
    source.write_bytes(content)
    (tmp_path / "job.toml").write_text(JOB)
    ran = run(capsys, "anonymize", source, "--job", tmp_path / "job.toml")
    assert ran.code == 2 and "damaged" in ran.err, ran.err
    assert not (tmp_path / "out.duckdb").exists()
