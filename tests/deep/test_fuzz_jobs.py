"""Hostile databases, jobs and commands: expected exit codes, no traceback, no canary, an unchanged source."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.deep.generate import case
from tests.deep.processes import Processes
from tests.deep.running import Tally, hold

pytestmark = pytest.mark.deep


def test_hostile_jobs(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    tally, end, seed = Tally(), time.monotonic() + 60 * minutes, first
    with Processes(tmp_path / "said") as processes:
        while time.monotonic() < end:
            folder = tmp_path / str(seed)
            folder.mkdir()
            hold(case(seed, folder), tally, processes)
            if not alone:
                shutil.rmtree(folder)
            seed += 1
            if (seed - first) % 50 == 0:
                print(f"{seed - first} jobs, {tally}", flush=True)
            if alone:
                break
    print(f"\n{seed - first} jobs from seed {first}, {tally}")
    assert not tally.found, "\n".join(tally.found)
