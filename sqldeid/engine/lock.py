"""A lock on a file that whoever held it before may have removed: what is locked is the file that is at its path."""

from __future__ import annotations

import os
import pwd
import re
import shlex
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

_TRIES = 5
_LOCKS = Path("/proc/locks")
"""Where Linux lists the locks of the processes that are seen from here: not those of other machines and containers."""
_LISTED = re.compile(r"^\d+: FLOCK .* (\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


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


def held_by(path: Path) -> str:
    """The process that holds a lock, and its user: `process 4711 of alice`; empty where none is seen from here."""
    try:
        file = os.stat(path)
        listed = _LISTED.findall(_LOCKS.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return ""
    wanted = (os.major(file.st_dev), os.minor(file.st_dev), file.st_ino)
    for process, major, minor, inode in listed:
        if (int(major, 16), int(minor, 16), int(inode)) == wanted and int(process):
            with suppress(OSError):  # it has ended just now
                return f"process {process} of {_name(os.stat(f'/proc/{process}').st_uid)}"
    return ""


def advise(path: Path) -> str:
    """What to do about a lock's file that cannot be opened, as one that another user's killed run left behind.

    Whoever may not open it cannot try the lock. A process that is not seen may still hold it from another machine or
    container, so nothing is removed here, but said.
    """
    try:
        file = os.lstat(path)
    except OSError:
        return "see to whom it belongs"
    owner, of = _name(file.st_uid), datetime.fromtimestamp(file.st_mtime, UTC)
    if holder := held_by(path):
        return f"{holder} holds it: run this one when that has ended"
    whoever = "root" if owner == "root" else f"{owner} or root"
    return (
        f"it is {owner}'s, of {of:%Y-%m-%d %H:%M} UTC, and no process that is seen from here holds it. If no run of "
        f"{owner} on another machine or in a container does, it was left by one that was killed; then {whoever} "
        f"removes it: rm {shlex.quote(str(path))}"
    )


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
