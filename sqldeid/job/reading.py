"""Read a job from a file or a mapping: encoding, TOML syntax, and the hash that names the job."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime, time
from pathlib import Path

from pydantic import BaseModel

from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.job.problems import dotted

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_MANY_DIGITS = re.compile(r"[0-9][0-9_]{4299}")  # Python converts fewer; tomllib then gives no place
_MOST = 1 << 24
"""Bytes of a job."""
_KEYS = re.compile(r"'([^']*)'")

_OF_A_NAME = (
    "Expected '=' after a key",
    "Invalid statement",
    "Invalid initial character for a key part",
    "Expected ']' at the end of a table declaration",
)
"""How tomllib begins where a name should have stood in quotes, among others."""
_HEADER = re.compile(r"(\s*\[{1,2})([^\]]+)(\]{1,2})")
_COMMA = re.compile(r"""=\s*([+-]?[0-9]+),([0-9]+)\s*(?=[,}#]|$)""")
_BARE = re.compile(r"""[^\W\d][^"'\[\]{},#=\\]*(?=[,\]}#]|$)""")
_LONG = 200
"""A line of a job that is longer is not said once more."""

_CLEARER = (
    ("Cannot declare", "is there twice; two sections may not have one name: merge or rename one"),
    ("Cannot overwrite", "a key or section is there twice; merge or rename one"),
    ("Duplicate inline table key", "a key is there twice in one { … }; remove one"),
    ("Cannot mutate immutable namespace", "adds to a table that was written whole as { … }; write all in one place"),
)


def read_bytes(file: Path) -> bytes:
    """The content of a job file; whatever stops it is a `JobError` that says what."""
    try:
        return read_limited(file, _MOST)
    except FileNotFoundError:
        reason = "there is no such file; give the path of a job file (`sqldeid demo` writes one to start from)"
    except IsADirectoryError:
        reason = "is a folder; give the path of a job file in it"
    except PermissionError:
        reason = "may not be read; check the file's permissions"
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except ValueError:
        reason = "is not a path; it holds a NUL character"
    raise JobError(f"{_printable(file)}: {reason}", key="job")


def read_toml(content: bytes, name: str) -> dict[str, object]:
    """Parse TOML in UTF-8, with or without a byte order mark.

    Raises
    ------
    JobError
        Names file, line and column.
    """
    try:
        text = content.decode("utf-8-sig")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        if content[8:12] == b"DUCK" or content.startswith((b"PAR1", b"SQLite format 3")):
            raise JobError(
                f"{name}: is a database, not a job file; the order is: sqldeid COMMAND DB --job FILE", key="job"
            ) from None
        line = content.count(b"\n", 0, error.start) + 1
        raise JobError(f"{name}, line {line}: the file is not in UTF-8; save it as UTF-8", key="job") from None
    except RecursionError:
        raise JobError(f"{name}: lists or tables are nested too deeply", key="job") from None
    except ValueError as error:
        raise JobError(_syntax(str(error), name, text), key="job") from None


def _syntax(message: str, name: str, text: str) -> str:
    """The sentence for an error of tomllib, e.g. ``Invalid statement (at line 3, column 5)``."""
    at = _AT.search(message)
    if at is None:
        digits = _MANY_DIGITS.search(text)
        return f"{name}, {_place(text, digits.start() if digits else 0)}: a number has too many digits"
    place = f"line {at[1]}, column {at[2]}" if at[1] else _place(text, len(text))
    said = message[: at.start()]
    for start, clearer in _CLEARER:
        if said.startswith(start):
            section = f"[{dotted(_KEYS.findall(said))}] " if "(" in said else ""
            return f"{name}, {place}: {section}{clearer}"
    line = text.split("\n")[int(at[1]) - 1] if at[1] else ""
    if line and (clearer := _of_a_value(line, int(at[2]) - 1, said)):
        return f"{name}, {place}: this is not valid TOML: {clearer}"
    mended = _quoting(line, int(at[2]) - 1) if line and said.startswith(_OF_A_NAME) else ""
    why = f"; a name with a blank, or any sign but a-z, A-Z, 0-9, _ and -, stands in quotes: {mended}" if mended else ""
    return f"{name}, {place}: this is not valid TOML: {said[:1].lower()}{said[1:]}{why}"


def _of_a_value(line: str, at: int, said: str) -> str:
    """What to write for a number with a comma, and for text without quotes; empty where it is neither."""
    for number in _COMMA.finditer(line):
        if number.start(1) < at <= number.end() + 1:
            return f"a number has a point, no comma: {number[1]}.{number[2]}"
    value = _BARE.match(line, at) if said.startswith("Invalid value") else None
    if value is None or len(value[0]) > _LONG or not value[0].isprintable():
        return ""
    if value[0].casefold() in ("true", "false"):
        return f"true and false are written small: {value[0].casefold()}"
    return f'text stands in quotes: "{value[0].strip()}"'


def _quoting(line: str, at: int) -> str:
    """The line with quotes round the name at which it stopped being TOML; empty where these do not mend it."""
    header = _HEADER.match(line)
    start = max(line.rfind("{", 0, at), line.rfind(",", 0, at)) + 1
    end = len(line) if header else line.find("=", at)
    names = header[2] if header else line[start:end].strip()
    if end < 0 or not names or not names.isprintable() or any(sign in names for sign in "\"'{}"):
        return ""
    parts = [names] if ". " in names and not header else [part.strip() for part in names.split(".")]
    name = dotted(parts)
    if header:
        mended = short = f"{header[1]}{name}{header[3]}"
    else:
        mended, short = f"{line[:start]} {name} {line[end:]}".strip(), f"{name} = …"
    try:
        tomllib.loads(mended)
    except ValueError:
        return "" if header or name == names else short
    return mended if len(mended) <= _LONG and mended.isprintable() else short


def _place(text: str, offset: int) -> str:
    before = text[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"


def plain(data: Mapping[str, object], name: str) -> dict[str, object]:
    """Copy a mapping into dicts and lists, so that no later change of it reaches the job.

    Raises
    ------
    JobError
        If a key is not text, or the mapping holds itself.
    """
    if not isinstance(data, Mapping):
        raise JobError(f"{name}: a job must be a mapping of sections", key="job")
    try:
        return _mapping(data, name)
    except RecursionError:
        raise JobError(f"{name}: lists or tables are nested too deeply", key="job") from None


def _mapping(data: Mapping[str, object], name: str) -> dict[str, object]:
    if not all(isinstance(key, str) for key in data):
        raise JobError(f"{name}: every key must be text", key="job")
    return {key: _plain(value, name) for key, value in data.items()}


def _plain(value: object, name: str) -> object:
    if isinstance(value, BaseModel):  # a part of `sqldeid.build`
        return _mapping(value.model_dump(by_alias=True, exclude_unset=True), name)
    if isinstance(value, Mapping):
        return _mapping(value, name)
    if isinstance(value, (list, tuple)):
        return [_plain(item, name) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "numpy":  # scalars and lists, as pipelines compute them
        own = value.tolist()  # type: ignore[attr-defined]
        return [_plain(item, name) for item in own] if isinstance(own, list) else own
    if isinstance(value, datetime) and type(value) is not datetime:  # a Timestamp of pandas
        moment = datetime.combine(value.date(), value.time(), value.tzinfo)
        return moment if moment.time() != time() or moment.tzinfo else moment.date()
    return value


def canonical(data: Mapping[str, object]) -> str:
    """SHA-256 of a valid job as JSON with sorted keys and no spaces: 64 hexadecimal digits."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)  # TOML has dates
    return hashlib.sha256(text.encode()).hexdigest()


def _printable(file: Path) -> str:
    text = str(file)
    return text if text.isprintable() else text.encode("unicode_escape").decode()
