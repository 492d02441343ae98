"""Pack the prefix codes of the quasi-identifying columns into 63-bit words, so that a lattice node is a bit mask.

Source: search.md §1. A leaf's code is its path from the root, so that clearing the low bits generalises it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqldeid.tables.model.lattice import Node

WORD_BITS = 63
"""Bits of a BIGINT that are portable: the sign stays clear."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where one quasi-identifier's code lies.

    Parameters
    ----------
    word
        Number of the word, from 0.
    shift
        Bits to the right of the code in its word.
    bits
        Per level, how many low bits of the code are cleared; `bits[0]` is 0, the last one is the code's width.
    """

    word: int
    shift: int
    bits: tuple[int, ...]

    @property
    def width(self) -> int:
        """Bits of the code."""
        return self.bits[-1]

    def mask(self, level: int) -> int:
        """The bits of the word that tell the column's groups at `level` apart."""
        return ((1 << self.width) - (1 << self.bits[level])) << self.shift


@dataclass(frozen=True, slots=True)
class Coding:
    """All quasi-identifiers' fields, in the order of the job."""

    fields: tuple[Field, ...]

    @property
    def words(self) -> int:
        """Number of words, at least one."""
        return max((f.word for f in self.fields), default=0) + 1

    def masks(self, node: Node) -> tuple[int, ...]:
        """One mask per word: rows that agree under all of them are one equivalence class at `node`."""
        masks = [0] * self.words
        for field, level in zip(self.fields, node, strict=True):
            masks[field.word] |= field.mask(level)
        return tuple(masks)


def pack(level_bits: Sequence[tuple[int, ...]]) -> Coding:
    """Lay codes into as few words as a first fit finds, each code whole within one word.

    Parameters
    ----------
    level_bits
        Per quasi-identifier, the bits cleared at each level (`Hierarchy.codes`), each at most 63 wide.
    """
    used: list[int] = []
    fields: list[Field] = []
    for bits in level_bits:
        word = next((w for w, u in enumerate(used) if u + bits[-1] <= WORD_BITS), len(used))
        if word == len(used):
            used.append(0)
        fields.append(Field(word, used[word], bits))
        used[word] += bits[-1]
    return Coding(tuple(fields))
