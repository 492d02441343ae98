"""A lock on a file that whoever held it before may have removed: what is locked is the file that is at its path."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

_TRIES = 5


def hold(path: Path) -> FileLock:
    """Lock a file for this process, at once; it is made where there is none, for its owner alone.

    Raises
    ------
    Timeout
        If another holds it; an OSError, too.
    OSError
        If it cannot be made, or the file system has no locks.
    """
    for _ in range(_TRIES):
        lock = FileLock(path, mode=0o600, timeout=0, thread_local=False)
        lock.acquire()
        if is_there(lock):
            return lock
        lock.release()
    raise Timeout(str(path))


def is_there(lock: FileLock) -> bool:
    """Whether the file that is locked is still the one at its path: a lock on a file that is gone keeps nobody out."""
    held = lock._context.lock_file_fd
    try:
        return held is not None and os.path.samestat(os.fstat(held), os.stat(lock.lock_file))
    except OSError:
        return False
