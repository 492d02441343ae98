"""Say what is wrong with a CSV file that DuckDB does not read: it does not always name the line, or the flaw."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import IO, cast

SEPARATORS = ",;\t|"
MALFORMED = "the file is no CSV: a line has more or fewer fields than the header, or a quote does not end"
_BEGINNING = 4096
_MARKS = (b"\xff\xfe", b"\xfe\xff")


def wide(path: Path, *, marked: bool = True) -> str | None:
    """What to do about a file in UTF-16, which no byte order mark may tell; None where it is not in UTF-16.

    Parameters
    ----------
    marked
        Whether only a byte order mark counts, which no file in UTF-8 begins with; else many NUL bytes do, too.
    """
    try:
        with gzip.open(path, "rb") if _packed(path) else path.open("rb") as file:
            head = file.read(_BEGINNING)
    except (OSError, EOFError):
        return None
    kind = "UTF-16" if head.startswith(_MARKS) else None
    if kind is None and not marked and 4 * head.count(0) >= len(head) > 0:
        kind = "UTF-16BE" if head[0] == 0 else "UTF-16LE"
    if kind is None:
        return None
    name, turn = quote(str(path)), f"iconv -f {kind} -t UTF-8"
    reads = f"gzip -dc {name} | {turn}" if _packed(path) else f"{turn} {name}"
    return (
        "the file is in UTF-16 (so spreadsheets write Unicode text), and UTF-8 is read; save it as CSV UTF-8, or "
        f"convert it: {reads} > utf8.csv"
    )


def flaw(path: Path) -> str:
    """What is wrong with a file that is not read, with the line where it can be found; no data.

    Cost: two readings of the file at most.
    """
    if (told := wide(path, marked=False)) is not None:
        return told
    try:
        return next(_flaws(path), MALFORMED)
    except (OSError, EOFError):
        return MALFORMED


def _packed(path: Path) -> bool:
    return path.suffix.casefold() == ".gz"


def _flaws(path: Path) -> Iterator[str]:
    with _text(path) as file:
        header = file.readline()
        separator = max(SEPARATORS, key=header.count)
        try:
            wanted = len(next(csv.reader([header], delimiter=separator), []))
        except csv.Error:
            return
        reader = csv.reader(file, delimiter=separator, strict=True)
        line = 2  # on which the row begins that is read next
        try:
            for row in reader:
                if row and len(row) != wanted:
                    yield f"line {line} has more or fewer fields than the header; mend that line"
                line = reader.line_num + 2
        except csv.Error as error:
            if "expected after" in str(error):
                yield f"line {line}: a quote ends before its field does; write a quote within a quoted field twice"
            else:  # the end of the file, or a field longer than any
                yield f"line {line}: a quote begins and does not end; end it, or write a quote within a field twice"
    yield from _mixed_ends(path)


def _mixed_ends(path: Path) -> Iterator[str]:
    """Lines outside quotes that end otherwise than the header."""
    ends, others, first, within, number = "", 0, 0, False, 0
    with _text(path) as file:
        for number, line in enumerate(file, start=1):
            within ^= line.count('"') % 2 == 1
            end = line[len(line.rstrip("\r\n")) :]
            if number == 1:
                ends = end
            elif end and end != ends and not within:
                others, first = others + 1, first or number
    if others:
        yield (
            f"the line ends are mixed: {others:,} of {number:,} lines end otherwise than the header (CRLF and LF), the "
            f"first of them is line {first}; write all alike: sed -i 's/\\r$//' {quote(str(path))}"
        )


def _text(path: Path) -> IO[str]:
    if _packed(path):
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8", errors="replace", newline=""))
    return path.open(encoding="utf-8", errors="replace", newline="")
