"""The private folder beside the target: spill files hold source values, and a release is staged before it appears."""

from __future__ import annotations

import os
import shutil
import tempfile
from glob import escape
from pathlib import Path
from types import TracebackType
from typing import IO

from sqldeid.errors import EngineError

try:
    import fcntl
except ImportError:  # Windows: what a killed run left behind is not swept there
    fcntl = None  # type: ignore[assignment]

_MARK = ".sqldeid-"
_LOCK = "lock"


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
        self._prefix = f".{beside.name}{_MARK}"
        try:
            self._sweep()
            self.path = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._parent))
            self._lock = self._claim(self.path / _LOCK)
        except OSError as error:
            raise EngineError(
                f"{self._parent}: no folder can be made there ({error.strerror}); "
                "release.into or --temp-dir can name another place"
            ) from None

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove folders of runs that no longer live: their lock can be taken."""
        if fcntl is None or not self._parent.is_dir():
            return
        for left in self._parent.glob(f"{escape(self._prefix)}*"):
            lock = left / _LOCK
            if not lock.is_file():
                continue
            with lock.open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                shutil.rmtree(left, ignore_errors=True)

    @staticmethod
    def _claim(path: Path) -> IO[str]:
        file = path.open("w")
        os.chmod(path, 0o600)
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        return file
