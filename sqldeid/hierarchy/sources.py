"""Where a hierarchy comes from: shipped, a file, or a rule."""

from __future__ import annotations

import csv
import io
import math
import os.path
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from sqldeid.errors import HierarchyError, UnknownKindError
from sqldeid.files import read_limited
from sqldeid.hierarchy.characters import KeepFirst, Mask, Suppress
from sqldeid.hierarchy.codes import Codes, Ranges
from sqldeid.hierarchy.column import Column
from sqldeid.hierarchy.dates import Dates
from sqldeid.hierarchy.files import TOP, load_file
from sqldeid.hierarchy.level import Level
from sqldeid.hierarchy.model import Hierarchy, label_array
from sqldeid.hierarchy.numbers import Bands, Edges
from sqldeid.hierarchy.tree import Tree, Uncovered, assemble

ITEMS = ".items.csv"
"""Ending of the maps of items to variables that series read; they are no hierarchies."""


class HierarchySource(Protocol):
    """A hierarchy before it meets the data.

    Frozen dataclasses implement it: `FileSource`, `RuleSource`.
    """

    @property
    def name(self) -> str:
        """For messages and column comments."""
        ...

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included; known without data."""
        ...

    @property
    def data_derived(self) -> bool:
        """Whether the leaves are the data's distinct values."""
        ...

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        ...

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """The hierarchy over a column's distinct values; `numeric` says that text holds exact numbers."""
        ...


class Rule(Protocol):
    """Levels computed from the values."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """One per level between the original and the top."""
        ...

    def levels(self, column: Column) -> list[Level]:
        """Group per level of each value."""
        ...


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A hierarchy built by a rule: its leaves are the distinct values of the data.

    Parameters
    ----------
    name
        For messages and column comments.
    rule
        The levels between the original and the top.
    top
        Label of the top.
    """

    name: str
    rule: Rule
    top: str = TOP
    data_derived: bool = True

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        return ("original", *self.rule.names, TOP)

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included."""
        return len(self.level_names)

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """Build the hierarchy over these values.

        Raises
        ------
        UncoveredValues
            If the rule gives a value no group and `uncovered` does not place it.
        HierarchyError
            If the rule does not fit the column's type.
        """
        column = Column.of(values, numeric=numeric)
        levels = self.rule.levels(column)
        covered = ~column.null
        for level in levels:
            covered &= level.ids >= 0
        kept = [level.taken(covered) for level in levels]
        count = int(covered.sum())
        groups = (*(level.ids for level in kept), np.zeros(count, dtype=np.int64))
        labels = (*(level.labels for level in kept), label_array([self.top]))
        leaf = np.where(covered, np.cumsum(covered) - 1, -1).astype(np.int64)
        tree = Tree(self.name, self.level_names, label_array([None] * count), groups, labels)
        return assemble(tree, column, leaf, uncovered)


def named_level(source: HierarchySource, level: int) -> str:
    """What a level is, in brackets after its number; empty where it has no name but that number.

    The top is told by the text that cells hold, where that is known without data.
    """
    name = source.level_names[level]
    if 0 < level == source.height - 1:
        shown = _top_text(source)
        return f" (one value: {shown})" if shown else " (one value for all)"
    if level and source.name.startswith("bands "):
        return f" (bands of {name})"
    return "" if name == f"level {level}" else f" ({name})"


def _top_text(source: HierarchySource) -> str:
    """The label of the top; empty where only values of the column tell it."""
    within = getattr(source, "within", source)  # a column that was cut at the top has the labels of its numbers
    tree = getattr(within, "tree", None)
    if tree is not None:
        return str(tree.labels[-1][0] or "") if len(tree.labels[-1]) else ""
    return str(getattr(within, "top", ""))


def open_source(spec: str | Mapping[str, object], folder: Path) -> HierarchySource:
    """Find a hierarchy; nothing of the data is needed.

    Parameters
    ----------
    spec
        The name of a shipped hierarchy (`adult/age`), a path relative to `folder`, or a mapping with one rule:
        `bands`, `edges` (with `tails`), `mask`, `keep_first`, `dates` or `suppress`.
    folder
        The job file's.

    Raises
    ------
    HierarchyError
        If there is no such hierarchy, or it does not load or nest.
    """
    if isinstance(spec, Mapping):
        rule, top = _rule(spec, "", folder)
        return RuleSource(rule.name, rule, top)
    if spec in shipped():
        return _open_path(_shipped_path(spec), spec)
    path = folder / spec
    if not os.path.isfile(path):  # unlike Path.is_file, never raises, however long the name
        raise HierarchyError(f"hierarchy {spec}: no such file, and none of that name is shipped; {_nearest(spec)}")
    return _open_path(path, spec)


@cache
def shipped() -> tuple[str, ...]:
    """Names of the hierarchies that come with the package."""
    root = _root()
    beside = (".ranges.csv", ITEMS)
    listed = (p for p in root.glob("*/*") if p.suffix in (".csv", ".toml") and not p.name.endswith(beside))
    return tuple(sorted(p.relative_to(root).with_suffix("").as_posix() for p in listed))


def shipped_items(name: str) -> Path | None:
    """The file of a shipped map of items to variables (`mimic3/vitals`); None where there is none of that name."""
    return _maps().get(name)


def shipped_maps() -> tuple[str, ...]:
    """Names of the maps of items to variables that come with the package."""
    return tuple(sorted(_maps()))


def _maps() -> dict[str, Path]:
    return {p.relative_to(_root()).as_posix().removesuffix(ITEMS): p for p in _root().glob(f"*/*{ITEMS}")}


def shipped_file(name: str) -> Path | None:
    """The file of whatever comes with the package under this name; None where nothing does."""
    return _shipped_path(name) if name in shipped() else shipped_items(name)


def _root() -> Path:
    """The packaged folder, else the repository's."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "_hierarchies"
    return packaged if packaged.is_dir() else package.parent / "hierarchies"


def _shipped_path(name: str) -> Path:
    return next(p for s in (".csv", ".toml") if (p := _root() / f"{name}{s}").is_file())


_ALIKE = 0.82
"""Share of letters from which two names are near: adult/zzz is near to no other of adult."""


def _nearest(spec: str) -> str:
    """Names of shipped hierarchies that look alike, as a whole or after the `/`; and what lists all of them."""
    from difflib import get_close_matches  # only who misspelt waits for it

    asked, last = spec.casefold(), {name.rpartition("/")[2] for name in shipped()}
    alike = get_close_matches(Path(asked).stem, last, cutoff=_ALIKE)
    near = get_close_matches(asked, shipped(), cutoff=_ALIKE)
    near += [name for word in alike for name in shipped() if name.endswith(f"/{word}") and name not in near]
    told = f"did you mean {' or '.join(near[:3])}? " if near else ""
    return f"{told}`sqldeid hierarchy list` prints all {len(shipped())}"


def _open_path(path: Path, name: str) -> HierarchySource:
    """A CSV file of leaves, or a TOML file with one rule."""
    if path.suffix != ".toml":
        return load_file(path, name)
    try:
        spec = tomllib.loads(read_limited(path, 1 << 24).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise HierarchyError(f"hierarchy {name}: the file is not readable as TOML in UTF-8") from None
    rule, top = _rule(spec, name, path.parent)
    return RuleSource(name, rule, top)


RULES = ("bands", "edges", "mask", "keep_first", "dates", "suppress", "codes", "versions")
OPTIONS = {"edges": {"tails", "labels", "year"}}


def _rule(spec: Mapping[str, object], name: str, folder: Path) -> tuple[Rule, str]:
    """The rule that a mapping states, and the label of its top."""
    given = [key for key in spec if key in RULES]
    if len(given) != 1:
        raise HierarchyError(f"a built hierarchy has exactly one of {', '.join(RULES[:-2])}; here are {len(given)}")
    kind = given[0]
    unknown = set(spec) - {kind, "top"} - OPTIONS.get(kind, set())
    if unknown:
        raise HierarchyError(f"hierarchy rule {kind}: unknown key {sorted(unknown)[0]}")
    top = spec.get("top", TOP)
    if not isinstance(top, str) or not top:
        raise HierarchyError(f"hierarchy rule {kind}: top must be a text")
    return _make(kind, spec, name, folder), top


def _make(kind: str, spec: Mapping[str, object], name: str, folder: Path) -> Rule:
    value = spec[kind]
    match kind:
        case "bands":
            return Bands(_numbers(value, kind))
        case "edges":
            edges = tuple(_numbers(level, kind) for level in _list(value, kind))
            labels = tuple(_texts(level, "labels") for level in _list(spec.get("labels", []), "labels"))
            tails, year = (_flag(spec.get(key, False), key) for key in ("tails", "year"))
            return Edges(edges, tails, labels, year)
        case "mask":
            return Mask(_counts(value, kind))
        case "keep_first":
            return KeepFirst(_counts(value, kind))
        case "dates":
            return Dates(_texts(value, kind))
        case "suppress":
            if value is not True:
                raise HierarchyError("suppress: write suppress = true")
            return Suppress()
        case "codes":
            return _codes(value, name, folder)
        case "versions":
            return _versions(value, name, folder)
        case unknown:
            raise UnknownKindError(unknown, "hierarchy rule")


_CODES = {"pattern", "prefixes", "levels"}
_MORE_CODES = {"other", "longer", "ranges", "version", "dot", "digits", "small", "merged"}


def _codes(value: object, name: str, folder: Path) -> Codes:
    """A code system; its range files lie beside the rule."""
    if not isinstance(value, Mapping) or not set(value) >= _CODES or not set(value) <= _CODES | _MORE_CODES:
        raise HierarchyError(
            f"hierarchy {name or 'rule'}: codes needs {', '.join(sorted(_CODES))} and may have "
            f"{', '.join(sorted(_MORE_CODES))}"
        )
    longer = value.get("longer", {})
    if not isinstance(longer, Mapping):
        raise HierarchyError(f"hierarchy {name or 'rule'}: longer must be a table of first characters and numbers")
    more = tuple(zip(map(str, longer), _counts(list(longer.values()), "longer"), strict=True))
    files = _texts(value.get("ranges", []), "ranges")
    dot, digits = _counts([value.get("dot", 0), value.get("digits", 0)], "dot and digits")
    return Codes(
        pattern=str(value["pattern"]),
        prefixes=_counts(value["prefixes"], "prefixes"),
        longer=more,
        ranges=tuple(_ranges(folder / f"{file}.ranges.csv", name) for file in files),
        names=_texts(value["levels"], "levels"),
        name=name or "codes",
        other=str(value.get("other", "")),
        version=str(value.get("version", "")),
        dot=dot,
        digits=digits,
        small=_texts(value.get("small", []), "small"),
        merged=str(value.get("merged", "")),
    )


def _versions(value: object, name: str, folder: Path) -> Rule:
    """A code system for each version, from rules that stand beside the folder of this one."""
    from sqldeid.hierarchy.versioned import Versioned

    systems: list[tuple[str, Codes]] = []
    for version, of in value.items() if isinstance(value, Mapping) else ():
        source = _open_path(folder.parent / f"{of}.toml", str(of))
        rule = source.rule if isinstance(source, RuleSource) else None
        if not isinstance(rule, Codes) or rule.version != version:
            raise HierarchyError(f"hierarchy {name or 'rule'}: {of} is no code system of version {version}")
        systems.append((str(version), rule))
    if not systems:
        raise HierarchyError(f"hierarchy {name or 'rule'}: versions needs a table of versions and their code systems")
    return Versioned(tuple(systems), name or "versions")


def _ranges(path: Path, name: str) -> Ranges:
    """A file of first category, last category, label; without a label the two are it."""
    try:
        text = read_limited(path).decode()
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise HierarchyError(f"hierarchy {name}: its file {path.name} cannot be read") from None
    if any(len(row) not in (2, 3) for row in rows):
        raise HierarchyError(f"hierarchy {name}: {path.name}: each line has first category, last category and label")
    return Ranges(tuple((low, high, *(rest or [f"{low}-{high}"])) for low, high, *rest in rows))  # type: ignore[misc]


def _list(value: object, key: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise HierarchyError(f"{key} must be a list")
    return value


def _counts(value: object, key: str) -> tuple[int, ...]:
    items = _list(value, key)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in items):
        raise HierarchyError(f"{key} must be a list of whole numbers")
    return tuple(n for n in items if isinstance(n, int))


def _numbers(value: object, key: str) -> tuple[Decimal, ...]:
    """Numbers as they are written: 0.1 is a tenth."""
    result = []
    for n in _list(value, key):
        if isinstance(n, bool) or not isinstance(n, int | float | Decimal) or not math.isfinite(n):
            raise HierarchyError(f"{key} must be a list of finite numbers")
        try:
            result.append(Decimal(str(n)))
        except InvalidOperation:
            raise HierarchyError(f"{key} must be a list of finite numbers") from None
    return tuple(result)


def _texts(value: object, key: str) -> tuple[str, ...]:
    items = _list(value, key)
    if any(not isinstance(n, str) for n in items):
        raise HierarchyError(f"{key} must be a list of texts")
    return tuple(n for n in items if isinstance(n, str))


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise HierarchyError(f"{key} must be true or false")
    return value
