"""A mark of a run on this machine: whether another run is alive can be told by it, and by nothing else for certain.

It is a file of the user's own with a lock on it, which goes with the process that holds it. A run on another machine
has none here, and nothing is known of it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: nothing is known of any run there
    fcntl = None  # type: ignore[assignment]


class Mark:
    """Held while a run may still publish what it staged.

    Parameters
    ----------
    run
        The run's number, which others find on what it staged.
    """

    def __init__(self, run: str) -> None:
        self._path = _path(run)
        self._file: IO[str] | None = None
        if fcntl is not None:
            self._hold()

    def _hold(self) -> None:
        try:
            self._file = open(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w")  # noqa: SIM115
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # no mark: others take the run for alive
            self.close()

    def close(self) -> None:
        """The run is over: nothing of it is staged any more."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def is_dead(run: str) -> bool:
    """Whether a run of this machine and user left its mark and nobody holds it; False where nothing is known."""
    if fcntl is None or not run.isalnum():
        return False
    try:
        with _path(run).open("r+") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return False
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def forget(run: str) -> None:
    """Remove the mark of a run that is dead."""
    _path(run).unlink(missing_ok=True)


def _path(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f".sqldeid-run-{run}"
