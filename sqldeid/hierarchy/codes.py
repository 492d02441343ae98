"""Rule for code systems: prefixes of a code, then ranges of its category; used for ICD-9-CM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column
from sqldeid.hierarchy.level import Level
from sqldeid.hierarchy.model import label_array


@dataclass(frozen=True, slots=True)
class Ranges:
    """Classes of categories, each from one category to another of the same length.

    Parameters
    ----------
    rows
        First category, last category, label; ascending, without overlap.
    """

    rows: tuple[tuple[str, str, str], ...]

    def __post_init__(self) -> None:
        ends = [end for low, high, _ in self.rows for end in (low, high)]
        whole = all(len(low) == len(high) for low, high, _ in self.rows)
        apart = all(a[1] < b[0] for a, b in zip(self.rows, self.rows[1:], strict=False))
        if not self.rows or ends != sorted(ends) or not whole or not apart:
            raise HierarchyError("ranges must be ascending, not overlap, and join categories of one length")

    def level(self, categories: Level) -> Level:
        """The class of each value's category; -1 where none has it."""
        low, high = (np.array([row[i] for row in self.rows], dtype=str) for i in (0, 1))
        names = categories.labels.astype(str)
        at = np.searchsorted(low, names, side="right") - 1
        inside = (at >= 0) & (names <= high[at]) & (np.strings.str_len(names) == np.strings.str_len(low[at]))
        of = np.append(np.where(inside, at, -1), -1)
        labels = list(dict.fromkeys(row[2] for row in self.rows))
        number = np.append([labels.index(row[2]) for row in self.rows], -1)
        return Level(number[of[categories.ids]].astype(np.int64), label_array(labels))


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes without a dot, in text so that leading zeros stay.

    Parameters
    ----------
    pattern
        Regular expression of a code; what does not match is uncovered.
    prefixes
        Characters to keep on each of the first levels, falling; the last gives the category.
    longer
        Characters to keep more, by the first character of the code.
    ranges
        Classes of categories on the levels above.
    names
        One per level.
    name
        For messages.
    other
        Regular expression of codes that only another version of the system has; where there are any, the column is
        refused (`sqldeid.hierarchy.versions`).
    """

    pattern: str
    prefixes: tuple[int, ...]
    longer: tuple[tuple[str, int], ...]
    ranges: tuple[Ranges, ...]
    names: tuple[str, ...]
    name: str
    other: str = ""

    def __post_init__(self) -> None:
        falling = list(self.prefixes) == sorted(set(self.prefixes), reverse=True)
        if not self.prefixes or self.prefixes[-1] < 1 or not falling or any(more < 0 for _, more in self.longer):
            raise HierarchyError(f"hierarchy {self.name}: prefixes must be numbers of characters, falling, at least 1")
        if len(self.names) != len(self.prefixes) + len(self.ranges):
            raise HierarchyError(f"hierarchy {self.name}: it needs a name for each level between the code and the top")
        try:
            for pattern in (self.pattern, self.other):
                pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid:
            raise HierarchyError(f"hierarchy {self.name}: its pattern is no regular expression (RE2)") from None

    def levels(self, column: Column) -> list[Level]:
        """Group per level; text that is no code, or whose category no range has, is uncovered."""
        if column.kind != "text":
            raise HierarchyError(
                f"hierarchy {self.name}: the column holds {column.kind} values. "
                "Codes must be text: numbers lose leading zeros"
            )
        good = pc.match_substring_regex(column.texts, f"^(?:{self.pattern})$")
        texts = pc.if_else(good, column.texts, pa.scalar(None, pa.string()))
        result = [Level.from_text(self._prefix(texts, n)) for n in self.prefixes]
        return result + [ranges.level(result[-1]) for ranges in self.ranges]

    def _prefix(self, texts: pa.Array, count: int) -> pa.Array:
        result = pc.utf8_slice_codeunits(texts, 0, count)
        for first, more in self.longer:
            result = pc.if_else(pc.starts_with(texts, first), pc.utf8_slice_codeunits(texts, 0, count + more), result)
        return result
