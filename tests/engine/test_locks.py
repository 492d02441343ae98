"""Locks of a run: they hold against other processes, go with a process that is killed, and leave nothing behind."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from sqldeid.engine import mark
from sqldeid.engine.base import Relation
from sqldeid.engine.folder import PrivateFolder
from sqldeid.engine.lock import advise, held_by, hold, is_there
from sqldeid.engine.settings import Settings
from sqldeid.errors import EngineError
from sqldeid.ledger.file import LedgerFile
from sqldeid.publish.notes import Note
from sqldeid.publish.reserve import reserved
from sqldeid.publish.spark_runs import STAGED, refuse_alive, signed

HOLDS = """
import sys, time
from pathlib import Path
from sqldeid.engine.folder import PrivateFolder
from sqldeid.engine.mark import Mark
folder, run = PrivateFolder(Path(sys.argv[1])), Mark(sys.argv[2])
(folder.path / "spill").write_text("x")
print(folder.path, flush=True)
time.sleep(60)
"""


def holder(target: Path, run: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds a private folder and a mark, and the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(target), run], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_killed_run_is_told_from_a_living_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    target = tmp_path / "out.duckdb"
    process, folder = holder(target, "0000aaaa")
    try:
        assert not mark.is_dead("0000aaaa")
        with PrivateFolder(target) as other:
            assert folder.is_dir() and other.path != folder
            assert (folder / "lock").stat().st_mode & 0o777 == 0o600
        assert folder.is_dir()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert folder.is_dir() and mark.is_dead("0000aaaa")
    with PrivateFolder(target):
        assert not folder.exists()
    mark.forget("0000aaaa")
    assert not list(tmp_path.iterdir())


def test_a_mark_is_held_by_one_and_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held, second = mark.Mark("0000bbbb"), mark.Mark("0000bbbb")
    assert not mark.is_dead("0000bbbb") and not mark.is_dead("0000cccc") and not mark.is_dead("../x")
    second.close()  # it never held it
    assert not mark.is_dead("0000bbbb") and list(tmp_path.iterdir())
    held.close()
    held.close()
    assert not list(tmp_path.iterdir())


def test_a_link_in_a_marks_place_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "precious").write_text("x")
    (tmp_path / ".sqldeid-run-0000dddd").symlink_to(tmp_path / "precious")
    mark.Mark("0000dddd").close()
    assert not mark.is_dead("0000dddd") and (tmp_path / "precious").read_text() == "x"


def test_a_folder_that_cannot_be_locked_is_refused_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems have no locks; a read-only one has no folders."""

    def no_locks(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", no_locks)
        with pytest.raises(EngineError, match=r"no folder can be made there .*locks"):
            PrivateFolder(tmp_path / "out.duckdb")
        patched.setattr("tempfile.tempdir", str(tmp_path))
        mark.Mark("0000eeee").close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(EngineError, match="no folder can be made there"):
        PrivateFolder(Path("/proc/out.duckdb"))


@pytest.mark.parametrize("moment", ["before it is opened", "before it is locked", "by one who holds it"])
def test_a_folder_that_a_sweep_took_away_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Another run takes a folder without a lock for a dead one's; what is used must be there, and be locked."""
    made, swept, makes, locks = [], [], tempfile.mkdtemp, fcntl.flock
    others: list[FileLock] = []

    def sweep(folder: str) -> None:
        swept.append(folder)
        shutil.rmtree(folder)

    def make(**asked: Any) -> str:
        made.append(makes(**asked))
        if len(made) == 1 and moment == "before it is opened":
            sweep(made[0])
        if len(made) == 1 and moment == "by one who holds it":
            others.append(FileLock(f"{made[0]}/lock"))
            others[0].acquire()
        return made[-1]

    def lock(number: int, how: int) -> None:
        if len(made) == 1 and moment == "before it is locked" and not swept:
            sweep(made[0])
        locks(number, how)

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(fcntl, "flock", lock)
    with PrivateFolder(tmp_path / "out.duckdb") as folder:
        assert len(made) == 2 and str(folder.path) == made[1]
        assert folder.path.stat().st_mode & 0o777 == 0o700
        with PrivateFolder(tmp_path / "out.duckdb"):
            assert (folder.path / "lock").is_file()  # it is locked: another run's sweep leaves it
    for other in others:
        other.release()
    assert not list(tmp_path.iterdir())


def test_a_lock_on_a_file_that_was_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who held it removes it at the end, between another one's opening and locking it."""
    path, locks, removed = tmp_path / "lock", fcntl.flock, []

    def lock(number: int, how: int) -> None:
        if not removed:
            removed.append(path.unlink())
        locks(number, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    with suppress(Timeout):  # some filelocks see it themselves
        assert is_there(hold(path))
    held = hold(path)
    path.unlink()
    assert not is_there(held)
    path.touch()
    assert not is_there(held)
    held.release()


def test_a_folder_is_its_owners_before_it_is_locked_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not enter it cannot lock it (but root, who may)."""
    modes = []

    def held(path: Path) -> FileLock:
        modes.append(path.parent.stat().st_mode & 0o777)
        return hold(path)

    monkeypatch.setattr("sqldeid.engine.folder.hold", held)
    before = os.umask(0o777)
    try:
        with PrivateFolder(tmp_path / "out"):
            assert modes == [0o700]
    finally:
        os.umask(before)
    assert not list(tmp_path.iterdir())


KILLED = """
import os, sys
from pathlib import Path
from sqldeid.engine.folder import PrivateFolder
unlink, left = os.unlink, int(sys.argv[2])

def counted(*path, **at):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    unlink(*path, **at)

with PrivateFolder(Path(sys.argv[1])) as folder:
    for name in ("a", "b", "z"):
        (folder.path / name).mkdir()
        (folder.path / name / "spill").write_text("x")
        (folder.path / f"{name}.tmp").write_text("x")
    os.unlink = counted
"""


@pytest.mark.parametrize("removed", range(7))
def test_a_run_killed_as_it_removes_its_folder_is_swept(tmp_path: Path, removed: int) -> None:
    """What it has not removed yet may hold values of the source: the lock by which a sweep knows it goes last."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out"), str(removed)], capture_output=True)
    assert (done.returncode, done.stderr) == (9, b"")
    assert list(tmp_path.iterdir())
    with PrivateFolder(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


FORKS = """
import os, sys
from pathlib import Path
from sqldeid.engine.folder import PrivateFolder
with PrivateFolder(Path(sys.argv[1])) as folder:
    (folder.path / "spill").write_text("x")
    child = os.fork()
    if child == 0:
        sys.exit(3)  # as code of the user's that forks within a run, and ends
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert (folder.path / "spill").read_text() == "x"
    with PrivateFolder(Path(sys.argv[1])):
        assert (folder.path / "spill").is_file()
"""


def test_a_sweep_follows_no_link_that_is_named_as_a_runs_folder(tmp_path: Path) -> None:
    others, place = tmp_path / "others", tmp_path / "place"
    (others / "sub").mkdir(parents=True)
    place.mkdir()
    kept = [others / "lock", others / "file", others / "sub" / "file"]
    for file in kept:
        file.write_text("x")
    (place / ".out.duckdb.sqldeid-linked").symlink_to(others)
    with PrivateFolder(place / "out.duckdb"):
        assert all(file.read_text() == "x" for file in kept)
    assert all(file.read_text() == "x" for file in kept)


def test_a_link_put_in_the_place_of_a_runs_folder_is_not_followed(tmp_path: Path) -> None:
    others, place = tmp_path / "others", tmp_path / "place"
    others.mkdir()
    place.mkdir()
    (others / "file").write_text("x")
    with PrivateFolder(place / "out.duckdb") as folder:
        folder.path.rename(place / "moved")
        folder.path.symlink_to(others)
    assert (others / "file").read_text() == "x"


def test_a_forked_child_that_ends_leaves_its_parents_folder(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKS, str(tmp_path / "out")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


def test_no_lock_is_made_by_hand() -> None:
    package = Path(mark.__file__).parents[1]
    assert not [p for p in package.rglob("*.py") if "flock(" in p.read_text()]


HELD = """
import sys
from pathlib import Path
from sqldeid.engine.lock import hold
lock = hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_who_holds_a_lock_is_told_also_where_its_file_cannot_be_opened(tmp_path: Path) -> None:
    """Its owner and the process are seen by whoever may not read it; a killed one's file says how it is removed."""
    path = tmp_path / "of another's"
    me = pwd.getpwuid(os.getuid()).pw_name
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(Timeout):
            hold(path)
        told, advised = held_by(path), advise(path)
        process.kill()
    if Path("/proc/locks").exists():
        assert told == f"process {process.pid} of {me}"
        assert advised == f"{told} holds it: run this one when that has ended"
    left = advise(path)
    assert (
        held_by(path) == "" and f"it is {me}'s, of 2" in left and "no process that is seen from here holds it" in left
    )
    assert "another machine or in a container does" in left and left.endswith(f"""rm '{tmp_path}/of another'"'"'s'""")
    hold(path).release()  # its own user's runs are not kept out


@pytest.mark.skipif(os.getuid() != 0, reason="not applicable: only root can be another user for a moment")
def test_another_users_killed_run_is_told_by_both_that_lock() -> None:
    with tempfile.TemporaryDirectory() as made:  # its parents let everybody through
        os.chmod(made, 0o777)
        place, ledger = Path(made, "out.duckdb"), Path(made, "ledger.duckdb")
        locks = [place.with_name(".out.duckdb.sqldeid-lock"), ledger.with_name("ledger.duckdb.lock")]
        for lock in locks:
            lock.touch(mode=0o600)
        os.seteuid(65534)
        try:
            with pytest.raises(EngineError) as of_place, reserved(place):
                pass
            with pytest.raises(EngineError) as of_ledger:
                LedgerFile(ledger, Settings())
        finally:
            os.seteuid(0)
        for told, lock in zip((of_place, of_ledger), locks, strict=True):
            assert "cannot be locked (Permission denied); it is root's, of 2" in told.value.message
            assert told.value.message.endswith(f"then root removes it: rm {lock}")


@pytest.mark.parametrize("said", ["all", "by an earlier version", "something else"])
def test_what_a_run_on_spark_staged_tells_which_process_to_look_for(said: str) -> None:
    """So that whoever finds it can see whether it lives, and when its table may be dropped."""
    staged = signed("0000aaaa")
    if said != "all":
        staged = {"run": "0000aaaa", "at": staged["at"]} | ({"host": "a\nb", "process": "x"} if said[0] == "s" else {})
    table = Relation(("c", "shelf", "r__0000aaaa"), False, Note("r", {STAGED: staged}, {}).to_json())
    with pytest.raises(EngineError) as refused:
        refuse_alive("tables.r", [table])
    by = f" (process {os.getpid()} on {platform.node()})" if said == "all" else ""
    assert f"it staged c.shelf.r__0000aaaa 0 minutes ago{by}; wait for it" in refused.value.message
    assert "once its process is no more, DROP TABLE c.shelf.r__0000aaaa" in refused.value.message
