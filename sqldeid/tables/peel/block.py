"""Some classes side by side, and what each combination would cost in each, also in exchange for another. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.grid import Grid

NEVER = 2**61
"""Units of a move that cannot be made."""

_TOGETHER = 128
"""Values of columns side by side whose prices are added up before each combination looks up its own."""


class Room:
    """Arrays that one block after the other works in: fresh ones would cost more than what is done with them."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def matrix(self, name: str, shape: tuple[int, int], kind: Any) -> Any:
        """An array of this shape, with what was left in it; the one of this name that was given before is no more."""
        size = shape[0] * shape[1]
        if name not in self._kept or len(self._kept[name]) < size or self._kept[name].dtype != kind:
            self._kept[name] = np.empty(size + size // 4, dtype=kind)
        return self._kept[name][:size].reshape(shape)


class Block:
    """Classes of a release, and the units that moves between them cost.

    Parameters
    ----------
    members
        Combinations, those of a class side by side; shape (members,). Below, a combination is its place here.
    owner
        Class of each, from 0 on; shape (members,).
    room
        Where it works; what `joining` and `replacing` give lies there until the same is asked of another block.
    """

    def __init__(self, grid: Grid, rows: Ints, k: int, members: Ints, owner: Ints, room: Room) -> None:
        self.room = room
        self.k, self.members, self.owner, self.rows = k, members, owner, rows[members]
        self.groups = [g[:, members] for g in grid.groups]
        self.units = [u[:, members] for u in grid.units]
        self.kinds = [np.unique(g[0], return_index=True, return_inverse=True)[1:] for g in self.groups]
        self.sets = _sets([place.reshape(-1) for _, place in self.kinds])
        self.narrow: Any = np.int32 if grid.row < 2**31 - 1 else np.int64
        self.first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
        self.sizes = np.diff(np.append(self.first, len(owner)))
        self.total = np.add.reduceat(self.rows, self.first)
        self._measure()

    def _measure(self) -> None:
        """Levels and cost of each class, and of what is left of it without each of its members."""
        head, last = self.first[self.owner], (self.first + self.sizes - 1)[self.owner]
        here = np.arange(len(self.owner))
        self.other = np.where(here == head, last, head)
        size = self.sizes[self.owner]
        levels, reduced = [], []
        for groups in self.groups:
            level, without = np.zeros((2, len(here)), dtype=np.int64)
            for group in groups[:-1]:
                as_head, as_last = group == group[head], group == group[last]
                heads = np.add.reduceat(as_head.astype(np.int64), self.first)[self.owner]
                lasts = np.add.reduceat(as_last.astype(np.int64), self.first)[self.owner]
                one = (heads == size - 1) & ~as_head | (lasts == size - 1) & ~as_last
                level += heads < size
                without += (heads < size) & ~one
            levels.append(level[self.first])
            reduced.append(without)
        self.levels, self.reduced = np.array(levels), np.array(reduced)
        self.cost = self._priced(self.levels, self.first)
        self.lost = self.total * self.cost
        self.rest = self._priced(self.reduced, self.other) * (self.total[self.owner] - self.rows)
        self.several = (self.sizes > 1)[self.owner]
        self.spare = self.several & (self.total[self.owner] - self.rows >= self.k)

    def _priced(self, levels: Ints, at: Ints) -> Ints:
        return np.asarray(sum(units[x, at] for units, x in zip(self.units, levels, strict=True)))

    def _together(self, levels: Ints, at: Ints) -> Ints:
        """Units that a row loses in a class that takes a combination up; shape (members, classes)."""
        shape = len(self.owner), len(at)
        found, more = (self.room.matrix(name, shape, self.narrow) for name in ("found", "more"))
        for i, (columns, place) in enumerate(self.sets):
            together: Any = np.zeros((1, len(at)), dtype=self.narrow)
            for j in columns:
                together = (together[:, None] + self._price(j, levels[j], at)).reshape(-1, len(at))
            together.take(place, axis=0, out=more if i else found, mode="clip")
            if i:
                found += more
        units = self.room.matrix("units", shape, np.int64)
        units[...] = found
        return np.asarray(units)

    def _price(self, column: int, own: Ints, at: Ints) -> Any:
        """Units that a column costs a row there, by the value of the combination; shape (values, classes)."""
        groups, units, kind = self.groups[column], self.units[column], self.kinds[column][0]
        level = np.zeros((len(kind), len(at)), dtype=np.int64)
        for group in groups[:-1]:
            level += group[kind][:, None] != group[at]
        np.maximum(level, own, out=level)
        level += np.arange(len(kind))[:, None] * len(units)
        return np.take(np.take(units.T, kind, axis=0).reshape(-1), level).astype(self.narrow)

    def joining(self) -> Ints:
        """Units that all lose more where a combination joins a class; shape (members, classes)."""
        more = self._together(self.levels, self.first)
        more *= np.add(self.total, self.rows[:, None], out=self.room.matrix("size", more.shape, np.int64))
        more -= self.lost
        more[np.arange(len(self.owner)), self.owner] = NEVER
        return more

    def replacing(self) -> Ints:
        """Units that a class loses more where the first combination takes the place of the second in its class."""
        more, rest = self._together(self.reduced, self.other), self.total[self.owner] - self.rows
        more *= np.add(rest, self.rows[:, None], out=self.room.matrix("size", more.shape, np.int64))
        more -= self.lost[self.owner]
        more[:, ~self.several] = NEVER
        short = np.flatnonzero(rest + self.rows.min() < self.k)
        more[:, short] = np.where(rest[short] + self.rows[:, None] < self.k, NEVER, more[:, short])
        more[self.inside(self.owner)] = NEVER
        return more

    def inside(self, classes: Ints) -> tuple[Ints, Ints]:
        """Each member of some classes, and which of these it is in."""
        sizes = self.sizes[classes]
        place = np.repeat(np.arange(len(classes)), sizes)
        begin = self.first[classes] - (np.cumsum(sizes) - sizes)
        return np.arange(len(place)) + np.repeat(begin, sizes), place

    def leaving(self) -> Ints:
        """Units that a class loses more without each of its members, below 0; for those that it can spare."""
        return np.where(self.spare, self.rest - self.lost[self.owner], NEVER)


def _sets(kinds: list[Ints]) -> list[tuple[list[int], Ints]]:
    """Columns side by side, and for each combination which values it has in all of them."""
    found: list[tuple[list[int], Ints]] = []
    width = 1
    for j, place in enumerate(kinds):
        own = int(place.max(initial=0)) + 1
        if not found or width * own > _TOGETHER:
            found.append(([j], place))
            width = own
        else:
            columns, before = found[-1]
            found[-1] = ([*columns, j], before * own + place)
            width *= own
    return found
