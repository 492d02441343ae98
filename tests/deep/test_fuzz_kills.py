"""Runs that are stopped at a random moment, in all modes: all or nothing, and it is said which."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.deep.commands import Case
from tests.deep.generate import case, is_searched
from tests.deep.hostile import CANARY
from tests.deep.processes import Hang, Processes
from tests.deep.running import digest, leaks, leftovers

pytestmark = pytest.mark.deep

LONGEST = 0.8
"""Seconds of a processor after which a run is stopped, at most: what the longest take, however busy the machine is."""
IMPORTING = 1.2
"""What a new process takes before it begins, as a forked one does not."""
NEW = 0.2
"""Share of runs in processes that are truly new, which may be stopped while they import."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
REPLIES = ("nothing was published", "the releases were published")
MODES: tuple[list[str], ...] = (
    [],
    ["--ledger", "ledger.duckdb"],
    ["--json", "result.json", "--certificate", "proof.json"],
    ["--report", "report.html", "--public", "public.html"],
)


def whole(processes: Processes, made: Case, tmp: Path) -> int:
    """The exit code of `verify`: 0 all is there, 4 nothing is."""
    return processes.run(["verify", *made.commands[0][1:], "--temp-dir", str(tmp)], made.folder).code


def problems(
    processes: Processes, made: Case, mode: list[str], with_signal: signal.Signals, code: int, said: str
) -> list[str]:
    found = []
    last = said.strip().splitlines()[-1] if said.strip() else ""
    stopped = {signal.SIGKILL: {-9}, signal.SIGTERM: {130, -15}, signal.SIGINT: {130, -2}}[with_signal]
    if code not in {0, *stopped}:
        found.append(f"exit code {code}: {last}")
    if "Traceback" in said and code != -2:  # Python itself says so before the program has begun
        found.append(f"a traceback: {said.strip()[-600:]}")
    if CANARY in said:
        found.append("a canary was printed")
    if (
        code == 130
        and "--ledger" not in mode
        and not any(words in said for words in ("nothing was published", "were published"))
    ):
        found.append(f"it is not said whether anything was published: {last}")
    if "--ledger" not in mode:
        there = whole(processes, made, made.folder / "tmp")
        if there not in (0, 2, 4):
            found.append(f"verify ends with {there}")
        if (code == 0 or "were published" in said) and there != 0:
            found.append(f"published, but verify says {there}")
        if "nothing was published" in said and there == 0:
            found.append("nothing was published, but it is there")
    found += leaks(made) if with_signal != signal.SIGKILL else []
    return found


def age(folder: Path) -> None:
    """Make folders that never got a lock old enough to be swept: a run leaves young ones, which may be another's."""
    for left in folder.rglob(".*.sqldeid-*"):
        if left.is_dir() and not any(left.iterdir()):
            os.utime(left, (0, 0))


def stopped(seed: int, folder: Path, processes: Processes, codes: Counter[str]) -> list[str]:
    """What is wrong with a run that is stopped, and with the next."""
    r, tmp = random.Random(seed), folder / "tmp"
    tmp.mkdir(parents=True)
    made, with_signal = case(seed, folder, sound=True), r.choice(SIGNALS)
    new, after = r.random() < NEW, r.uniform(0.0, LONGEST)
    mode = r.choice(MODES if is_searched(made) else MODES[:1])
    command = [*made.commands[0], "--replace", *mode, "--temp-dir", str(tmp)]
    before = digest(made.source, "into" not in made.job["release"])
    told = f"seed {seed}: {with_signal.name} after {after:.2f} s, {made.job['release']}, {mode}"
    try:
        ran = processes.start(command, folder, new=new).end(after + IMPORTING * new * r.random(), with_signal)
        codes[f"{with_signal.name} {ran.code}"] += 1
        here = problems(processes, made, mode, with_signal, ran.code, ran.err)
        if digest(made.source, "into" not in made.job["release"]) != before:
            here.append("the source changed")
        if with_signal != signal.SIGKILL and ran.code not in (-2, -15):
            here += leftovers(folder)
        age(folder)
        again = processes.run(command, folder)
    except Hang as hang:
        return [f"{told}: hung: {hang}"]
    if again.code not in (0, 3):
        here.append(f"the next run ends with {again.code}: {again.err.strip().splitlines()[-1:]}")
    here += [f"after the next run, {left}" for left in leftovers(folder)]
    return [f"{told}: {what}" for what in here]


def test_runs_are_stopped_at_any_moment(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    end, seed, found, codes = time.monotonic() + 60 * minutes, first, list[str](), Counter[str]()
    with Processes(tmp_path / "said") as processes:
        while time.monotonic() < end:
            found += stopped(seed, tmp_path / str(seed), processes, codes)
            shutil.rmtree(tmp_path / str(seed))
            seed += 1
            if alone:
                break
    print(f"\n{seed - first} runs from seed {first}: {dict(sorted(codes.items()))}")
    assert not found, "\n".join(found)
