"""On Spark: pseudonyms, shifted dates, policies, and releases as Parquet that the cluster writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqldeid import Options, anonymize, verify
from tests.engines.foreign import bag
from tests.engines.sources import job
from tests.engines.test_foreign import KEYED, RELEASES, told
from tests.engines.test_spark import Both, both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["both"]

pytestmark = pytest.mark.xdist_group("spark")


def test_pseudonyms_and_shifted_dates(both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets are fresh at each publication; what they leave as it is, is the same. In many parts, too."""
    monkeypatch.setattr("sqldeid.tables.pseudonyms.PART_VALUES", 130)
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    options, wanted = Options(key_file=tmp_path / "key"), job({"schema": "keyed"}, r=KEYED)
    there, here = (anonymize(wanted, d, options=options).releases["r"] for d in (both.url, both.file))
    assert told(there) == told(here)
    assert verify(wanted, both.spark, options=options)["r"] == verify(wanted, both.file, options=options)["r"]
    assert verify(wanted, both.spark)["r"].released == there.released
    rows = both.there("keyed.r")
    assert len({row[0] for row in rows}) == len(rows)
    days = Counter((seen.date() - born).days for _, _, seen, born in rows if seen and born)
    assert days == Counter((seen.date() - born).days for _, _, seen, born in both.here("keyed.r") if seen and born)
