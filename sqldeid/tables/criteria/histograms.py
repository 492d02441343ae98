"""Rows of classes by sensitive value, and what both ways to judge a criterion count with. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Histograms:
    """Rows of some classes by sensitive value.

    Parameters
    ----------
    first
        Where each class begins in `value` and `rows`; shape (classes,).
    value, rows
        Code and rows of each value there; shape (cells,).
    """

    first: Ints
    value: Ints
    rows: Ints

    @property
    def size(self) -> Ints:
        """Rows of each class."""
        return np.add.reduceat(self.rows, self.first) if len(self.first) else self.first

    def part(self, start: int, stop: int) -> Histograms:
        """Some of the classes."""
        begin = self.first[start]
        end = self.first[stop] if stop < len(self.first) else len(self.rows)
        return Histograms(self.first[start:stop] - begin, self.value[begin:end], self.rows[begin:end])

    def owner(self) -> Ints:
        """The class of each cell."""
        return np.repeat(np.arange(len(self.first)), np.diff([*self.first.tolist(), len(self.rows)]))

    def falling(self) -> Ints:
        """Counts of each class, falling, padded by 0; shape (classes, most values)."""
        owner = self.owner()
        order = np.lexsort((-self.rows, owner))
        width = int(np.diff([*self.first.tolist(), len(self.rows)]).max())
        found = np.zeros((len(self.first), width), dtype=np.int64)
        found[owner, np.arange(len(owner)) - self.first[owner]] = self.rows[order]
        return found

    def dense(self, values: int) -> Ints:
        """Counts by code; shape (classes, values)."""
        found = np.zeros((len(self.first), values), dtype=np.int64)
        found[self.owner(), self.value] = self.rows
        return found


class Flat:
    """Classes whose most frequent values are cut to a height, by sums from the front."""

    def __init__(self, falling: Ints) -> None:
        self.falling = falling
        self.n = falling.sum(axis=1)
        self.rows = from_front(falling)
        self.logs = from_front(log_times(falling))
        self.at = np.arange(len(falling))

    def cut(self, height: Ints) -> Ints:
        """How many values are above a height."""
        return np.asarray((self.falling > height[:, None]).sum(axis=1))

    def left(self, height: Ints) -> Ints:
        """Rows that are left."""
        above = self.cut(height)
        return np.asarray(above * height + self.n - self.rows[self.at, above])

    def surplus(self, height: Ints, removed: Ints, l: int) -> Floats:
        """n·ln n − Σ c·ln c − n·ln l of what is left, after `removed` more values lost one row of the height."""
        above = self.cut(height)
        logs = above * log_times(height) + self.logs[self.at, -1] - self.logs[self.at, above]
        logs = logs - removed * (log_times(height) - log_times(height - 1))
        n = self.left(height) - removed
        return np.asarray(log_times(n) - logs - n * (np.log(l) - 1e-9))


def bisected(holds: Callable[[Ints], Flags], most: Ints) -> Ints:
    """The greatest number from 0 to `most` that holds, of those that hold up to one number; 0 where none does."""
    low, high = np.zeros_like(most), most + 1
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        good = holds(middle)
        low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
    return low


def from_front(falling: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Sums of the first 0, 1, 2 … entries of each row."""
    found = np.zeros((falling.shape[0], falling.shape[1] + 1), dtype=falling.dtype)
    np.cumsum(falling, axis=1, out=found[:, 1:])
    return found


def log_times(n: Ints) -> Floats:
    """n·ln n, 0 at 0."""
    return np.asarray(n * np.log(np.maximum(n, 1)))
