"""Who may read a release that was just written: its owner, or whoever could read the one that it replaces."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqldeid.run import Options, anonymize, verify
from tests.support.sources import database, job, people

pytestmark = pytest.mark.skipif(os.name != "posix", reason="not applicable: modes are POSIX's")


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.sampled(1)
def test_a_new_database_is_its_owners_and_a_replaced_one_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    source = database(tmp_path / "d.duckdb")
    before = mode(source)
    asked = job({"into": "out.duckdb"}, tmp_path, r=people(), s=people())
    anonymize(asked, source)
    out = tmp_path / "out.duckdb"
    assert mode(out) == 0o600 and mode(source) == before
    out.chmod(0o640)
    anonymize(asked, source, options=Options(replace=True))
    assert mode(out) == 0o640 and verify(asked, source)["r"].k >= 5
    anonymize(asked, source, options=Options(replace=True, only=("s",)))
    assert mode(out) == 0o640


@pytest.mark.sampled(1)
def test_a_new_folder_is_its_owners_and_a_replaced_one_keeps_all_modes(tmp_path: Path, umask: int) -> None:
    source = database(tmp_path / "d.duckdb")
    target = {"into": "out", "as": "parquet"}
    asked = job(target, tmp_path, r=people(), s=people())
    anonymize(asked, source)
    out = tmp_path / "out"
    assert [mode(out), mode(out / "r.parquet"), mode(out / "s.parquet")] == [0o700, 0o600, 0o600]
    out.chmod(0o755)
    (out / "r.parquet").chmod(0o644)
    (out / "s.parquet").chmod(0o640)
    anonymize(asked, source, options=Options(replace=True, only=("r",)))
    assert [mode(out), mode(out / "r.parquet"), mode(out / "s.parquet")] == [0o755, 0o644, 0o640]
    more = job(target, tmp_path, r=people(), s=people(), t=people())
    anonymize(more, source, options=Options(replace=True))
    assert [mode(out), mode(out / "r.parquet"), mode(out / "t.parquet")] == [0o755, 0o644, 0o600]
    assert verify(more, source)["t"].k >= 5
