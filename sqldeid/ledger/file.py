"""The ledger's file: locked, copied, changed aside, put in its place before anything is published.

    state of a run                        a kill here leaves
    the copy is changed aside             the old ledger; what was staged is gone, too
    a mark beside the ledger is written   the same
    the copy replaces the ledger          the new ledger and the mark: the release counts as published, though it is not
    the release is published              the same, and it is published
    the mark is removed                   the new ledger

So the ledger never knows less than was published. Where publishing fails, the old ledger is put back.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.lock import advise, held_by, hold
from sqldeid.engine.plain import Workshop
from sqldeid.engine.private import CATALOG, open_private
from sqldeid.engine.settings import Settings
from sqldeid.errors import EngineError, JobError
from sqldeid.ledger.store import read_through

_OPTION = "--ledger"


class LedgerFile:
    """One run's hold on a ledger; a context manager. Nothing of the file changes before `record`.

    Parameters
    ----------
    path
        The ledger; made with mode 0600 where there is none. Beside it stand a lock and, while a release is being
        published, a mark.

    Attributes
    ----------
    engine
        On the copy, in a transaction.
    fresh
        Whether there was no ledger.
    interrupted
        Whether an earlier run was stopped between recording and publishing.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = Path(os.path.realpath(path))
        self._refuse_place()
        self._mark = self.path.with_name(f"{self.path.name}.pending")
        self._lock = self._claim()
        try:
            self._folder = Workshop(self.path, elsewhere=settings.temp_dir)
        except BaseException:
            self._unlock()
            raise
        self._aside = self._folder.path / "ledger.duckdb"
        self._before = self._folder.beside / "before.duckdb"
        self._recorded = False
        try:
            self.fresh = not self.path.exists()
            self.interrupted = self._mark.exists()
            self._copy()
            self.engine: DuckDBEngine = self._open(settings)
            self.engine.begin()
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> LedgerFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.engine is not None:
            self.engine.close()
        self._release()

    def record(self) -> None:
        """Write the changes down, for good: from here on the releases count as published.

        Raises
        ------
        EngineError
            If the file cannot be written; it is as it was then.
        """
        self.engine.commit()
        self.engine.use_source()
        self.engine.finish_database(CATALOG)
        made = self._folder.bring(self._aside)
        try:
            os.chmod(made, 0o600)
            _flush(made)
            if not self.fresh:
                shutil.copy2(self.path, self._before)
            self._mark.touch(mode=0o600)
            self._recorded = True
            os.replace(made, self.path)
            _flush(self.path.parent)
        except OSError as error:
            self.restore()
            raise EngineError(f"{_OPTION}: {self.path} cannot be written ({error.strerror})") from None

    def restore(self) -> None:
        """Put the old ledger back: publishing failed, and nothing of it was published.

        Where that fails, too, the mark stays, and the releases count as published.
        """
        if not self._recorded:
            return
        with suppress(OSError):
            if self.fresh:
                self.path.unlink(missing_ok=True)
            else:
                os.replace(self._before, self.path)
            if not self.interrupted:
                self._mark.unlink(missing_ok=True)
            self._recorded = False

    def confirm(self) -> None:
        """The releases were published."""
        self._mark.unlink(missing_ok=True)

    def _refuse_place(self) -> None:
        try:
            self._refuse_unfit()
        except OSError as error:
            said = error.strerror or "unknown reason"
            raise JobError.at(_OPTION, f"{self.path} cannot be looked up ({said}); name another file") from None

    def _refuse_unfit(self) -> None:
        if not self.path.parent.is_dir():
            raise JobError.at(_OPTION, f"there is no folder {self.path.parent}; make it first")
        if self.path.exists() and not self.path.is_file():
            raise JobError.at(_OPTION, f"{self.path} is not a file")
        if self.path.with_name(f"{self.path.name}.wal").exists():
            raise EngineError(f"{_OPTION}: {self.path} is open in another program, or was not closed by it")

    def _unlock(self) -> None:
        """Let go of the lock; its file stays beside a ledger, so that the next run locks the same one."""
        lock = Path(self._lock.lock_file)
        if not self.path.exists() and not self._mark.exists():
            lock.unlink(missing_ok=True)
        self._lock.release()

    def _claim(self) -> FileLock:
        """A lock that only one run holds; the file stays, so that the next run locks the same one."""
        path = self.path.with_name(f"{self.path.name}.lock")
        try:
            return hold(path)
        except Timeout:
            by = f" ({holder})" if (holder := held_by(path)) else ""
            raise EngineError(f"{_OPTION}: another run uses {self.path}{by}; run one after the other") from None
        except OSError as error:
            advice = f"; {advise(path)}" if os.path.lexists(path) else ""
            raise EngineError(f"{_OPTION}: {path} cannot be locked ({error.strerror}){advice}") from None

    def _copy(self) -> None:
        if self.fresh:
            return
        try:
            shutil.copyfile(self.path, self._aside)
        except OSError as error:
            raise EngineError(f"{_OPTION}: {self.path} cannot be read ({error.strerror})") from None

    def _open(self, settings: Settings) -> DuckDBEngine:
        try:
            engine = open_private(self._aside, self._folder.path, settings)
            if not self.fresh:
                read_through(engine)
            return engine
        except (EngineError, JobError):
            if self.fresh:
                raise
            raise JobError.at(
                _OPTION,
                f"{self.path} is not a ledger, or is damaged; bring the newest copy back, for a new one "
                "would not know what was released",
            ) from None

    def _release(self) -> None:
        self._folder.__exit__()
        self._unlock()


def _flush(path: Path) -> None:
    """Have the disk hold a file, or a folder's entries."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
