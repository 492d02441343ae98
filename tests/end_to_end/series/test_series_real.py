"""Series of 4,000 real stays (Challenge 2012): what shortening costs, what is met, and who is singled out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqldeid import anonymize, verify
from sqldeid.job import Job
from sqldeid.series.result import SeriesRelease

pytestmark = [pytest.mark.xdist_group("series-real"), pytest.mark.deep]

VITALS = {
    "HR": {"items": ["HR"], "low": 20, "high": 300},
    "SBP": {"items": ["SysABP", "NISysABP"], "low": 30, "high": 300},
    "DBP": {"items": ["DiasABP", "NIDiasABP"], "low": 10, "high": 200},
    "SaO2": {"items": ["SaO2"], "low": 40, "high": 100},
    "Glucose": {"items": ["Glucose"], "low": 10, "high": 2000},
}
SERIES = {
    **{"source": "set_a", "person": "recordid", "time": "minute", "time_unit": "minutes", "variable": "parameter"},
    **{"value": "value", "variables": VITALS, "durations": {"k": 50}},
    **{"privacy": {"k": 5, "nulls": "null-aware"}, "perturb": {"method": "projection"}},
}


@pytest.fixture(scope="module")
def stays(shared_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        file = shared_data / "physionet2012" / "set-a.parquet"
        connection.execute(f"CREATE TABLE set_a AS SELECT * FROM '{file}'")
        yield connection


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("real")
    return Job.parse({"release": {"into": "out.duckdb"}, "series": {"vitals": SERIES}}, folder=folder)


@pytest.fixture(scope="module")
def release(stays: duckdb.DuckDBPyConnection, job: Job) -> SeriesRelease:
    found: SeriesRelease = anonymize(job, stays).releases["vitals"]
    return found


def test_shortening_loses_what_the_design_says(release: SeriesRelease) -> None:
    """series.md: 1.25 % of the records at k = 50 and 146 stays moved; the lengths of 8 single somebody out before."""
    durations = release.durations
    assert (durations.persons, durations.moved, durations.dropped) == (3996, 146, 0)
    assert durations.share_lost_mean == pytest.approx(0.0125, abs=0.0001)
    assert (durations.before.alone, durations.after.below_k) == (8, 0)
    assert release.withheld["records_share"] < 0.002


def test_targets_are_met_and_shared(release: SeriesRelease) -> None:
    assert release.k >= 5
    assert max(release.tau.values()) < 1e-6
    assert release.unfeasibility["used"] < 1e-6
    assert 8 < release.distortion < 12


def test_features_single_out_few(release: SeriesRelease) -> None:
    features = release.attacks["feature"]
    for scale in ("raw", "standardised"):
        assert features[scale]["worst_sole"] <= 0.05  # type: ignore[index]
        assert features[scale]["worst_link"] <= 0.15  # type: ignore[index]


def test_raw_points_single_out_most_and_the_release_says_so(release: SeriesRelease) -> None:
    points = release.attacks["raw_points"]
    assert points["5"]["affine"]["sole"] > 0.5  # type: ignore[index]
    assert any('method = "shared", the default, protects' in warning for warning in release.warnings)


def test_what_was_published_is_found_again(stays: duckdb.DuckDBPyConnection, job: Job, release: SeriesRelease) -> None:
    assert verify(job, stays)["vitals"].to_dict()["released"] == release.released
