r"""Find paths that DuckDB does not read as the name of one file, and give them a plain name.

    in the path     DuckDB (1.4 and 2.0)
    * ? [           a reader of files takes the path for a pattern: ``a[1].csv`` is ``a1.csv``
    \               the same, and ATTACH of 2.0 reads it as ``/``
    ?               the log of a database that is written lies where access is closed
    no UTF-8        the driver fails with an error of its own
    k=v             a folder of that name becomes a column (the templates turn that off)

An escaped pattern is none where access is closed: what is allowed is compared with the pattern's text. So a file whose
path is not plain is read under a plain name: a link in a private folder, or a copy where no link can be made.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from sqldeid.engine.folder import PrivateFolder, for_temporary_files
from sqldeid.errors import EngineError, JobError

_PATTERN = re.compile(r"[*?\[\\]")
_ENDINGS = re.compile(r"(\.[A-Za-z0-9]+){1,2}$")


def is_utf8(path: Path) -> bool:
    """Whether a path can be written in a statement at all."""
    return _encodes(os.path.abspath(path))


def is_plain(path: Path) -> bool:
    """Whether DuckDB takes a path, from the root, for that file and no other."""
    text = os.path.abspath(path)
    return _encodes(text) and not _PATTERN.search(text)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_unattachable(path: Path, *, writing: bool, key: str = "") -> None:
    """Refuse a database that DuckDB would look for elsewhere, or could not write.

    Raises
    ------
    JobError
        If it is one, or a link to one.
    """
    for text in (os.path.abspath(path), os.path.realpath(path)):
        if not _encodes(text) or "\\" in text:
            raise JobError(
                f"{key}{': ' if key else ''}DuckDB cannot open a database whose path holds \\ or bytes that are not "
                "UTF-8; rename it, or the folder that it lies in",
                key=key,
            )
        if writing and "?" in text:
            raise JobError(
                "DuckDB cannot write a database whose path holds ?; rename it, or the folder that it lies in, or name "
                "another place in release.into",
                key="release.into",
            )


def refuse_as_temporary(folder: Path) -> None:
    """Refuse a folder in which DuckDB's spill files would lie elsewhere.

    Raises
    ------
    JobError
        If it is one.
    """
    text = os.path.abspath(folder)
    if not _encodes(text) or "\\" in text:
        raise JobError(
            f"{folder}: DuckDB cannot use a folder for temporary files whose path holds \\ or bytes that are not "
            "UTF-8; name another one with --temp-dir",
            key="--temp-dir",
        )


class Workshop:
    """A private folder beside what it will replace, and one with a plain path in which DuckDB can work.

    Parameters
    ----------
    beside
        As `PrivateFolder` has it.
    elsewhere
        Where the second folder is made if the first has no plain path; None for the system's.

    Attributes
    ----------
    path
        Where DuckDB works.
    beside
        Where what is made can be renamed into place from.
    """

    def __init__(self, beside: Path, parent: Path | None = None, elsewhere: Path | None = None) -> None:
        self._beside = PrivateFolder(beside, parent)
        self._other: PrivateFolder | None = None
        self.path = self.beside = self._beside.path
        if not is_plain(self.path):
            try:
                self._other = PrivateFolder(Path("work"), _plain_parent(beside.parent, elsewhere))
            except BaseException:
                self._beside.__exit__()
                raise
            self.path = self._other.path

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        if self._other is not None:
            self._other.__exit__()
        self._beside.__exit__()

    def bring(self, made: Path) -> Path:
        """What was made in `path`, a file or a folder, where it can be renamed into place from.

        Raises
        ------
        EngineError
            If it cannot be copied there.
        """
        if self._other is None:
            return made
        there = self._beside.path / made.name
        try:
            shutil.copytree(made, there) if made.is_dir() else shutil.copy2(made, there)
        except (OSError, shutil.Error) as error:
            reason = getattr(error, "strerror", None) or "some files were not copied"
            raise EngineError(f"{there.parent.parent}: cannot be written ({reason})") from None
        return there


class Lent:
    """Plain names for files of the user's, as long as an engine is open."""

    def __init__(self, elsewhere: Path | None = None) -> None:
        self._elsewhere = elsewhere
        self._folders: dict[Path, PrivateFolder] = {}
        self._names: dict[Path, Path] = {}

    @property
    def folders(self) -> list[Path]:
        """Where they lie."""
        return [folder.path for folder in self._folders.values()]

    def path(self, path: Path, *, lasting: bool = True) -> Path:
        """A path of this file that DuckDB reads as this file and no other.

        Parameters
        ----------
        lasting
            Whether the file is still read once access to all others is closed: what a symbolic link points to would
            be refused then.

        Raises
        ------
        JobError
            If there is no place for one.
        EngineError
            If the file cannot be read.
        """
        path = Path(os.path.abspath(path))
        if is_plain(path):
            return path
        if path not in self._names:
            self._names[path] = self._lend(path, lasting)
        return self._names[path]

    def _lend(self, path: Path, lasting: bool) -> Path:
        parent = _plain_parent(path.parent, self._elsewhere)
        if parent not in self._folders:
            self._folders[parent] = PrivateFolder(Path("file"), parent)
        found = _ENDINGS.search(path.name)
        there = self._folders[parent].path / f"{len(self._names)}{found[0] if found else ''}"
        try:
            if not lasting:
                there.symlink_to(path)
            else:
                _link(Path(os.path.realpath(path)), there)
        except OSError as error:
            raise EngineError(f"{path}: the file cannot be read ({error.strerror})") from None
        return there

    def close(self) -> None:
        """Take them back."""
        while self._folders:
            self._folders.popitem()[1].__exit__()
        self._names.clear()


def _link(path: Path, there: Path) -> None:
    try:
        os.link(path, there)
    except OSError:  # another file system, or another user's file
        shutil.copyfile(path, there)


def _is_usable(folder: Path) -> bool:
    return is_plain(folder) and os.access(folder, os.W_OK)


def _plain_parent(folder: Path, elsewhere: Path | None) -> Path:
    """A folder with a plain path in which private ones may be made; the first of those that could be meant."""
    for parent in (elsewhere, Path(os.path.abspath(folder))):
        if parent is not None and _is_usable(parent):
            return Path(os.path.abspath(parent))
    system = for_temporary_files()
    if _is_usable(system):
        return system
    raise JobError(
        f"{folder}: DuckDB reads * ? [ and \\ in a path as a pattern, and no path that is not UTF-8, and the folder "
        f"for temporary files ({system}) has such a path, too, or cannot be written; name another one with --temp-dir",
        key="--temp-dir",
    )
