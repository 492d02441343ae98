"""One run at a time writes to a file or folder, and none replaces there what it has not seen.

    a run into NAME                     another run of sqldeid              another program
    locks .NAME.sqldeid-lock beside it  stops: NAME is being written        knows of no lock
    looks at what stands there          stops                               may change it
    makes and verifies its releases     stops                               may change it
    compares what stands there          stops                               what it changed is found, and stays
    renames its own into place          stops                               an instant is left to it (`os.replace`)
    removes and releases the lock       finds what the first one published

So what a run was allowed on the strength of what it saw (the same source, the same persons, the ledger, releases that
are carried over) is still so when it publishes. The lock goes with the process that holds it, however that ends; a file
of it that a killed one leaves locks none of the same user's runs out. Others may not open it, so that they cannot know,
and are told whose it is and how it goes (`sqldeid.engine.lock.advise`).

Does not protect
    Two machines on a file system that keeps their locks apart. Releases at two places: of the other nothing is known.

Source: engines.md, *Publishing*; soundness.md 18.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from sqldeid.engine.folder import PrivateFolder, is_private, short_name
from sqldeid.engine.lock import advise, held_by, hold
from sqldeid.errors import EngineError, JobError

KEY = "release.into"
_TRIES = 3
"""As often as the file is gone that was to be locked: who held it has ended."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
Seen = tuple[object, ...]
"""What tells whether a file or folder was changed or replaced; of a folder also the names in it, with the same."""


@contextmanager
def reserved(into: Path) -> Iterator[bool]:
    """Keep other runs from a file or folder, however its path is spelt; whether that is so.

    It is not where no file can be made beside it (`refuse_unheld`).

    Raises
    ------
    JobError
        If it is the root of all folders, beside which there is nothing.
    EngineError
        If another run writes there, or that cannot be known.
    """
    places = sorted(_places(into))
    if not all(place.name for place in places):
        raise JobError.at(KEY, f"{into} is the root of all folders; name a file or folder in it")
    with ExitStack() as held:
        locks: list[FileLock | None] = []
        for place in places:
            locks.append(_lock(place, into))
            if locks[-1] is not None:
                held.callback(_release, locks[-1], os.getpid())
        yield None not in locks


def refuse_unheld(into: Path) -> None:
    """Refuse a place that could not be held: as one where nothing can be made, if it is one.

    Raises
    ------
    EngineError
        Always.
    """
    with PrivateFolder(into):
        raise EngineError(
            f"{KEY}: whether another run of sqldeid is writing to {into} cannot be known, for no lock can be made "
            "beside it; run again, or name another place",
            key=KEY,
        )


def look(into: Path) -> Seen | None:
    """What stands at a place; None where nothing does."""
    try:
        found = [_told(os.lstat(into))]
        if into.is_symlink():
            found.append(_told(os.stat(into)))
        if into.is_dir():
            found += [(e.name, *_told(e.stat(follow_symlinks=False))) for e in _entries(into)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EngineError(f"{KEY}: {into} cannot be looked up ({error.strerror})", key=KEY) from None
    return tuple(found)


def refuse_changed(into: Path, seen: Seen | None, there: Path | None = None) -> None:
    """Refuse to replace what is no longer what this run looked at.

    Parameters
    ----------
    there
        Where it lies by now, if it was set aside.

    Raises
    ------
    JobError
        If another program changed it, or put something else in its place.
    """
    if look(there or into) != seen:
        raise JobError.at(
            KEY,
            f"{into} was changed by another program while this run was under way, so it stays as it is and nothing was "
            "published; look at what is there, and run again",
        )


def _places(into: Path) -> set[Path]:
    """The entry that is replaced, whatever its folder is called, and what it points to, where it is a link."""
    real = Path(os.path.realpath(into))
    entry = Path(os.path.realpath(into.parent)) / into.name if into.name not in ("", "..") else real
    return {entry, real}


def _lock(place: Path, into: Path) -> FileLock | None:
    """The lock of one place; None where none can be made."""
    path = place.with_name(f".{short_name(place.name)}.sqldeid-lock")
    if not path.parent.is_dir():  # some filelocks would make it
        return None
    for _ in range(_TRIES):
        try:
            return hold(path)
        except Timeout:
            if os.path.lexists(path):
                by = f" ({holder} holds the lock)" if (holder := held_by(path)) else ""
                raise EngineError(
                    f"{KEY}: another run of sqldeid is writing to {into}; run this one when that has ended, or name "
                    f"another place{by}",
                    key=KEY,
                ) from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                with suppress(OSError):
                    path.unlink()
            if os.path.lexists(path):
                raise EngineError(
                    f"{KEY}: whether another run of sqldeid is writing to {into} cannot be known, for {path} cannot be "
                    f"locked ({error.strerror}); {advise(path)}",
                    key=KEY,
                ) from None
    return None


def _release(lock: FileLock, holder: int) -> None:
    """Let others in; the file goes first, while nobody else can hold it (`sqldeid.engine.lock`)."""
    if os.getpid() != holder:
        return
    with suppress(OSError):
        os.unlink(lock.lock_file)
    lock.release()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted((e for e in found if not is_private(e.name)), key=lambda e: e.name)


def _told(of: os.stat_result) -> Seen:
    """A changed mode is no change: who may read a release may be said at any time."""
    if stat.S_ISDIR(of.st_mode):
        return of.st_dev, of.st_ino
    return of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns
