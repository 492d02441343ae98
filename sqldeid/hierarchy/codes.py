"""Rule for code systems: prefixes of a code, then ranges of its category; used for ICD, ATC and US ZIP codes."""

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
    """Codes with or without a dot, in text so that leading zeros stay; blanks around and letter case do not matter.

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
    version
        What a column of versions says of codes of this system: 9 or 10; empty where it has no versions.
    dot
        Characters before the dot, where codes may have one: digits are filled up with zeros to so many, for 8.8 can
        only be 008.8. 0 where codes have none.
    digits
        Digits of a code that may come as a whole number; 0 where codes are text.
    small, merged
        Categories that are one group from their own level on, and its label.
    """

    pattern: str
    prefixes: tuple[int, ...]
    longer: tuple[tuple[str, int], ...]
    ranges: tuple[Ranges, ...]
    names: tuple[str, ...]
    name: str
    other: str = ""
    version: str = ""
    dot: int = 0
    digits: int = 0
    small: tuple[str, ...] = ()
    merged: str = ""

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
        texts = self.plain(column)
        result = [Level.from_text(self._prefix(texts, n)) for n in self.prefixes]
        return result + [ranges.level(result[-1]) for ranges in self.ranges]

    def plain(self, column: Column) -> pa.Array:
        """Each value as a code in capitals without a dot; NULL where it is none.

        Raises
        ------
        HierarchyError
            If the column's type has lost what codes need.
        """
        if column.kind == "integer" and self.digits:
            texts = pc.utf8_lpad(column.texts, self.digits, "0")
        elif column.kind == "text":
            texts = pc.utf8_upper(pc.utf8_trim_whitespace(column.texts))
        else:
            raise HierarchyError(
                f"hierarchy {self.name}: the column holds {column.kind} values. "
                "Codes must be text: numbers lose leading zeros"
            )
        texts = self._undotted(texts) if self.dot else texts
        good = pc.match_substring_regex(texts, f"^(?:{self.pattern})$")
        return pc.if_else(good, texts, pa.scalar(None, pa.string()))

    def _undotted(self, texts: pa.Array) -> pa.Array:
        """Without a dot behind the category; with one elsewhere a text stays, and is no code: E87.1 is not E871."""
        for missing in range(1, self.dot):
            short = pc.match_substring_regex(texts, rf"^[0-9]{{{self.dot - missing}}}\.")
            texts = pc.if_else(short, pc.binary_join_element_wise("0" * missing, texts, ""), texts)
        lengths = [*((first, self.dot + more) for first, more in self.longer)]
        others = "".join(first for first, _ in self.longer)
        begins = [f"{first}[0-9A-Z]{{{length - 1}}}" for first, length in lengths]
        begins.append(f"{f'[^{others}.]' if others else '[^.]'}[0-9A-Z]{{{self.dot - 1}}}")
        placed = pc.match_substring_regex(texts, rf"^(?:{'|'.join(begins)})\.[0-9A-Z]*$")
        return pc.if_else(placed, pc.replace_substring(texts, ".", ""), texts)

    def _prefix(self, texts: pa.Array, count: int) -> pa.Array:
        result = pc.utf8_slice_codeunits(texts, 0, count)
        for first, more in self.longer:
            result = pc.if_else(pc.starts_with(texts, first), pc.utf8_slice_codeunits(texts, 0, count + more), result)
        if self.small and count <= len(self.small[0]):
            category = pc.utf8_slice_codeunits(texts, 0, len(self.small[0]))
            result = pc.if_else(pc.is_in(category, pa.array(self.small)), self.merged, result)
        return result
