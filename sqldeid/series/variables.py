"""Map items of the data to variables: by a shipped map, by a file, or by the job itself. No database.

A file has the header ``variable,item,factor,repair,low,high,unit``, a line an item; of several items of a variable at
one time the first line wins. ``resolution`` may follow: the steps to which `perturb.method = "shared"` rounds; and
``round``: those to which targets of feature classes are rounded.
``mimic3/vitals`` is shipped: the 17 variables of the mortality benchmark (Harutyunyan et al. 2019) with the item ids of
MIMIC-III (both source systems) and MIMIC-IV.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.hierarchy import shipped_items
from sqldeid.job.problems import did_you_mean
from sqldeid.job.series import MAX_ITEMS, Variable

MOST = 1e9
"""Greatest absolute value that is read: means are exact sums of millionths, and larger values are no measurements."""

LEAST_STEP = 1e-6
"""Least resolution: finer ones are none."""

REPAIRS = {"": 0, "fahrenheit": 1, "fraction": 2, "percent": 3}
HEADER = ("variable", "item", "factor", "repair", "low", "high", "unit")
OPTIONAL = ("resolution", "round")


@dataclass(frozen=True, slots=True)
class Item:
    """A code of the data and what becomes of its values; `place` 0 wins over 1 at one time."""

    code: int | str
    variable: str
    place: int
    factor: float = 1.0
    repair: int = 0
    low: float = -MOST
    high: float = MOST


@dataclass(frozen=True, slots=True)
class VariableMap:
    """The variables in their order, their items, and what readers and the perturbation want to know of them."""

    names: tuple[str, ...]
    items: tuple[Item, ...]
    units: Mapping[str, str]
    resolution: Mapping[str, float]
    round: Mapping[str, float] = field(default_factory=dict)


def unknown(name: str, names: Sequence[str]) -> str:
    """What to say of a name that is no variable of a map."""
    hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
    return f'there is no variable "{name}"{hint}'


def load_map(asked: str | Mapping[str, Variable], drop: Sequence[str], folder: Path, key: str) -> VariableMap:
    """The map that a job asks for, without the variables that it drops.

    Raises
    ------
    JobError
        If there is no such file, it cannot be read, or nothing is left.
    """
    if isinstance(asked, str):
        names, items, units, resolution, rounds = _read(
            _find(asked, folder, f"{key}.variables"), asked, f"{key}.variables"
        )
    else:
        names = list(asked)
        items = [item for name, variable in asked.items() for item in _items(name, variable)]
        units = {name: v.unit for name, v in asked.items() if v.unit is not None}
        resolution = {name: float(v.resolution) for name, v in asked.items() if v.resolution is not None}
        rounds = {name: float(v.round) for name, v in asked.items() if v.round is not None}
    for name in drop:
        if name not in names:
            raise JobError.at(f"{key}.drop", f"{unknown(name, names)}")
    left = tuple(name for name in names if name not in drop)
    if not left:
        raise JobError.at(f"{key}.drop", "leaves no variable")
    return VariableMap(left, tuple(i for i in items if i.variable in left), units, resolution, rounds)


def refuse_names(shape: str, names: Sequence[str], key: str) -> None:
    """A variable has a name that a column can have, and not that of a column of the release that it becomes one of."""
    for name in names if shape == "wide" else ():
        if not name or "\0" in name:
            raise JobError.at(
                key,
                "a variable's name is empty or holds a NUL character, and a wide release has a column of that "
                'name; leave it out by where, name those wanted, or take shape = "long"',
            )
        if name.casefold() in ("person_number", "step"):
            raise JobError.at(key, f'a wide release has a column {name} of its own; take shape = "long"')


def _items(name: str, variable: Variable) -> Iterator[Item]:
    for place, code in enumerate(variable.items):
        yield Item(
            code,
            name,
            place,
            float(variable.factor),
            REPAIRS[variable.repair or ""],
            -MOST if variable.low is None else max(float(variable.low), -MOST),
            MOST if variable.high is None else min(float(variable.high), MOST),
        )


def _find(asked: str, folder: Path, key: str) -> Path:
    shipped = shipped_items(asked)
    path = shipped or folder / asked
    if not path.is_file():
        raise JobError.at(key, f"there is no file {asked}, and no map of that name is shipped (mimic3/vitals is)")
    return path


def _read(
    path: Path, name: str, key: str
) -> tuple[list[str], list[Item], dict[str, str], dict[str, float], dict[str, float]]:
    try:
        text = read_limited(path).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise JobError.at(key, f"{name} cannot be read as CSV in UTF-8") from None
    _refuse_header(rows, name, key)
    names: list[str] = []
    items: list[Item] = []
    units: dict[str, str] = {}
    resolution: dict[str, float] = {}
    rounds: dict[str, float] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]) or not row[0] or not row[1] or row[3] not in REPAIRS:
            raise JobError.at(key, f"line {number} of {name} is not {','.join(rows[0])}")
        if row[0] not in names:
            names.append(row[0])
        if row[6]:
            units[row[0]] = row[6]
        for steps, text in zip((resolution, rounds), row[len(HEADER) :], strict=False):
            if text:
                steps[row[0]] = _number(text, 1.0, f"{key}: line {number} of {name}")
        factor, low, high = (_number(row[i], given, f"{key}: line {number} of {name}") for i, given in _DEFAULTS)
        place = sum(i.variable == row[0] for i in items)
        items.append(Item(_code(row[1]), row[0], place, factor, REPAIRS[row[3]], max(low, -MOST), min(high, MOST)))
    _refuse_odd(names, items, name, key)
    for what, steps in zip(OPTIONAL, (resolution, rounds), strict=True):
        if any(not LEAST_STEP <= step <= MOST for step in steps.values()):
            raise JobError.at(key, f"{name} has a {what} below {LEAST_STEP:f} or above {MOST:,.0f}")
    return names, items, units, resolution, rounds


def _refuse_header(rows: Sequence[Sequence[str]], name: str, key: str) -> None:
    if not rows or tuple(rows[0]) not in [(*HEADER, *OPTIONAL[:more]) for more in range(len(OPTIONAL) + 1)]:
        wanted = f"{','.join(HEADER)}[,{OPTIONAL[0]}[,{OPTIONAL[1]}]]"
        raise JobError.at(key, f"the first line of {name} must be {wanted}")


_DEFAULTS = ((2, 1.0), (4, -MOST), (5, MOST))


def _refuse_odd(names: Sequence[str], items: Sequence[Item], name: str, key: str) -> None:
    if not items or len(names) > MAX_ITEMS or max(i.place for i in items) >= MAX_ITEMS:
        raise JobError.at(key, f"{name} must have 1 to {MAX_ITEMS} variables, of as many items at most")
    if len({str(i.code) for i in items}) < len(items):
        raise JobError.at(key, f"{name} names an item twice; each belongs to one variable")
    if len({n.casefold() for n in names}) < len(names):
        raise JobError.at(key, f"{name} has variables whose names differ only in upper and lower case")


def _code(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def _number(text: str, given: float, where: str) -> float:
    try:
        found = float(text) if text else given
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise JobError(f"{where}: a factor, bound or resolution is not a number", key=where.partition(":")[0])
    return found
