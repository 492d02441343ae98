"""Disks that are full: an orderly message, nothing half published, and room makes the same run succeed.

As root a small file system in memory is mounted; elsewhere files may not grow beyond a limit (RLIMIT_FSIZE).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deep.generate import case, is_searched
from tests.deep.hostile import CANARY
from tests.deep.processes import Hang, Processes, Ran
from tests.deep.running import digest, leftovers

pytestmark = pytest.mark.deep

NEW = 0.2
"""Share of runs in processes that are truly new."""
MODES: tuple[list[str], ...] = (
    [],
    ["--ledger", "ledger.duckdb"],
    ["--json", "result.json", "--certificate", "proof.json"],
    ["--public", "public.html"],
)


@contextmanager
def small(folder: Path, size: int) -> Iterator[bool]:
    """A file system of that size at `folder`; False where only a limit can be set."""
    made = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, check=False
    ).returncode == 0  # fmt: skip
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def full(seed: int, folder: Path, processes: Processes, codes: Counter[str]) -> list[str]:
    """What is wrong with a run that meets a full disk, and with the same run when there is room."""
    r = random.Random(seed)
    folder.mkdir()
    room = int(r.choice([0, 4096, 65_536, 300_000, 600_000, 1_000_000, 2_000_000]) * r.uniform(0.5, 1.5))
    with small(folder, 1 << 26) as mounted:
        made = case(seed, folder, sound=True)
        mode = r.choice(MODES if is_searched(made) else MODES[:1])
        command = [*made.commands[0], *mode]
        told = f"seed {seed}: room {room}, {made.job['release']}, {mode}"
        in_place = "into" not in made.job["release"]
        before = digest(made.source, in_place)
        if mounted:
            _fill(folder, room)
        try:
            limit = 0 if mounted else max(room, 1)
            ran = processes.start(command, folder, new=r.random() < NEW, limit=limit).end()
            codes[str(ran.code)] += 1
            here = _met(ran, folder)
            (folder / "filler").unlink(missing_ok=True)
            if digest(made.source, in_place) != before:
                here.append("the source changed")
            there = processes.run(["verify", *made.commands[0][1:]], folder)
            published = ran.code == 0 or "were published" in ran.err
            if "--ledger" not in mode and published != (there.code == 0) and ran.code != 3:
                here.append(f"ended with {ran.code} ({last(ran)}), but verify with {there.code}")
            again = processes.run([*command, "--replace"], folder)
        except Hang as hang:
            return [f"{told}: hung: {hang}"]
        if again.code not in (0, 3):
            here.append(f"with room it ends with {again.code}: {last(again)}")
        here += [f"after the next run, {left}" for left in leftovers(folder)]
    return [f"{told}: {what}" for what in here]


def last(ran: Ran) -> str:
    """The last line that was said."""
    return (ran.err.strip().splitlines() or [""])[-1]


def _met(ran: Ran, folder: Path) -> list[str]:
    found = leftovers(folder)
    if ran.code not in (0, 1, 3):
        found.append(f"exit code {ran.code}: {last(ran)}")
    if "Traceback" in ran.err or "internal error" in ran.err or CANARY in ran.err:
        found.append(f"said: {last(ran)}")
    return found


def test_disks_that_are_full(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    end, seed, found, codes = time.monotonic() + 60 * minutes, first, list[str](), Counter[str]()
    with Processes(tmp_path / "said") as processes:
        while time.monotonic() < end:
            found += full(seed, tmp_path / str(seed), processes, codes)
            shutil.rmtree(tmp_path / str(seed), ignore_errors=True)
            seed += 1
            if alone:
                break
    print(f"\n{seed - first} runs from seed {first}: {dict(codes)}")
    assert not found, "\n".join(found)


def _fill(folder: Path, room: int) -> None:
    """Leave about that many bytes."""
    free = shutil.disk_usage(folder).free
    with (folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - room, 1))
