"""Mark a run on this machine by a lock, which alone tells for certain whether the run is still alive.

It is a file of the user's own with a lock on it, which goes with the process that holds it. A run on another machine
has none here, and nothing is known of it.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout


class Mark:
    """Held while a run may still publish what it staged.

    Parameters
    ----------
    run
        The run's number, which others find on what it staged.
    """

    def __init__(self, run: str) -> None:
        self._path = _path(run)
        self._lock = _lock(self._path)
        try:
            self._lock.acquire()
        except Timeout:
            pass  # another holds it
        except OSError:  # no mark: others take the run for alive, and a file that stayed would look like a dead one's
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """The run is over: nothing of it is staged any more."""
        if self._lock.is_locked:
            self._path.unlink(missing_ok=True)
            self._lock.release()


def is_dead(run: str) -> bool:
    """Whether a run of this machine and user left its mark and nobody holds it; False where nothing is known."""
    if not run.isalnum():
        return False
    path = _path(run)
    try:
        if path.lstat().st_uid != os.getuid():
            return False
        with _lock(path):
            return True
    except OSError:  # there is no mark, or somebody holds it: filelock's Timeout is an OSError
        return False


def forget(run: str) -> None:
    """Remove the mark of a run that is dead."""
    _path(run).unlink(missing_ok=True)


def _path(run: str) -> Path:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # none can be written, and no mark be made
        folder = os.sep
    return Path(folder, f".sqldeid-run-{run}")


def _lock(path: Path) -> FileLock:
    return FileLock(path, mode=0o600, timeout=0, thread_local=False)
