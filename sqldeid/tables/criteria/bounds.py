"""Criteria that bound the share of each value in a class by its share in the whole table. Pure.

A criterion states for each value the least and the most that its share in a class may be, in trillionths of its share
in the whole table, rounded inwards; so everything but the rounding is in whole numbers, and rounding fails closed.

Monotonicity: with c rows of a value among n rows of a class and p its share in the table, a class passes if
least·p·n <= c <= most·p·n for each value. Both sides are linear in the class, so they add up over classes that are
merged (c/n of the union is the mediant of both): without suppression what passes is inherited by generalisations. With
a limit it is not: a passing class merged with a failing one may fail. The shares p are those of all input rows, also of
those that are suppressed, as for t-closeness (soundness.md 8): they do not depend on the node.

Core: what is released below a class lies in classes that pass, so together it passes. Of x rows at most
min(c, most·p·x) have the value, and at least least·p·x; the greatest x with enough rows bounds what can be released.
The rows that are missing are convex in x and 0 at 0, so Newton's steps from n never pass the greatest root
(`check.passing_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.tables.criteria.histograms import Histograms, bisected

UNIT = 10**12
"""In which shares of shares are told."""

_STEPS = 60
_ROUNDING = 1e-9
"""Rows, as a share of the class, that rounding may keep in the core."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and most of each value's share in a class.

    Parameters
    ----------
    rows
        Rows of the whole table by place; 0 for a value that is stated and not there.
    least, most
        In trillionths of the value's share in the whole table, by place.
    """

    rows: Ints
    least: Ints
    most: Ints

    @classmethod
    def of(cls, rows: Ints, factors: Callable[[Fraction], tuple[Fraction, Fraction]]) -> Bounds:
        """Bounds from what a criterion says of a share in the whole table; rounded inwards.

        Parameters
        ----------
        factors
            From a value's share in the whole table, above 0, to the least and the most of a class's share over it.
        """
        total = max(int(rows.sum()), 1)
        by_rows = {int(n): factors(Fraction(int(n), total)) for n in np.unique(rows) if n}
        least = [-(-by_rows[n][0] * UNIT // 1) if n else 0 for n in rows.tolist()]
        most = [by_rows[n][1] * UNIT // 1 if n else 0 for n in rows.tolist()]
        return cls(rows, np.array(least, dtype=np.int64), np.array(most, dtype=np.int64))

    @property
    def needed(self) -> int:
        """How many values every class must have."""
        return int(np.count_nonzero(self.least))

    def columns(self) -> dict[str, Ints]:
        """As a table for statements: place, n, least, most."""
        place = np.arange(len(self.rows), dtype=np.int64)
        return {"place": place, "n": self.rows, "least": self.least, "most": self.most}

    def holds(self, by_place: Mapping[int, int], size: int) -> bool:
        """Whether a class keeps to them, in whole numbers."""
        total = int(self.rows.sum())
        each = zip(self.rows.tolist(), self.least.tolist(), self.most.tolist(), strict=True)
        return all(
            least * n * size <= by_place.get(place, 0) * total * UNIT <= most * n * size
            for place, (n, least, most) in enumerate(each)
        )

    def clearly(self, classes: Histograms) -> tuple[Flags, Flags]:
        """Which classes keep to them, and of which this is sure by more than rounding."""
        counts, (low, high) = classes.dense(len(self.rows)), self._shares()
        share = counts / counts.sum(axis=1, keepdims=True)
        beyond = np.maximum(np.where(self.least > 0, low - share, -1.0), share - high).max(axis=1, initial=-1.0)
        return beyond <= 0, np.abs(beyond) > _ROUNDING

    def all_hold(self, starts: Ints, code: Ints, n: Ints) -> bool:
        """Whether all classes do, given one after the other."""
        ends = [*starts[1:].tolist(), len(n)]
        for start, end in zip(starts.tolist(), ends, strict=True):
            counts = n[start:end].tolist()
            if not self.holds(dict(zip(code[start:end].tolist(), counts, strict=True)), sum(counts)):
                return False
        return True

    def survivors(self, classes: Histograms) -> Ints:
        """The most rows of each class that can be released below it, by Newton's steps."""
        counts, (low, high) = classes.dense(len(self.rows)), self._shares()
        n = counts.sum(axis=1)
        x = n.astype(np.float64)
        for _ in range(_STEPS):
            over = counts - x[:, None] * high
            excess = np.maximum(over, 0).sum(axis=1) - n + x
            slope = 1 - (high * (over > 0)).sum(axis=1)
            step = np.where((excess > _ROUNDING * n) & (slope > 0), excess / np.where(slope > 0, slope, 1), 0)
            if not step.any():
                break
            x = np.maximum(x - step, 0)
        asked = low > 0
        enough = (counts[:, asked] + _ROUNDING * n[:, None]) / low[asked]
        most = np.where((counts[:, asked] > 0).all(axis=1), enough.min(axis=1, initial=np.inf), 0)
        return np.asarray(np.minimum(np.floor(np.minimum(x + 2 * _ROUNDING * n, most)).astype(np.int64), n))

    def passing_rows(self, counts: Ints) -> Ints:
        """The same for a certificate: rows bisected by what at most can be filled, and at least must be."""
        n, (low, high) = counts.sum(axis=1), self._shares()
        there = ((counts > 0) | (low <= 0)).all(axis=1)

        def fits(rows: Ints) -> Flags:
            filled = np.minimum(counts, rows[:, None] * high).sum(axis=1)
            must = (rows[:, None] * low <= counts + _ROUNDING * n[:, None]).all(axis=1)
            return np.asarray(there & must & (filled >= rows - _ROUNDING * n))

        return bisected(fits, n)

    def _shares(self) -> tuple[Floats, Floats]:
        share = self.rows / max(int(self.rows.sum()), 1)
        return self.least / UNIT * share, self.most / UNIT * share
