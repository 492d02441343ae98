"""Find the smallest sets of columns that single out enough persons. Pure: `measure` says how many a set singles out.

A set of columns is a tuple of column numbers, ascending. Singling out is monotone: a class split by one more column
can only shrink, so whoever is alone stays alone. A set that singles out enough persons therefore needs no superset, and
below a set that does not there is none that does (Mazzone 2019, ch. 3; the search is that of a monotone border).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

from sqldeid.findings import Uniqueness

Columns = tuple[int, ...]
Measure = Callable[[Sequence[Columns]], list[Uniqueness]]
Reaches = Callable[[Uniqueness], bool]


@dataclass(slots=True)
class Tried:
    """The sets that were measured, each once."""

    measure: Measure
    found: dict[Columns, Uniqueness] = field(default_factory=dict)

    def ask(self, sets: Iterable[Columns]) -> None:
        """Measure what is not known yet, in one call."""
        new = [s for s in dict.fromkeys(sets) if s not in self.found]
        if new:
            self.found.update(zip(new, self.measure(new), strict=True))


def count_sets(columns: int, most: int) -> int:
    """Sets of one to `most` columns that there are."""
    return sum(comb(columns, size) for size in range(1, min(columns, most) + 1))


def every_set(columns: int, most: int, tried: Tried, reaches: Reaches) -> list[Columns]:
    """Measure every set of at most `most` columns that contains no smaller one which reaches.

    Returns
    -------
    The sets that reach and have no subset that does.

    Source
    ------
    Level by level, as Agrawal & Srikant 1994 join itemsets.
    """
    smallest: list[Columns] = []
    candidates: list[Columns] = [(c,) for c in range(columns)]
    for _ in range(most):
        if not candidates:
            break
        tried.ask(candidates)
        smallest += [s for s in candidates if reaches(tried.found[s])]
        open_ = [s for s in candidates if not reaches(tried.found[s])]
        candidates = _joined(open_, columns)
    return smallest


def _joined(level: Sequence[Columns], columns: int) -> list[Columns]:
    """Sets of one column more, all of whose subsets of this size are in `level`."""
    there = set(level)
    return [
        joined
        for s in level
        for joined in ((*s, c) for c in range(s[-1] + 1, columns))
        if all(part in there for part in combinations(joined, len(s)))
    ]


def borders(order: Sequence[int], most: int, tried: Tried, reaches: Reaches) -> tuple[list[Columns], list[Columns]]:
    """Find the border between sets that reach and sets that do not, by measuring as few as decide it.

    Boxes of sets (all that hold `required` and otherwise only columns of `free`) are closed whole: by their greatest
    set, if it does not reach, and by their least, if it does. What is left is split at the last free column.

    Parameters
    ----------
    order
        The columns, those first that tell least apart: their unions close most.
    most
        Most columns in a set.

    Returns
    -------
    smallest
        Sets of at most `most` columns that reach and have no subset that does.
    largest
        Sets that do not reach and have no superset that does not; empty where `most` leaves sets undecided.
    """
    reaching: list[Columns] = []
    failing: list[Columns] = []
    boxes: list[tuple[Columns, Columns]] = [((), tuple(order))]
    while boxes := [b for b in boxes if not _within(_greatest(b), failing)]:
        tried.ask(_greatest(b) for b in boxes)
        failing += [_greatest(b) for b in boxes if not reaches(tried.found[_greatest(b)])]
        boxes = _split([b for b in boxes if reaches(tried.found[_greatest(b)])], most, tried, reaches, reaching)
    return _minimal(reaching), _maximal(failing) if most >= len(order) else []


def _split(
    boxes: Iterable[tuple[Columns, Columns]], most: int, tried: Tried, reaches: Reaches, reaching: list[Columns]
) -> list[tuple[Columns, Columns]]:
    """Of each box the half without its last free column and the half with it, unless its least set closes that."""
    halves = [(required, free[:-1], tuple(sorted((*required, free[-1])))) for required, free in boxes]
    tried.ask(least for *_, least in halves if not _holds(least, reaching))
    left: list[tuple[Columns, Columns]] = []
    for required, free, least in halves:
        left.append((required, free))
        if _holds(least, reaching):
            continue
        if reaches(tried.found[least]):
            reaching.append(least)
        elif len(least) < most:
            left.append((least, free))
    return left


def _greatest(box: tuple[Columns, Columns]) -> Columns:
    return tuple(sorted((*box[0], *box[1])))


def _holds(columns: Columns, reaching: Iterable[Columns]) -> bool:
    """Whether a set contains one that reaches."""
    there = set(columns)
    return any(there.issuperset(r) for r in reaching)


def _within(columns: Columns, failing: Iterable[Columns]) -> bool:
    """Whether a set is part of one that does not reach."""
    there = set(columns)
    return any(there.issubset(f) for f in failing)


def _minimal(sets: Iterable[Columns]) -> list[Columns]:
    kept: list[Columns] = []
    for s in sorted(set(sets), key=lambda s: (len(s), s)):
        if not _holds(s, kept):
            kept.append(s)
    return kept


def _maximal(sets: Iterable[Columns]) -> list[Columns]:
    kept: list[Columns] = []
    for s in sorted(set(sets), key=lambda s: (-len(s), s)):
        if not _within(s, kept):
            kept.append(s)
    return kept
