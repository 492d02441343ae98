"""Whether classes meet k and every criterion: exactly what the job asks, never less. Pure.

m-concealing is judged by row: the risk of each, Σ P(state) / rows of its class that fit it in the state, is at most m.
A class within another has no more rows that fit, so no row's risk is less there. Two things follow. Classes that meet
it meet it together. And rows above m in a class are in no released class within it: what is left of the class is the
most that can be released below (the monotone core; soundness.md 9).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import SqldeidError
from sqldeid.tables.criteria import known
from sqldeid.tables.criteria.histograms import Histograms
from sqldeid.tables.criteria.knowledge import Cells, decide
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.problem import Concealed, Judged, LocalProblem

_CELLS = 4_000_000
"""Classes times values that are looked at together."""


class Judge:
    """k and the criteria of a problem, asked of many classes at once."""

    def __init__(self, problem: LocalProblem) -> None:
        self.k, self.rows = problem.least_rows, problem.rows
        self.columns: list[_Column | _Known] = [_Column(judged, len(problem.rows)) for judged in problem.criteria]
        if problem.concealed is not None:
            self.columns.append(_Known(problem.concealed, len(problem.rows)))

    def passing(self, classes: Classes) -> Flags:
        """Which classes can be released as they are."""
        passing = np.asarray(classes.total(self.rows) >= self.k)
        for column in self.columns:
            if not passing.any():
                break
            passing[passing] = column.holding(classes.part(passing))
        return passing

    def possible(self, classes: Classes) -> Flags:
        """Which classes can contain a class that is released: k, and each criterion's monotone core."""
        passing = np.asarray(classes.total(self.rows) >= self.k)
        for column in self.columns:
            if not passing.any():
                break
            passing[passing] = column.surviving(classes.part(passing)) >= self.k
        return passing


class _Column:
    """A criterion with the sensitive values of the combinations, found by combination."""

    def __init__(self, judged: Judged, combinations: int) -> None:
        self.criterion, self.whole = known(judged.criterion), judged.whole
        if self.criterion.others:
            raise SqldeidError(f"{self.criterion.name} is not judged by local recoding")
        self.cells = _Cells(judged, combinations, len(judged.whole))

    def holding(self, classes: Classes) -> Flags:
        """Which classes meet the criterion."""
        parts = [self.criterion.hold(part, self.whole) for part in self._parts(classes)]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])

    def surviving(self, classes: Classes) -> Ints:
        """The most rows of each class that can be released below it."""
        parts = [self.criterion.survivors(part, self.whole) for part in self._parts(classes)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _parts(self, classes: Classes) -> Iterator[Histograms]:
        """Histograms of as many classes at a time as memory should hold with all values."""
        found = self.cells.histograms(classes)
        most = max(_CELLS // max(len(self.whole), 1), 1)
        for start in range(0, len(found.first), most):
            yield found.part(start, min(start + most, len(found.first)))


class _Known:
    """m-concealing with the known values of the combinations.

    Rows above m are told as every other search tells them (`sqldeid.tables.criteria.knowledge.decide`).
    """

    def __init__(self, concealed: Concealed, combinations: int) -> None:
        self.most, self.tuples = concealed.criterion.most, concealed.tuples
        self.known = [p for _, p in concealed.criterion.known]
        self.cells = _Cells(concealed, combinations, len(concealed.tuples))

    def holding(self, classes: Classes) -> Flags:
        """Which classes have no row above m."""
        return np.asarray(self._above(classes) == 0)

    def surviving(self, classes: Classes) -> Ints:
        """The rows of each class that are not above m: no other one can be released below it."""
        return classes.total(self.cells.of_combination) - self._above(classes)

    def _above(self, classes: Classes) -> Ints:
        """Rows above m of each class."""
        found = self.cells.histograms(classes)
        owner = np.repeat(np.arange(len(found.first)), np.diff(np.append(found.first, len(found.value))))
        risky = decide(Cells(owner, self.tuples[found.value], found.rows), self.known, self.most)
        return np.bincount(owner, weights=found.rows * risky, minlength=len(found.first)).astype(np.int64)


class _Cells:
    """Rows by combination and value, found by combination."""

    def __init__(self, judged: Judged | Concealed, combinations: int, values: int) -> None:
        self.value, self.rows, self.values = judged.value, judged.rows, values
        self.first = np.searchsorted(judged.combination, np.arange(combinations + 1))
        counted = np.bincount(judged.combination, weights=judged.rows, minlength=combinations)
        self.of_combination = counted.astype(np.int64)

    def histograms(self, classes: Classes) -> Histograms:
        """Rows of each class by value; every combination has some."""
        begin, end = self.first[classes.members], self.first[classes.members + 1]
        cells = np.repeat(begin - np.concatenate(([0], np.cumsum(end - begin)[:-1])), end - begin)
        cells += np.arange(len(cells))
        key = np.repeat(classes.owner(), end - begin) * self.values + self.value[cells]
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        start = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        rows = np.add.reduceat(self.rows[cells][order], start)
        owner, value = np.divmod(ordered[start], self.values)
        return Histograms(np.searchsorted(owner, np.arange(len(classes.first))), value, rows)
