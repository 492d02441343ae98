"""Standard output and error, which may be full, closed, or without a reader; none of these is a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar, cast

from sqldeid.errors import EngineError

T = TypeVar("T")
STDOUT = "standard output"
"""Key of the error that standard output cannot be written."""


class Output:
    """A text stream whose failures are errors of ours; once its reader has left, what is written goes nowhere.

    So a command comes to its own end, with its own exit code, whoever listens (`… | head`).

    Attributes
    ----------
    left
        Whether the reader has.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.left = False

    def write(self, text: str) -> int:
        """Write, as the stream does."""
        return self._told(lambda: self._stream.write(text), len(text))

    def flush(self) -> None:
        """Flush, as the stream does."""
        self._told(self._stream.flush, None)

    def _told(self, work: Callable[[], T], instead: T) -> T:
        try:
            return work()
        except BrokenPipeError:
            self.left = True
            _write_nowhere(self._stream)
            return instead
        except OSError as error:
            raise EngineError(f"{STDOUT} cannot be written: {error.strerror}", key=STDOUT) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def reader_left() -> bool:
    """Whether what read standard output has left before the end."""
    sys.stdout.flush()
    return bool(getattr(sys.stdout, "left", False))


def _write_nowhere(stream: TextIO) -> None:
    """Let a file go on as one that nobody reads; a stream that is no file needs no closing."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def guarded() -> Iterator[None]:
    """Standard output as an `Output`; streams that the caller closed are opened on nothing."""
    before = sys.stdout, sys.stderr
    if sys.stdout is None:  # opened for reading: what is written there is refused, not lost
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # it is open as long as the program
    for stream in (sys.stdout, sys.stderr):  # a character too many is no reason to fail
        _reconfigure(stream, errors="replace")
    sys.stdout = cast(TextIO, Output(sys.stdout))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def in_utf8() -> None:
    """Write standard output as UTF-8 from here on: what is printed is a file's content."""
    _reconfigure(sys.stdout, encoding="utf-8")


def _reconfigure(stream: TextIO, **settings: str) -> None:
    """A stream that somebody put in place of a file, such as a `StringIO`, has nothing to set."""
    change = getattr(stream, "reconfigure", None)
    if change is not None:
        change(**settings)


def close_streams() -> None:
    """Let go of streams that cannot be written, so that Python does not complain when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, EngineError):
            _write_nowhere(stream)
