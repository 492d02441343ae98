"""The series study runs by one command, in its quick form, and its tables hold what they must."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.places import EXAMPLES
from tests.support.studies import execute, lines_of

STUDY = EXAMPLES / "series_study" / "study.py"
PNG = b"\x89PNG\r\n"
FIGURES = ("attacks", "figure_5_4", "figure_6_1", "figure_6_4", "figure_6_5", "figure_6_6", "series")
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def study(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rows]:
    folder = tmp_path_factory.mktemp("study")
    done = subprocess.run(
        [sys.executable, STUDY, shared_data / "physionet2012", "--quick", "--into", folder / "results"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in FIGURES:
        assert (folder / "results" / f"{name}.png").read_bytes().startswith(PNG)

    def table(name: str) -> Rows:
        with (folder / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as opened:
            return list(csv.DictReader(opened))

    return table


@pytest.mark.deep
@pytest.mark.xdist_group("series_study")
def test_without_a_folder_it_runs_on_a_generated_hospital(tmp_path: Path) -> None:
    done = execute(STUDY, tmp_path, "--quick")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "series_study"
    assert all((folder / f"{name}.png").read_bytes().startswith(PNG) for name in FIGURES)
    assert {r["fitness"] for r in lines_of(folder / "table_6_2.csv")} == {"weighted", "annealing", "dampened", "capped"}
    trust = lines_of(folder / "tables_6_3_and_6_4.csv")
    assert len(trust) == 12 and all(0 <= float(r["test_roc_auc"]) <= 1 for r in trust)
    sole = {(r["release"], r["attacker"]): float(r["sole"]) for r in lines_of(folder / "attacks.csv")}
    assert sole["original", "rank order"] == 1 > 0.2 > sole["shared", "rank order"]


@pytest.mark.deep
@pytest.mark.xdist_group("series_study")
def test_projection_meets_what_can_be_met(study):
    rows = {(r["length"], r["method"], r["targets"]): r for r in study("table_6_1")}
    assert {length for length, _, _ in rows} == {"5", "12", "all"}
    for length in ("5", "12"):
        assert float(rows[length, "projection", "reachable"]["unfeasibility"]) < 1e-6
        exact, iterated = (rows[length, method, "source"] for method in ("projection", "source"))
        assert float(exact["unfeasibility"]) < float(iterated["unfeasibility"])
        assert float(exact["mean_variance_gap"]) < 1e-6
    assert {r["fitness"] for r in study("table_6_2")} == {"weighted", "annealing", "dampened", "capped"}


@pytest.mark.deep
@pytest.mark.xdist_group("series_study")
def test_attackers_win_against_shapes_and_lose_against_shared_ones(study):
    sole = {(r["release"], r["attacker"]): float(r["sole"]) for r in study("attacks")}
    attackers = {attacker for _, attacker in sole}
    assert len(attackers) == 13
    assert sole["original", "feature standardised"] == 1
    assert sole["projection", "raw points 5 affine"] > 0.55
    assert all(sole["shared", attacker] <= 0.2 for attacker in attackers)
    assert all(sole[release, f"feature {scale}"] <= 0.05 for release in ("projection", "shared") for scale in ("raw",))


@pytest.mark.deep
@pytest.mark.xdist_group("series_study")
def test_disagreement_and_trust_settings_are_told(study):
    rows = {r["release"]: r for r in study("disagreement")}
    assert float(rows["original"]["first_zero_share"]) == 1
    assert float(rows["shared"]["first_median"]) > 0
    trust = study("tables_6_3_and_6_4")
    assert [r["release"] for r in trust] == [name for name in ("source", "projection", "shared") for _ in range(4)]
    assert all(0 <= float(r["test_roc_auc"]) <= 1 for r in trust)
    kept = {r["method"]: r for r in study("durations")}
    assert float(kept["optimal"]["lost_mean"]) <= float(kept["source"]["lost_mean"])
