"""The private folder beside the target: spill files hold source values, and a release is staged before it appears."""

from __future__ import annotations

import errno
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

from filelock import FileLock, Timeout

from sqldeid.engine.lock import hold
from sqldeid.engine.undisturbed import in_one_go
from sqldeid.errors import EngineError

_MARK = ".sqldeid-"
_LOCK = "lock"
_LONGEST = 200
"""Bytes of a name that a folder's own can carry."""
_YOUNG = 5.0
"""Seconds in which a folder gets its lock."""
_TRIES = 20
"""Folders that are made until one is locked before another run took it for a dead one's."""


class PrivateFolder:
    """A folder that only its owner can read (mode 0700), locked while in use, removed at the end by who made it.

    A process that was forked meanwhile leaves it alone.

    Parameters
    ----------
    beside
        The file or folder to be replaced later; `os.replace` needs the same file system. What killed runs left
        beside it is removed first.
    """

    def __init__(self, beside: Path, parent: Path | None = None) -> None:
        self._parent = parent or beside.parent
        self._prefix = f".{short_name(beside.name)}{_MARK}"
        try:
            self._sweep()
            with in_one_go():
                self.path, lock = self._make()
                self._remove = weakref.finalize(self, _release, self.path, lock, os.getpid())  # whatever comes between
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

    def _make(self) -> tuple[Path, FileLock]:
        """A folder and its lock. Until it is locked another run may take it away, and then the next one is tried."""
        for _ in range(_TRIES):
            folder = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._parent))
            lock = _claim(folder)
            if lock is not None:
                return folder, lock
        raise OSError(errno.EAGAIN, "other runs take away what is made there, or it has no locks")


def _claim(folder: Path) -> FileLock | None:
    """Lock a folder that was made just now; None where another run took it for a dead one's before."""
    lock = None
    try:
        os.chmod(folder, 0o700)  # a umask may have taken even its owner's rights
        made = folder.stat()
        lock = hold(folder / _LOCK)
        if os.path.samestat(made, folder.stat()):
            os.chmod(folder, 0o700)  # some filelocks make one anew, as the umask has it, that went away meanwhile
            return lock
    except (FileNotFoundError, NotADirectoryError, Timeout):
        pass  # it is being removed, or was
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if lock is not None:
        lock.release()
    shutil.rmtree(folder, ignore_errors=True)
    return None


def _release(folder: Path, lock: FileLock, maker: int) -> None:
    if os.getpid() != maker:
        return
    _clear(folder)
    lock.release()
    _remove_cleared(folder)


def _clear(folder: Path) -> None:
    """Remove what a folder holds but its lock, which goes last: a sweep knows by it what a killed run left.

    Beside a shared place anybody can put a link of that name; it is not followed, and what is opened once stays the
    folder that is cleared, whatever takes its name.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _clear_opened(opened)
        finally:
            os.close(opened)


def _clear_opened(folder: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, ignore_errors=True, dir_fd=folder)
            elif entry.name != _LOCK:
                with suppress(OSError):
                    os.unlink(entry.name, dir_fd=folder)


def _remove_cleared(folder: Path) -> None:
    """Remove a folder that holds no more than its lock; one that could not be cleared keeps it for the next sweep."""
    with suppress(FileNotFoundError):
        if not folder.is_symlink() and not {*os.listdir(folder)} - {_LOCK}:
            shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> FileLock:
    return FileLock(folder / _LOCK, mode=0o600, timeout=0, thread_local=False)


def _remove_dead(left: Path) -> None:
    """Remove a folder whose lock can be taken, or that never got one: its run was killed as it made it."""
    if left.is_symlink():  # no run makes one: who put it there may mean what it points to
        return
    if not (left / _LOCK).is_file():
        if time.time() - left.stat().st_mtime > _YOUNG:
            left.rmdir()  # which refuses one that holds anything
        return
    with _lock(left):
        _clear(left)
        _remove_cleared(left)


def for_temporary_files() -> Path:
    """The system's folder for temporary files.

    Raises
    ------
    EngineError
        If none can be written, as in a container whose disks are read-only.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        raise EngineError(
            "no folder for temporary files can be written; name one with --temp-dir, or set TMPDIR"
        ) from None


def is_private(name: str) -> bool:
    """Whether a folder of this name is a run's own, as one is that lends plain names beside what is read."""
    return name.startswith(".") and _MARK in name


def short_name(name: str) -> str:
    """A file's name, or, where it could be read as another or would be too long, a short hash of it."""
    if name.isprintable() and not re.search(r"[*?\[\\]", name) and len(os.fsencode(name)) <= _LONGEST:
        return name
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
