"""Runs that are stopped at a random moment, in all modes: all or nothing, and it is said which."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest

from tests.deep.generate import CANARY, Case, case, is_searched
from tests.deep.running import Forked, digest, leaks, leftovers, run

pytestmark = pytest.mark.deep

LONGEST = 3.0
"""Seconds after which a run is stopped, at most."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
REPLIES = ("nothing was published", "the releases were published")
MODES: tuple[list[str], ...] = (
    [],
    ["--ledger", "ledger.duckdb"],
    ["--json", "result.json", "--certificate", "proof.json"],
    ["--report", "report.html", "--public", "public.html"],
)


def whole(made: Case, tmp: Path) -> int:
    """The exit code of `verify`: 0 all is there, 4 nothing is."""
    return run(["verify", *made.commands[0][1:], "--temp-dir", str(tmp)], made.folder).code


def problems(made: Case, mode: list[str], with_signal: signal.Signals, code: int, said: str) -> list[str]:
    found = []
    last = said.strip().splitlines()[-1] if said.strip() else ""
    stopped = {signal.SIGKILL: {-9}, signal.SIGTERM: {130, -15}, signal.SIGINT: {130, -2}}[with_signal]
    if code not in {0, *stopped}:
        found.append(f"exit code {code}: {last}")
    if "Traceback" in said and code != -2:  # Python itself says so before the program has begun
        found.append("a traceback")
    if CANARY in said:
        found.append("a canary was printed")
    if (
        code == 130
        and "--ledger" not in mode
        and not any(words in said for words in ("nothing was published", "were published"))
    ):
        found.append(f"it is not said whether anything was published: {last}")
    if "--ledger" not in mode:
        there = whole(made, made.folder / "tmp")
        if there not in (0, 2, 4):
            found.append(f"verify ends with {there}")
        if (code == 0 or "were published" in said) and there != 0:
            found.append(f"published, but verify says {there}")
        if "nothing was published" in said and there == 0:
            found.append("nothing was published, but it is there")
    found += leaks(made) if with_signal != signal.SIGKILL else []
    return found


def test_runs_are_stopped_at_any_moment(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    end, seed, found, codes = time.monotonic() + 60 * minutes, first, list[str](), Counter[str]()
    while time.monotonic() < end:
        folder = tmp_path / str(seed)
        (folder / "tmp").mkdir(parents=True)
        r = random.Random(seed)
        made, with_signal, after = case(seed, folder, sound=True), r.choice(SIGNALS), r.uniform(0.0, LONGEST)
        mode = r.choice(MODES if is_searched(made) else MODES[:1])
        before = digest(made.source, "into" not in made.job["release"])
        forked = Forked(
            [*made.commands[0], "--replace", *mode, "--temp-dir", str(folder / "tmp")], folder, tmp_path / "said"
        )
        code, _, said = astuple(forked.end([(after, with_signal)]))
        codes[f"{with_signal.name} {code}"] += 1
        here = problems(made, mode, with_signal, code, said)
        if digest(made.source, "into" not in made.job["release"]) != before:
            here.append("the source changed")
        if with_signal != signal.SIGKILL and code != -2 and code != -15:
            here += leftovers(folder)
        again = run([*made.commands[0], "--replace", *mode, "--temp-dir", str(folder / "tmp")], folder)
        if again.code not in (0, 3):
            here.append(f"the next run ends with {again.code}: {again.err.strip().splitlines()[-1:]}")
        here += [f"after the next run, {left}" for left in leftovers(folder) if "tmp" not in left]
        told = f"seed {seed}: {with_signal.name} after {after:.2f} s, {made.job['release']}, {mode}"
        found += [f"{told}: {what}" for what in here]
        shutil.rmtree(folder)
        seed += 1
        if alone:
            break
    print(f"\n{seed - first} runs from seed {first}: {dict(sorted(codes.items()))}")
    assert not found, "\n".join(found)
