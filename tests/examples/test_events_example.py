"""Figures 1 to 5 of Shaked & Rokach (2016) are redone by one command, and the directions that are claimed hold."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

STUDY = Path(__file__).resolve().parents[2] / "examples" / "events_study" / "study.py"


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
    assert done.stdout.startswith("| dataset | epsilon |")
