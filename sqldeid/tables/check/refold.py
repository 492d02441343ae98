"""Fold classes with their sensitive values once more, so that many nodes are judged on a smaller table.

As `rollup` does for class sizes, but by masks, and as soon as three nodes of a statement share a fold: judging a node
costs as much as folding for it. What is answered never depends on it.

Source: search.md §1, *Roll up*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import Fixed, fix, identifier

LEAST_ROWS = 8_000
"""Tables smaller than this are judged in less time than a fold takes."""

LEAST_NODES = 3
"""Nodes of a statement from which a fold is made."""

_KEPT = 3
_OUTLIERS = 0.25
"""Share of the nodes, the least generalised ones, that a fold need not serve."""

_WORTH = 0.6
"""A fold must leave at most this share of the table that it is made from."""

Masks = tuple[int, ...]
Arm = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Folded:
    masks: Masks
    table: exp.Table
    written: Fixed
    size: int

    def serves(self, masks: Masks) -> bool:
        return all(need & ~have == 0 for need, have in zip(masks, self.masks, strict=True))


@dataclass(slots=True)
class Refold:
    """The tables to judge nodes on by one sensitive column; the source's own spread is always among them.

    Parameters
    ----------
    spread
        Words, others, s and n; `columns` are its words and others.
    """

    engine: Engine
    spread: exp.Table
    words: Sequence[exp.Identifier]
    others: Sequence[exp.Identifier]
    name: str
    _tables: list[_Folded] = field(init=False)
    _tried: set[Masks] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        everything = tuple(-1 for _ in self.words)
        self._tables = [_Folded(everything, self.spread, fix(self.spread), self._rows(self.spread))]

    @property
    def rolled(self) -> list[exp.Table]:
        """What was folded once more."""
        return [t.table for t in self._tables[1:]]

    def table(self, arm: Arm) -> Fixed:
        """The smallest table that holds the node's cells."""
        return self._smallest(_masks(arm)).written

    def smallest(self, arm: Arm) -> Arm:
        """That table and its rows, as an arm has them: ``spread`` and ``size``."""
        found = self._smallest(_masks(arm))
        return {"spread": found.written, "size": found.size}

    def prepare(self, arms: Sequence[Arm]) -> None:
        """Fold for most of these nodes, where that promises a smaller table."""
        needed = sorted((_masks(arm) for arm in arms), key=lambda m: sum(x.bit_count() for x in m), reverse=True)
        kept = [m for m in needed[int(_OUTLIERS * len(needed)) :] if self._smallest(m).size >= LEAST_ROWS]
        if len(kept) < LEAST_NODES:
            return
        shared = list(kept[0])
        for masks in kept[1:]:
            shared = [a | b for a, b in zip(shared, masks, strict=True)]
        if tuple(shared) not in self._tried:
            self._tried.add(tuple(shared))
            self._fold(tuple(shared))

    def _fold(self, masks: Masks) -> None:
        source = self._smallest(masks)
        table = self.engine.workbench(f"{self.name}_respread")
        groups = [{"word": w, "mask": m} for w, m in zip(self.words, masks, strict=True)]
        self._roll_up(table, source.table, groups)
        size = self._rows(table)
        if size > _WORTH * source.size:
            self._drop(table)
            return
        self._tables.append(_Folded(masks, table, fix(table), size))
        if len(self._tables) > _KEPT + 1:
            self._drop(self._tables.pop(1).table)

    def _roll_up(self, table: exp.Table, source: exp.Table, groups: list[dict[str, object]]) -> None:
        whole = [{"word": o, "mask": -1} for o in [*self.others, identifier("s")]]
        self.engine.run("tables/check/roll_up", rolled=table, classes=source, groups=[*groups, *whole])

    def _smallest(self, masks: Masks) -> _Folded:
        return min((t for t in self._tables if t.serves(masks)), key=lambda t: t.size)

    def _rows(self, table: exp.Table) -> int:
        return int(self.engine.row("engine/count_rows", table=table)["rows"])

    def _drop(self, table: exp.Table) -> None:
        self.engine.drop(table)


def _masks(arm: Arm) -> Masks:
    return tuple(int(g["mask"]) for g in arm["groups"])
