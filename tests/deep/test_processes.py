"""A forked command ends, says and writes what one in a new process does."""

from __future__ import annotations

import re
import shutil
import signal
import time

import pytest

from tests.deep.commands import Case, Change, Damage, Rewrite
from tests.deep.generate import case
from tests.deep.processes import Line, Processes, Ran

pytestmark = pytest.mark.deep

SEEDS = range(4)


def told(ran: Ran) -> tuple[int, str, str]:
    """Without what differs between any two runs: seconds, digests, secret seeds, the clock, free memory and disk."""
    return ran.code, *(
        re.sub(r"\d+(\.\d+)? ?(m?s|[KMGT]i?B)\b|[0-9a-f]{16,}|0\.\d+|\d\.\d{3,}|\d\d:\d\d:\d\d", "·", t)
        for t in (ran.out, ran.err)
    )


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    with Processes(tmp_path_factory.mktemp("said")) as made:
        yield made


def damage_once(step: Damage, made: Case, damaged: dict[int, bytes], number: int) -> None:
    """Damage a file; where that step was done before, put the file there that it left."""
    path = made.folder / step.name
    if number in damaged and path.is_file():
        path.write_bytes(damaged[number])
        return
    step.do(made)
    if path.is_file():
        damaged[number] = path.read_bytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_forked_command_does_what_a_new_process_does(seed, tmp_path, processes):
    """What one wrote holds seconds and drawn secrets, so that damage would hit another digit in each: both read one."""
    folder, ends, damaged = tmp_path / "case", {}, {}
    for new in (False, True):
        folder.mkdir()
        made, here = case(seed, folder), []
        for number, step in enumerate(made.steps):
            if isinstance(step, Damage):
                damage_once(step, made, damaged, number)
            elif isinstance(step, (Change, Rewrite)):
                step.do(made)
            else:
                ran = processes.run(step, folder, new=new)
                here.append(told(ran) if "events" not in made.job else ran.code)  # their noise is another each time
        ends[new] = here, sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))
        shutil.rmtree(folder)
    assert ends[False] == ends[True]


@pytest.mark.parametrize("new", [False, True])
def test_a_signal_ends_both_alike(new, tmp_path, processes):
    made = case(3, tmp_path, sound=True)
    ran = processes.start(made.commands[0], tmp_path, new=new).end(0.0, signal.SIGKILL)
    assert ran.code == -9
    assert processes.run(["--version"], tmp_path, new=new).code == 0


@pytest.mark.parametrize("new", [False, True])
def test_an_unknown_command_and_a_file_that_may_not_grow(new, tmp_path, processes):
    made = case(3, tmp_path, sound=True)
    assert processes.run(["nonsense"], tmp_path, new=new).code == 2
    ran = processes.start([*made.commands[0], "--replace"], tmp_path, new=new, limit=1).end()
    assert (ran.code, "Traceback" in ran.err) == (1, False)


def test_both_answers_of_a_short_command_may_come_at_once():
    """On a busy machine a command may have ended before its number was read: it is not waited for then."""
    line = Line()
    line.say(
        {"command": ["--version"], "folder": "/", "out": "/dev/null", "err": "/dev/null", "limit": 0, "environment": {}}
    )
    while not line.has(1):
        pass
    time.sleep(5)  # until it has ended
    line.hear()
    assert line.has(0)
    assert line.hear()["code"] == 0
    line.close()
