"""Every study's command is listed, none that was measured takes ten minutes of one core, and the page shows them."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.support.places import EXAMPLES, ROOT
from tests.support.studies import execute, lines_of, module_of

SCRIPT = EXAMPLES / "cpu.py"
RECORD = EXAMPLES / "recorded" / "cpu.csv"
MOST = 600


def test_every_command_of_a_study_is_listed():
    cpu = module_of(SCRIPT)
    named = {
        f"{readme.parent.name}/{script}"
        for readme in EXAMPLES.glob("*/README.md")
        for script in re.findall(r"^    python (\w+\.py)(?:\s|$)", readme.read_text(encoding="utf-8"), re.MULTILINE)
    }
    studies = {name for name in named if name.split("/")[0] not in ("postgres", "spark", "nightly")}
    assert studies == set(cpu.COMMANDS)
    assert {row["script"] for row in lines_of(RECORD)} <= set(cpu.COMMANDS)


def test_no_default_command_takes_ten_minutes_of_one_core():
    seconds = {row["script"]: float(row["cpu_seconds"]) for row in lines_of(RECORD) if row["data"] == "generated"}
    assert max(seconds.values()) < MOST, max(seconds, key=seconds.__getitem__)


def test_the_page_shows_what_was_recorded(tmp_path):
    shutil.copy(RECORD, tmp_path)
    done = execute(SCRIPT, tmp_path, "--again")
    held = module_of(EXAMPLES / "gallery.py").held(ROOT / "docs" / "studies.md", "studies/cpu")
    assert done.stdout == f"\nstudies/cpu\n\n{held}\n" and held.count("\n") > 10


@pytest.mark.deep
def test_a_command_is_measured_and_the_others_are_kept(tmp_path):
    (tmp_path / "cpu.csv").write_text("script,data,cpu_seconds,gib\nnotes_study/notes.py,generated,7.0,0.5\n")
    done = execute(SCRIPT, tmp_path, "--only", "parameters", "--keep", "kept")
    assert done.returncode == 0, done.stderr
    rows = {row["script"]: row for row in lines_of(tmp_path / "cpu.csv")}
    assert rows["notes_study/notes.py"]["cpu_seconds"] == "7.0"
    assert 0.5 < float(rows["epsilon_safe/parameters.py"]["cpu_seconds"]) < MOST
    assert float(rows["epsilon_safe/parameters.py"]["gib"]) > 0.05
    assert "| `notes_study/notes.py` | 7 | 0.5 |" in done.stdout
    assert list((tmp_path / "kept" / "generated" / "epsilon_safe_parameters").glob("*.csv"))


@pytest.mark.deep
def test_a_command_that_fails_is_told(tmp_path):
    done = execute(SCRIPT, tmp_path, "--only", "good_nodes", "--kind", "real", "--data", str(tmp_path))
    assert done.returncode != 0 and "adult" in done.stderr and not (tmp_path / "cpu.csv").exists()
