"""Locks of a run: they hold against other processes, go with a process that is killed, and leave nothing behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sqldeid.engine import mark
from sqldeid.engine.folder import PrivateFolder
from sqldeid.errors import EngineError

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


def test_no_lock_is_made_by_hand() -> None:
    package = Path(mark.__file__).parents[1]
    assert not [p for p in package.rglob("*.py") if "flock(" in p.read_text()]
