"""Every command, job and line of Python in the README runs, and the session it shows is what a run prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sqldeid
from sqldeid.hierarchy import open_source
from tests.support.places import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d+\.\d s\b|[\d,]+(?= of [\d,]+ nodes checked)")
PROGRAMS = Path(sys.executable).parent

pytestmark = pytest.mark.xdist_group("readme")


def execute(command: list[str], folder: Path) -> str:
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    known = {**os.environ, "PATH": path, "COLUMNS": "500", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def words(text: str, folder: Path) -> list[str]:
    """What must be equal: lines may be broken elsewhere, times and checks differ from run to run."""
    return VARYING.sub("…", text.replace(str(folder), "/home/you")).split()


def session(block: str) -> list[tuple[str, str]]:
    """Commands of a console block with what they print."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_every_block_is_of_a_known_kind():
    assert {kind for kind, _ in BLOCKS} == {"console", "sh", "toml", "python"}


def test_commands_and_python_run_in_the_order_of_the_page(tmp_path):
    ran = 0
    for kind, text in BLOCKS:
        if kind == "console":
            for command, shown in session(text):
                assert words(execute(["bash", "-c", command], tmp_path), tmp_path) == words(shown, tmp_path), command
                ran += 1
        elif kind == "sh":
            for command in text.splitlines():
                execute(["bash", "-o", "pipefail", "-c", command], tmp_path)
                ran += 1
        elif kind == "python":
            assert "classes" in execute([sys.executable, "-c", text], tmp_path)
            ran += 1
    assert ran >= 13


def test_the_job_is_valid_and_its_hierarchies_open():
    (text,) = (text for kind, text in BLOCKS if kind == "toml")
    job = sqldeid.Job.parse(tomllib.loads(text))
    for column in job.tables["people"].every_column.values():
        if column.hierarchy is not None:
            spec = column.hierarchy if isinstance(column.hierarchy, str) else column.hierarchy.to_mapping()
            assert open_source(spec, ROOT).height >= 2


def test_first_lines_are_make_targets_and_the_demo_runs(tmp_path):
    targets = re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)
    assert targets[:2] == ["demo", "test"]
    if not (ROOT / "Makefile").exists():
        pytest.skip("not applicable: no Makefile beside the tests")
    (tmp_path / "demo").mkdir()
    for target in targets:
        printed = execute(["make", "-n", "-C", str(ROOT), target], tmp_path)
        for line in printed.splitlines():
            if line.startswith(".venv/bin/sqldeid"):
                execute(["bash", "-c", line.replace(".venv/bin/", "")], tmp_path)
    assert (tmp_path / "demo" / "result.json").exists()


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_links_and_files_that_are_named_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:examples|tests|sqldeid|hierarchies)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
