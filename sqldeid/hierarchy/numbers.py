"""Numeric rules: bands of equal width and explicit edges, in exact decimal arithmetic."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_PREC, Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column, keys
from sqldeid.hierarchy.dates import days
from sqldeid.hierarchy.level import Level, numbered

INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bands:
    """Half-open bands `[20, 25)`, anchored at 0; each width a multiple of the one before.

    Parameters
    ----------
    widths
        Width of the bands on each level, in the column's unit.
    """

    widths: tuple[Decimal, ...]

    def __post_init__(self) -> None:
        if not self.widths or any(not w.is_finite() or w <= 0 for w in self.widths):
            raise HierarchyError("bands: give one or more widths greater than 0")
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            if wide <= narrow or wide % narrow:
                raise HierarchyError(
                    f"bands: {wide} is not a multiple of {narrow}, so its bands would cut those of {narrow} in two. "
                    "Each width must be a larger multiple of the one before"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """One per level."""
        return tuple(plain(*_unscaled(w)) for w in self.widths)

    @property
    def name(self) -> str:
        """For messages."""
        return f"bands {', '.join(self.names)}"

    def levels(self, column: Column) -> list[Level]:
        """Group per level; what is not a finite number is uncovered."""
        digits = max(_unscaled(w)[1] for w in self.widths)
        numbers, finite = _scaled(column, digits, "bands")
        result = []
        for width in self.widths:
            step = int(width.scaleb(digits))
            band = _small(_small_enough(numbers, step) // step)
            ids, found = numbered(band)
            labels = [_between(n * step, (n + 1) * step, digits) for n in found.tolist()]
            result.append(Level.of(ids, labels, finite))
        return result


@dataclass(frozen=True, slots=True)
class Edges:
    """Classes `[50, 60)` between given edges; the edges of each level are among those of the level before.

    Parameters
    ----------
    edges
        Ascending edges of each level.
    tails
        Whether there are open classes `< 50` and `>= 80` at the ends; without them what lies outside is uncovered.
    labels
        Names of the classes on each level, instead of their bounds; empty for none.
    year
        Dates and timestamps are taken by their year.
    """

    edges: tuple[tuple[Decimal, ...], ...]
    tails: bool = False
    labels: tuple[tuple[str, ...], ...] = ()
    year: bool = False

    def __post_init__(self) -> None:
        least = 1 if self.tails else 2
        if not self.edges or any(len(level) < least for level in self.edges):
            raise HierarchyError(f"edges: give a list of {least} or more edges for each level")
        for level in self.edges:
            if any(not e.is_finite() for e in level) or list(level) != sorted(set(level)):
                raise HierarchyError("edges: the edges of a level must be finite and ascending")
        for x, (fine, coarse) in enumerate(zip(self.edges, self.edges[1:], strict=False), start=1):
            if not set(coarse) < set(fine):
                raise HierarchyError(
                    f"edges: those of level {x + 1} are not all among those of level {x}, or no fewer, "
                    "so the levels do not nest. Leave out edges from level to level"
                )
            if not self.tails and (coarse[0], coarse[-1]) != (fine[0], fine[-1]):
                raise HierarchyError(
                    f"edges: level {x + 1} covers less than level {x}. "
                    "Keep the first and the last edge on every level, or set tails = true"
                )
        counts = [len(level) + 1 if self.tails else len(level) - 1 for level in self.edges]
        if self.labels and [len(set(names)) for names in self.labels] != counts:
            raise HierarchyError("edges: labels must name each class of each level, with different names")

    @property
    def names(self) -> tuple[str, ...]:
        """One per level."""
        return tuple(f"level {x}" for x in range(1, len(self.edges) + 1))

    @property
    def name(self) -> str:
        """For messages."""
        return f"edges on {len(self.edges)} level{'s' * (len(self.edges) != 1)}"

    def levels(self, column: Column) -> list[Level]:
        """Group per level; what is not a finite number, or outside the edges without tails, is uncovered."""
        digits = max(_unscaled(e)[1] for e in self.edges[0])
        numbers, finite = _years(column) if self.year else _scaled(column, digits, "edges")
        scale = 10**digits if self.year else 1
        result = []
        for x, level in enumerate(self.edges):
            cuts = [int(e.scaleb(digits)) for e in level]
            place = _places(_small_enough(numbers, scale) * scale, cuts)
            inside = finite if self.tails else finite & (place > 0) & (place < len(cuts))
            ids, found = numbered(place)
            result.append(Level.of(ids, [self._label(x, p, cuts, digits) for p in found.tolist()], inside))
        return result

    def ranges(self, level: int, top: Decimal | None = None) -> dict[str, str]:
        """Each name that `labels` gives a class of a level, counted from 0, with the bounds of that class.

        Parameters
        ----------
        top
            What greater numbers became, where they were cut: the class that holds it has no upper bound.
        """
        if not self.labels:
            return {}
        digits = max(_unscaled(e)[1] for e in self.edges[0])
        cuts = [int(e.scaleb(digits)) for e in self.edges[level]]
        first = 0 if self.tails else 1
        found = {name: self._bounds(place, cuts, digits) for place, name in enumerate(self.labels[level], first)}
        at = None if top is None else bisect_right(self.edges[level], top)
        if at is not None and first <= at < first + len(found):
            name = self.labels[level][at - first]
            found |= {name: f">= {plain(cuts[at - 1], digits)}" if at else "*"}
        return found

    def _label(self, level: int, place: int, cuts: list[int], digits: int) -> str:
        """Name of the class between the edges place-1 and place."""
        if self.labels:
            return self.labels[level][(place if self.tails else place - 1) % len(self.labels[level])]
        return self._bounds(place, cuts, digits)

    @staticmethod
    def _bounds(place: int, cuts: list[int], digits: int) -> str:
        """The class between the edges place-1 and place, as its bounds tell it."""
        if place == 0:
            return f"< {plain(cuts[0], digits)}"
        if place == len(cuts):
            return f">= {plain(cuts[-1], digits)}"
        return _between(cuts[place - 1], cuts[place], digits)


def plain(number: int, digits: int) -> str:
    """`number` / 10^`digits`, exact, without exponent or superfluous zeros."""
    whole, part = divmod(abs(number), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if part else str(whole)
    return f"-{text}" if number < 0 else text


def _between(low: int, high: int, digits: int) -> str:
    return f"[{plain(low, digits)}, {plain(high, digits)})"


def _unscaled(number: Decimal) -> tuple[int, int]:
    """The integer and the number of decimals that make up a finite decimal."""
    top, bottom = number.as_integer_ratio()
    digits = 0
    while 10**digits % bottom:
        digits += 1
    return top * 10**digits // bottom, digits


def _scaled(column: Column, digits: int, rule: str) -> tuple[npt.NDArray[Any], Flags]:
    """floor(value · 10^digits), exact, and which values are finite numbers; 0 where they are not.

    Bounds are multiples of 10^-digits, so the floor lies in the same class as the value.
    """
    if column.kind == "integer":
        return _scaled_integers(column, digits)
    if column.kind not in ("float", "decimal"):
        instead = "Cast it in the source"
        if column.kind in ("date", "timestamp"):
            instead = 'Write dates = ["month", "year"] instead, or take a part in a source query: EXTRACT(year FROM …)'
        raise HierarchyError(f"{rule}: the column holds {column.kind} values, not numbers. {instead}")
    if column.kind == "float":
        known = np.isfinite(column.plain.cast(pa.float64()).fill_null(float("nan")).to_numpy())
        pairs = zip(column.texts.to_pylist(), known, strict=True)
        texts: Sequence[str | None] = [text if finite else None for text, finite in pairs]
    else:
        texts = keys(column.texts, "decimal").to_pylist()
    with localcontext(Context(prec=MAX_PREC)):
        numbers = [None if t is None else math.floor(Decimal(t).scaleb(digits)) for t in texts]
    finite = np.array([n is not None for n in numbers], dtype=bool)
    return _small(np.array([n or 0 for n in numbers], dtype=object)), finite


def _scaled_integers(column: Column, digits: int) -> tuple[npt.NDArray[Any], Flags]:
    numbers: npt.NDArray[Any]
    if pa.types.is_uint64(column.plain.type):
        numbers = _small(np.array(column.plain.fill_null(0).to_pylist(), dtype=object))
    else:
        numbers = pc.fill_null(column.plain.cast(pa.int64()), 0).to_numpy()
    return _small(_small_enough(numbers, 10**digits) * 10**digits), ~column.null


def _small_enough(numbers: npt.NDArray[Any], factor: int) -> npt.NDArray[Any]:
    """The numbers as Python integers where int64 could not hold them times `factor`."""
    if numbers.dtype == object or not len(numbers):
        return numbers
    largest = max(abs(int(numbers.min())), abs(int(numbers.max())), 1)
    return numbers if largest * factor <= INT64 else numbers.astype(object)


def _small(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers as int64 where they fit."""
    if numbers.dtype != object:
        return numbers
    fits = all(-INT64 <= n <= INT64 for n in numbers)
    return numbers.astype(np.int64) if fits else numbers


def _places(numbers: npt.NDArray[Any], cuts: list[int]) -> Ints:
    """How many of the ascending cuts are at or below each number."""
    big = numbers.dtype == object or max(abs(c) for c in cuts) > INT64
    kind: Any = object if big else np.int64
    return np.searchsorted(np.array(cuts, dtype=kind), numbers.astype(kind), side="right").astype(np.int64)


def _years(column: Column) -> tuple[Ints, Flags]:
    """The year of dates, or a number that already is one."""
    if column.kind in ("date", "timestamp"):
        day, finite = days(column)
        return day.astype("datetime64[Y]").astype(np.int64) + 1970, finite
    return _scaled(column, 0, "edges")
