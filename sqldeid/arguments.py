"""What a caller of the Python API gives, checked where it comes in: the command line has checked its options before.

A wrong type that went further would fail in the depths, or mean something else: a text is a sequence of its letters,
and `replace="no"` is true. Each check gives the value back as the program takes it, or raises JobError, which names the
argument and the type of what was given, never the value. Scalars of numpy and paths of any kind count as what they are.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TypeVar

from sqldeid.errors import JobError

T = TypeVar("T")


def refused(argument: str, value: object, wanted: str) -> JobError:
    """The error that says what was given, by its type, and what is wanted."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__qualname__}".removeprefix("builtins.")
    what = "is None" if value is None else f"is of type {kind}"
    return JobError.at(argument, f"{what}; give {wanted}")


def unless_none(check: Callable[[str, object], T], argument: str, value: object) -> T | None:
    """What a check makes of an argument that may be left out."""
    return None if value is None else check(argument, value)


def one_of(kind: type[T], argument: str, value: object, wanted: str) -> T:
    """An object of a class of ours."""
    if not isinstance(value, kind):
        raise refused(argument, value, wanted)
    return value


def flag(argument: str, value: object) -> bool:
    """True or False, also of numpy; no other value is taken for one."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise refused(argument, value, "True or False")


def whole(argument: str, value: object, least: int | None = None) -> int:
    """A whole number, also of numpy."""
    wanted = "a whole number" + ("" if least is None else f" of at least {least}")
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise refused(argument, value, wanted)
    if least is not None and number < least:
        raise JobError.at(argument, f"is less than {least}; give {wanted}")
    return number


def number(argument: str, value: object, *, finite: bool = True) -> float:
    """A number, also of numpy; finite unless the caller looks at its range."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise refused(argument, value, "a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if finite and not math.isfinite(found):
        raise JobError.at(argument, "is not finite; give a number")
    return found


def text(argument: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str):
        raise refused(argument, value, "a text")
    if not value:
        raise JobError.at(argument, "is an empty text; give one, or leave the argument out")
    return str(value)


def texts(argument: str, value: object) -> tuple[str, ...]:
    """Several names. One text is none: it is a sequence of its letters, each of which may be a name."""
    return tuple(text(argument, item) for item in several(argument, value, 'a list of names, such as ["people"]'))


def several(argument: str, value: object, wanted: str) -> tuple[object, ...]:
    """The items of a list, or of whatever else may be gone through, but of texts and mappings."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise refused(argument, value, wanted)
    return tuple(value)


def wholes(argument: str, value: object, least: int | None = None) -> tuple[int, ...]:
    """Several whole numbers."""
    return tuple(whole(argument, item, least) for item in several(argument, value, "a list of whole numbers"))


def numbers(argument: str, value: object) -> tuple[float, ...]:
    """Several numbers, at whose range the caller looks."""
    return tuple(number(argument, item, finite=False) for item in several(argument, value, "a list of numbers"))


def place(argument: str, value: object) -> Path:
    """A path, as text or as an object that is one."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise refused(argument, value, "a path, as text or pathlib.Path")
    if not found:
        raise JobError.at(argument, "is an empty text; give a path, or leave the argument out")
    return Path(found)
