"""The secret key of pseudonyms: read from a file or the environment, held in memory, written nowhere.

Job, release, log, result and messages never hold it, nor does any SQL text, table or spill file: hashing is done in
this process, so that no server and no query log ever sees it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqldeid.errors import JobError

VARIABLE = "SQLDEID_KEY"
"""The environment variable that holds the key where no file is named."""

MIN_BYTES = 32
_MAX_CHARACTERS = 4096
_MIN_DIFFERENT = 8
"""Different bytes that a key must have at least: 32 random ones nearly always have 25 or more."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_MAKE = "make one with: openssl rand -hex 32"


class Key:
    """A secret key for HMAC-SHA-256. It shows itself to nobody: no text, no `repr`, no pickle.

    Parameters
    ----------
    secret
        At least 32 bytes.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_BYTES:
            raise JobError(f"the key has {len(secret)} bytes; it needs at least {MIN_BYTES}; {_MAKE}", key="--key-file")
        self._secret = bytes(secret)

    def __repr__(self) -> str:
        return "Key(secret)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not written anywhere")

    def hasher(self, scope: bytes) -> Callable[[bytes], str]:
        """HMAC-SHA-256(key, scope ‖ message) of messages, as 64 hexadecimal digits; the scope is hashed once.

        Source
            RFC 2104, §4: keyed states may be computed once and used for many messages.
        """
        block = hashlib.sha256(self._secret).digest() if len(self._secret) > 64 else self._secret
        padded = block.ljust(64, b"\0")
        inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded) + scope)
        outer = hashlib.sha256(bytes(b ^ 0x5C for b in padded))

        def digest(message: bytes) -> str:
            first, second = inner.copy(), outer.copy()
            first.update(message)
            second.update(first.digest())
            return second.hexdigest()

        if not hmac.compare_digest(digest(b""), hmac.digest(self._secret, scope, "sha256").hex()):
            raise AssertionError("the keyed hash differs from the standard library's")
        return digest


def read_key(file: Path | None = None) -> Key | None:
    """The key from a file, else from the environment variable SQLDEID_KEY; None where neither is given.

    Parameters
    ----------
    file
        Holds at least 64 hexadecimal digits (32 bytes), and white space around them at most.

    Raises
    ------
    JobError
        If it cannot be read, is too short, or is no key at all. What it holds is never told.
    """
    if file is not None:
        return _parse(_read(file), f"--key-file: {file}", "--key-file")
    given = os.environ.get(VARIABLE, "")
    return _parse(given, f"the environment variable {VARIABLE}", VARIABLE) if given else None


def is_key(file: Path) -> bool:
    """Whether a file holds a key that `read_key` takes."""
    try:
        return file.is_file() and bool(_parse(_read(file), str(file), "--key-file"))
    except (OSError, JobError):
        return False


def state_key() -> Key | None:
    """The random key of this user on this machine, made once; None where there is no place to keep it.

    By it notes on releases say whether a source has changed since: to whoever reads a release they say nothing.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "sqldeid"
        file = folder / "key"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            _make_once(file)
        return _parse(_read(file), f"{file}", "--key-file")
    except (OSError, RuntimeError, JobError):  # no home, a full disk, a damaged file: nothing is known then
        return None


def _make_once(file: Path) -> None:
    """Write a random key; of two programs that do so at once the first one's stays."""
    number, name = tempfile.mkstemp(dir=file.parent, prefix="key.")
    try:
        with os.fdopen(number, "w") as opened:
            opened.write(secrets.token_hex(MIN_BYTES) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        os.unlink(name)


def key_warnings(file: Path | None) -> list[str]:
    """What is to be said of a key file: that others than its owner may read it."""
    try:
        mode = 0 if file is None else stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return []  # whoever needs the key says that it cannot be read
    if os.name != "posix" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return []
    return [f"--key-file: {file} may be read by others than its owner; who has the key can undo hashes: chmod 600 it"]


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_CHARACTERS + 1).decode("ascii", errors="replace")
    except OSError as error:
        raise JobError.at("--key-file", f"{file} cannot be read ({error.strerror})") from None


def _parse(text: str, where: str, key: str) -> Key:
    digits = text.strip()
    if len(text) > _MAX_CHARACTERS or not _HEX.fullmatch(digits):
        raise JobError(f"{where} does not hold a key in hexadecimal digits; {_MAKE}", key=key)
    secret = bytes.fromhex(digits)
    if len(secret) < MIN_BYTES:
        raise JobError(
            f"{where} holds a key of {len(secret)} bytes; it needs at least {MIN_BYTES} ({2 * MIN_BYTES} hexadecimal "
            f"digits); {_MAKE}",
            key=key,
        )
    if len(set(secret)) < _MIN_DIFFERENT:
        raise JobError(f"{where} holds a key that repeats itself, which anybody may guess; {_MAKE}", key=key)
    return Key(secret)
