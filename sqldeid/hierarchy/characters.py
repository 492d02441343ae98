"""Rules on the characters of a value, and the rule that only suppresses."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column
from sqldeid.hierarchy.level import Level


@dataclass(frozen=True, slots=True)
class Mask:
    """The last n characters become `*`; a shorter value becomes stars only. The length stays.

    Two values with one label have the same length and agree in front, so they agree with more stars too: levels nest.

    Parameters
    ----------
    counts
        Characters to mask on each level, growing.
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.counts or self.counts[0] < 1 or list(self.counts) != sorted(set(self.counts)):
            raise HierarchyError("mask: give how many last characters to mask on each level, at least 1 and growing")

    @property
    def names(self) -> tuple[str, ...]:
        """One per level."""
        return tuple(f"last {n} masked" for n in self.counts)

    @property
    def name(self) -> str:
        """For messages."""
        return f"mask {', '.join(map(str, self.counts))}"

    def levels(self, column: Column) -> list[Level]:
        """Group per level; covers every value."""
        texts = _characters(column, "mask")
        length = pc.utf8_length(texts)
        result = []
        for n in self.counts:
            kept = pc.utf8_slice_codeunits(texts, 0, stop=-n)
            stars = pc.binary_repeat("*", pc.min_element_wise(length, n, skip_nulls=False))
            result.append(Level.from_text(pc.binary_join_element_wise(kept, stars, "")))
        return result


@dataclass(frozen=True, slots=True)
class KeepFirst:
    """Only the first n characters stay.

    Parameters
    ----------
    counts
        Characters to keep on each level, falling.
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.counts or self.counts[-1] < 1 or list(self.counts) != sorted(set(self.counts), reverse=True):
            raise HierarchyError("keep_first: give how many characters to keep on each level, falling, at least 1")

    @property
    def names(self) -> tuple[str, ...]:
        """One per level."""
        return tuple(f"first {n}" for n in self.counts)

    @property
    def name(self) -> str:
        """For messages."""
        return f"first {', '.join(map(str, self.counts))} characters"

    def levels(self, column: Column) -> list[Level]:
        """Group per level; covers every value."""
        texts = _characters(column, "keep_first")
        return [Level.from_text(pc.utf8_slice_codeunits(texts, 0, n)) for n in self.counts]


@dataclass(frozen=True, slots=True)
class Suppress:
    """No level between the original and the top."""

    @property
    def names(self) -> tuple[str, ...]:
        """No level of its own."""
        return ()

    @property
    def name(self) -> str:
        """For messages."""
        return "suppression only"

    def levels(self, column: Column) -> list[Level]:
        """No level; covers every value."""
        return []


def _characters(column: Column, rule: str) -> pa.Array:
    """The text to cut: of text, integers and exact decimals."""
    if column.kind not in ("text", "integer", "decimal"):
        instead = '; write dates = ["month", "year"]' if column.kind in ("date", "timestamp") else ""
        raise HierarchyError(
            f"{rule}: the column holds {column.kind} values; it works on text and whole numbers{instead}"
        )
    return column.texts
