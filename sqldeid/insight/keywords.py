"""Words in free text as regular expressions that three engines read alike: RE2's, Postgres' and Java's.

RE2 is told to pass over case. What others take for the same letter is another set, and in Postgres goes by collations:
there each letter stands with its other forms, and in Postgres every letter and digit of Unicode by its number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache

from sqldeid.errors import JobError

_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_CLASSES = r"[^\pL\pN_]"
_PLANES = 0x20000
"""Beyond it Unicode has ideographs, and then nothing that stands in a word."""

_IDEOGRAPHS = (0x20000, 0x3FFFD)


def pattern(group: str, words: tuple[str, ...], dialect: str = "duckdb") -> str:
    """One regular expression for a group of words; a word's ends are no letters, digits or underscores.

    Parameters
    ----------
    dialect
        The engine that reads it; in DuckDB it is used with ``i``.

    Raises
    ------
    JobError
        If there is no word, or an empty one.
    """
    if not words or not all(word.strip() for word in words):
        raise JobError.at("--keywords", f"{group} has no word, or an empty one; give at least one character")
    spelt = "|".join("".join(_spelt(c, folding=dialect != "duckdb") for c in word.strip()) for word in words)
    if dialect == "postgres":  # a server that keeps its text otherwise does not take every letter of Unicode
        spelt = "".join(c if c.isascii() else _numbered(ord(c)) for c in spelt)
    other = _others() if dialect == "postgres" else _CLASSES
    return rf"(?:^|{other})(?:{spelt})(?:$|{other})"


def _spelt(character: str, *, folding: bool) -> str:
    forms = _forms().get(_folded(character), "") if folding else ""
    if len(forms) > 1:
        return f"[{forms}]"
    return f"\\{character}" if character in _SPECIAL else character


@cache
def _forms() -> dict[str, str]:
    """Letters that differ in case alone, by the one that stands for them."""
    found: dict[str, str] = {}
    for character in map(chr, range(_PLANES)):
        folded = _folded(character)
        if folded != character:
            found[folded] = found.get(folded, folded) + character
    return found


def _folded(character: str) -> str:
    """The letter that stands for all of its cases, as Unicode's simple folding has it."""
    return next((c for c in (character.casefold(), character.lower()) if len(c) == 1), character)


@cache
def _others() -> str:
    """Any character but letters, digits and the underscore, by number: Postgres' own classes go by collations."""
    return f"[^{''.join(f'{_numbered(a)}-{_numbered(b)}' for a, b in (*_runs(), _IDEOGRAPHS))}]"


def _runs() -> Iterator[tuple[int, int]]:
    first = None
    for number in range(_PLANES + 1):
        inside = number < _PLANES and (unicodedata.category(chr(number))[0] in "LN" or chr(number) == "_")
        if inside and first is None:
            first = number
        elif not inside and first is not None:
            yield first, number - 1
            first = None


def _numbered(character: int) -> str:
    return f"\\U{character:08x}" if character > 0xFFFF else f"\\u{character:04x}"
