"""The private folder beside the target: spill files hold source values, and a release is staged before it appears."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from glob import escape
from pathlib import Path
from types import TracebackType

from filelock import FileLock

from sqldeid.engine.undisturbed import in_one_go
from sqldeid.errors import EngineError

_MARK = ".sqldeid-"
_LOCK = "lock"
_LONGEST = 200
"""Bytes of a name that a folder's own can carry."""
_YOUNG = 5.0
"""Seconds in which a folder gets its lock."""


class PrivateFolder:
    """A folder that only its owner can read (mode 0700), locked while in use, removed at the end.

    Parameters
    ----------
    beside
        The file or folder to be replaced later; `os.replace` needs the same file system. What killed runs left
        beside it is removed first.
    """

    def __init__(self, beside: Path, parent: Path | None = None) -> None:
        self._parent = parent or beside.parent
        self._prefix = f".{_named(beside.name)}{_MARK}"
        try:
            self._sweep()
            with in_one_go():
                self.path = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._parent))
                self._lock = self._claim(self.path)
                self._remove = weakref.finalize(self, _release, self.path, self._lock)  # whatever comes in between
        except OSError as error:
            raise EngineError(
                f"{self._parent}: no folder can be made there ({error.strerror}); "
                "release.into or --temp-dir can name another place"
            ) from None

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with in_one_go():
            self._remove()

    def _sweep(self) -> None:
        """Remove folders of runs that no longer live: their lock can be taken."""
        if not self._parent.is_dir():
            return
        for left in self._parent.glob(f"{escape(self._prefix)}*"):
            with suppress(OSError):  # its run lives, or it is another user's: filelock's Timeout is an OSError
                _remove_dead(left)

    @staticmethod
    def _claim(folder: Path) -> FileLock:
        lock = _lock(folder)
        try:
            lock.acquire()
            os.chmod(folder, 0o700)  # filelock makes a folder anew, as the umask has it, that went away meanwhile
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return lock


def _release(folder: Path, lock: FileLock) -> None:
    lock.release()
    shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> FileLock:
    return FileLock(folder / _LOCK, mode=0o600, timeout=0, thread_local=False)


def _remove_dead(left: Path) -> None:
    """Remove a folder whose lock can be taken, or that never got one: its run was killed as it made it."""
    if not (left / _LOCK).is_file():
        if time.time() - left.stat().st_mtime > _YOUNG:
            left.rmdir()  # which refuses one that holds anything
        return
    with _lock(left):
        shutil.rmtree(left, ignore_errors=True)


def _named(name: str) -> str:
    """The name, or, where it could be read as another or would be too long, a short hash of it."""
    if name.isprintable() and not re.search(r"[*?\[\\]", name) and len(os.fsencode(name)) <= _LONGEST:
        return name
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
