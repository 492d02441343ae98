"""Figures 1 to 5 of Shaked & Rokach (2016) are redone by one command, and the jobs beside it release the real data."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import sqldeid
from sqldeid.job import Job
from tests.support.places import EXAMPLES

FOLDER = EXAMPLES / "events_study"
STUDY = FOLDER / "study.py"


def test_the_study_writes_its_figures_and_tables(tmp_path: Path) -> None:
    command = [sys.executable, STUDY, "--quick", "--scale", "0.03", "--repetitions", "1", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for number in range(1, 7):
        assert (tmp_path / "out" / f"figure{number}.png").read_bytes().startswith(b"\x89PNG\r\n")
    with (tmp_path / "out" / "summary.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [(r["dataset"], r["epsilon"]) for r in rows] == [
        (data, epsilon) for data in ("CPTEVENTS, invented", "TRANSFERS, invented") for epsilon in ("0.05", "inf")
    ]
    for strict, free in ((rows[0], rows[1]), (rows[2], rows[3])):
        assert float(strict["suppressed_entries"]) > float(free["suppressed_entries"]) == 0
        assert float(strict["mean_support"]) > float(free["mean_support"])
        assert float(strict["cover"]) < float(free["cover"])
    with (tmp_path / "out" / "runs.csv").open(encoding="utf-8", newline="") as opened:
        assert len(list(csv.DictReader(opened))) == 2 * 3 * 2
    assert done.stdout.startswith("| dataset | epsilon |") and done.stdout.count("| dataset |") == 2
    with (tmp_path / "out" / "private_summary.csv").open(encoding="utf-8", newline="") as opened:
        assert [(r["dataset"], r["epsilon"]) for r in csv.DictReader(opened)] == [
            ("CPTEVENTS, invented", "1.0"),
            ("TRANSFERS, invented", "1.0"),
        ]


@pytest.mark.parametrize(
    ("name", "file", "counts"), [("transfers", "TRANSFERS", (100, 524)), ("procedures", "CPTEVENTS", (91, 1579))]
)
def test_the_jobs_release_the_real_data(
    shared_data: Path, tmp_path: Path, name: str, file: str, counts: tuple[int, int]
) -> None:
    """Both methods, from the job files and the lists of states; of 100 patients, noise can leave no object at all."""
    job = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    job["release"]["into"] = str(tmp_path / "release")
    for part in job["events"].values():
        part["attacks"] = False
    source = shared_data / "mimic3demo" / f"{file}.csv"
    found = sqldeid.anonymize(Job.parse(job, folder=FOLDER), source).releases
    private, ratio = found[f"{name}_private"], found[f"{name}_ratio"]
    assert (ratio.source["objects"], ratio.source["events"]) == counts and ratio.events > 0
    assert private.guarantee.differentially_private and not ratio.guarantee.differentially_private
    assert sum(Fraction(str(s["epsilon_exact"])) for s in private.ledger) == 1
    assert any("most of the table of transitions is noise" in w for w in private.warnings)
    checked = sqldeid.verify(Job.parse(job, folder=FOLDER), source)
    assert {n: v.events for n, v in checked.items()} == {n: r.events for n, r in found.items()}
