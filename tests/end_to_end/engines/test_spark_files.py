"""Releases of Spark's tables into a DuckDB file here: the file that DuckDB writes, verified as written; or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import JobError, Options, VerificationError, anonymize, assess, verify
from sqldeid.job import Job
from sqldeid.publish import brought
from tests.support.foreign_series import BASE, charted
from tests.support.foreign_tables import RELEASES, told
from tests.support.on_spark import Both, load
from tests.support.parquet import content, listing
from tests.support.sources import INSENSITIVE, qi, release
from tests.support.spark_tables import both

__all__ = ["both"]

pytestmark = pytest.mark.xdist_group("spark")

ROWS = range(60)
KINDS = pa.table(
    {
        "class": pa.array([i % 3 for i in ROWS], pa.int64()),
        "zoned": pa.array([datetime(1890, 7, 1, 12, 0, i, 123456, UTC) for i in ROWS], pa.timestamp("us", "UTC")),
        "plain": pa.array([datetime(2020, 1, 1) + timedelta(microseconds=i) for i in ROWS], pa.timestamp("us")),
        "small": pa.array([i / 7 for i in ROWS], pa.float32()),
        "large": [(float("nan"), -0.0, float("inf"), 1e-300)[i % 4] for i in ROWS],
        "exact": pa.array([Decimal(i) / 8 for i in ROWS], pa.decimal128(30, 10)),
        "text": [("", None, "\"; \\N,\n''é😀\t")[i % 3] for i in ROWS],
        "short": pa.array([i - 30 for i in ROWS], pa.int16()),
        "tiny": pa.array([i - 30 for i in ROWS], pa.int8()),
        "flag": [None if i % 5 else True for i in ROWS],
        "day": pa.array([date(1, 1, 1) + timedelta(days=i) for i in ROWS]),
    }
)
COLUMNS = {"class": qi(), **dict.fromkeys(KINDS.column_names[1:], INSENSITIVE)}


@pytest.fixture(scope="module")
def filled(both: Both) -> Iterator[Both]:
    """More tables on both sides: every type that a file holds, and series."""
    more = {"kinds": KINDS, "charted": charted()}
    for name, rows in more.items():
        load(both.spark, name, rows)
        with duckdb.connect(str(both.file)) as c:
            c.register("given", rows)
            c.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    yield both
    for name in more:
        both.spark.sql(f"DROP TABLE {name}")


def jobs(as_: str, folder: Path, **parts: Any) -> list[Job]:
    """One for Spark and one for DuckDB, each with a file of its own."""
    found = []
    for where in ("there", "here"):
        (folder / where).mkdir(exist_ok=True)
        found.append(Job.parse({"release": {"into": "out", "as": as_}, **parts}, folder=folder / where))
    return found


def test_a_file_is_the_one_that_duckdb_writes(filled: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every type, a view over its snapshot, a series that is sent in portions: by Connect, in many parts, and again."""
    monkeypatch.setattr(brought, "PART_BYTES", 9_999)
    monkeypatch.setattr(brought, "AT_ONCE", 7)
    monkeypatch.setattr("sqldeid.series.transfer.AT_ONCE", 100)
    before = filled.catalogue()
    tables = {"r": RELEASES["types"], "k": release(COLUMNS, source="kinds", k=5)}
    asked, expected = jobs("view", tmp_path, tables=tables, series={"vitals": BASE})
    there, here = anonymize(asked, filled.url), anonymize(expected, filled.file)
    for name in tables:
        assert told(there.releases[name]) == told(here.releases[name])
        assert there.releases[name].moved["rows"] >= 2 * there.releases[name].released, (
            "rows do travel, and are counted"
        )
        assert content(tmp_path / "there/out", name) == content(tmp_path / "here/out", name)
    assert there.releases["k"].released == 60 and there.releases["k"].written[0].endswith("there/out: release.k")
    vitals = [content(tmp_path / where / "out", "vitals")[:2] for where in ("there", "here")]
    assert vitals[0] == vitals[1] and len(vitals[0][1]) > 300
    assert told(verify(asked, filled.url)) == told(verify(expected, filled.file))
    only = Options(only=("r", "k"))
    there, here = (assess(j, d, release=True, options=only) for j, d in ((asked, filled.url), (expected, filled.file)))
    assert told(there) == told(here)
    assert filled.catalogue() == before
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["out"]


def test_nothing_but_what_was_verified_appears(filled: Both, tmp_path: Path) -> None:
    """A row that is lost on the way, a file that is there; then one that is changed."""
    before = filled.catalogue()
    [wanted, _] = jobs("table", tmp_path, tables={"r": RELEASES["only quasi-identifiers"]})

    with pytest.MonkeyPatch.context() as patched:
        bring = brought.Brought._bring

        def loses(self: brought.Brought, *given: Any) -> Any:
            rows = self.engine.bench.connection.sql(f"FROM {bring(self, *given).sql('duckdb')}").to_arrow_table()
            return self.engine.bench.put("fewer", rows.slice(1))

        patched.setattr(brought.Brought, "_bring", loses)
        with pytest.raises(VerificationError, match="failed its re-check"):
            anonymize(wanted, filled.spark)
    assert not listing(tmp_path) and filled.catalogue() == before
    with duckdb.connect(str(tmp_path / "there/out")) as c:
        c.execute("CREATE TABLE mine AS SELECT 1 AS a")
    kept = listing(tmp_path)
    for options, said in (
        (Options(), "exists already; allow"),
        (Options(replace=True, without_ledger=True), "sqldeid did not make"),
    ):
        with pytest.raises(JobError, match=said):
            anonymize(wanted, filled.spark, options=options)
    assert listing(tmp_path) == kept
    (tmp_path / "there/out").unlink()
    released = anonymize(wanted, filled.spark).releases["r"].released
    assert verify(wanted, filled.spark)["r"].released == verify(wanted, filled.file)["r"].released == released
    with duckdb.connect(str(tmp_path / "there/out")) as c:
        c.execute("DELETE FROM release.r WHERE rowid = 3")
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(wanted, filled.url)
