"""On Spark, too, a release whose note a later version wrote in another form is not read, and nothing replaces it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqldeid import Options, anonymize, assess, verify
from sqldeid.errors import JobError, VerificationError
from tests.support.foreign_tables import RELEASES
from tests.support.later import SAID, a_later_version
from tests.support.on_spark import Both
from tests.support.sources import everything, job
from tests.support.spark_tables import both

__all__ = ["both"]

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize("place", ["schema", "folder", "file"])
def test_it_is_refused_wherever_it_stands(place: str, both: Both, tmp_path: Path) -> None:
    targets: dict[str, dict[str, Any]] = {
        "schema": {"schema": "of_another_form"},
        "folder": {"as": "parquet", "into": str(tmp_path / "out")},
        "file": {"into": "out.duckdb"},
    }
    asked = job(targets[place], tmp_path, r=RELEASES["k"], s=RELEASES["k"])
    anonymize(asked, both.spark)
    with a_later_version():
        anonymize(asked, both.spark, options=Options(only=("s",), replace=True, without_ledger=True))
    before = (both.catalogue(), everything(tmp_path))
    told = rf"tables\.s: the release that is there was {SAID}"
    with pytest.raises(VerificationError, match=told):
        verify(asked, both.spark)
    with pytest.raises(VerificationError, match=told):
        assess(asked, both.spark, release=True)
    for only in ("r", "s"):
        with pytest.raises(JobError, match=told):
            anonymize(asked, both.spark, options=Options(only=(only,), replace=True, without_ledger=True))
    assert (both.catalogue(), everything(tmp_path)) == before
    assert verify(asked, both.spark, options=Options(only=("r",)))["r"].released
    if place == "schema":
        both.run("DROP SCHEMA of_another_form CASCADE")
