"""Write the file that an option names: a stream directly, a file aside, then renamed to its place as a whole."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
import tempfile
from pathlib import Path

from sqldeid.errors import EngineError, JobError

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
_NAMED = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}


def is_stdout(target: str) -> bool:
    """Whether it is standard output: `-`, or by one of its other names."""
    return _descriptor(target) == 1


def is_stream(target: str) -> bool:
    """Whether it is an open descriptor, a pipe or a device: nothing there can be replaced, nor is anything lost."""
    return _descriptor(target) is not None or (os.path.exists(target) and not os.path.isfile(target))


def _descriptor(target: str) -> int | None:
    """The number of the open file that a name stands for."""
    found = _DESCRIPTOR.fullmatch(target)
    return int(found[1]) if found else _NAMED.get(target)


def check_output(option: str, target: str) -> None:
    """Refuse what cannot be written.

    Raises
    ------
    JobError
        If it is a folder, a disk, a socket, closed or protected, or its folder is missing or protected.
    """
    number = _descriptor(target)
    reason = _closed(target, number) if number is not None else _unfit(target)
    if reason:
        raise JobError.at(option, reason)


def _closed(target: str, number: int) -> str:
    """Why an open file cannot be written."""
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return f"{target} is not open"
    return f"{target} is open for reading only" if mode == os.O_RDONLY else ""


def _unfit(target: str) -> str:
    """Why a file cannot be written; that is where a link points."""
    real = os.path.realpath(target)
    if os.path.isdir(real):
        return f"{target} is a folder; name a file"
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}; make it first"
    if os.path.islink(real):
        return f"{target} is a link to itself; name a file"
    if not os.path.exists(real) or os.path.isfile(real):
        if not os.access(folder, os.W_OK):
            return f"the folder {folder} may not be written"
    elif not (stat.S_ISFIFO(mode := os.stat(real).st_mode) or stat.S_ISCHR(mode)):
        return f"{target} is a disk or a socket; name a file"
    return f"{target} may not be written" if os.path.exists(real) and not os.access(real, os.W_OK) else ""


PAGE = frozenset({".html", ".htm"})
JSON = frozenset({".json"})
JOB = frozenset({".toml"})
CSV = frozenset({".csv"})
DATABASE = frozenset({".duckdb", ".ddb", ".db"})
_TEXTS = frozenset({".md", ".markdown", ".rst", ".tex", ".xml", ".yaml", ".yml", ".odt", ".docx", ".pdf"})
_SHEETS = frozenset({".tsv", ".parquet", ".ods", ".xlsx", ".xls"})
_KNOWN = frozenset({*PAGE, *JSON, *JOB, *CSV, *DATABASE, *_TEXTS, *_SHEETS, ".png", ".svg", ".zip"})
"""Endings that say what is in a file; one that says nothing is left to the user."""


def refuse_kind(option: str, target: str | None, kinds: frozenset[str]) -> None:
    """Refuse a file whose name promises another format than is written.

    Parameters
    ----------
    kinds
        The endings that are right.

    Raises
    ------
    JobError
        If the ending is that of something else.
    """
    if target is None or is_stream(target):
        return
    ending = Path(target).suffix.casefold()
    if ending in kinds or ending not in _KNOWN:
        return
    print_it = " Print the page to PDF from a browser." if ending == ".pdf" and kinds >= PAGE else ""
    wanted = " or ".join(sorted(kinds, key=lambda e: (e != min(kinds, key=len), e)))
    if kinds == PAGE | JSON:  # the name chooses between two formats
        wanted = ".html, for a page, or in .json"
    raise JobError.at(option, f"what is written there ends in {wanted}; {target} does not.{print_it}")


def write_text(target: str, text: str) -> None:
    """Write a text: straight into a stream; else aside, and renamed into place, where a link points.

    Raises
    ------
    EngineError
        If it cannot be written.
    """
    try:
        if is_stdout(target):
            sys.stdout.write(text)
            sys.stdout.flush()
        elif is_stream(target):
            _write_through(target, text)
        else:
            _put_in_place(Path(os.path.realpath(target)), text.encode())
    except OSError as error:
        raise EngineError(f"{target}: cannot be written ({error.strerror})") from None


def write_bytes(target: str, content: bytes) -> None:
    """Write a file that is no text: aside, and renamed into place, where a link points.

    Raises
    ------
    EngineError
        If it cannot be written.
    """
    try:
        _put_in_place(Path(os.path.realpath(target)), content)
    except OSError as error:
        raise EngineError(f"{target}: cannot be written ({error.strerror})") from None


def _write_through(target: str, text: str) -> None:
    number = _descriptor(target)
    with open(target if number is None else os.dup(number), "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _put_in_place(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
        aside = Path(file.name)
        try:
            file.write(content)
            file.close()
            os.chmod(aside, _mode(path))
            os.replace(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced; of a new one, its owner's only: it is for the data holder."""
    return path.stat().st_mode & 0o777 if path.exists() else 0o600
