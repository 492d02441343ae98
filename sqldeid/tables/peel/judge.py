"""Whether classes meet k and every criterion: exactly what the job asks, never less. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import SqldeidError
from sqldeid.tables.criteria import known
from sqldeid.tables.criteria.histograms import Histograms
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.problem import Judged, LocalProblem

_CELLS = 4_000_000
"""Classes times values that are looked at together."""


class Judge:
    """k and the criteria of a problem, asked of many classes at once."""

    def __init__(self, problem: LocalProblem) -> None:
        self.k, self.rows = problem.k, problem.rows
        self.columns = [_Column(judged, len(problem.rows)) for judged in problem.criteria]

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
        self.value, self.rows = judged.value, judged.rows
        self.first = np.searchsorted(judged.combination, np.arange(combinations + 1))

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
        found = self.histograms(classes)
        most = max(_CELLS // max(len(self.whole), 1), 1)
        for start in range(0, len(found.first), most):
            yield found.part(start, min(start + most, len(found.first)))

    def histograms(self, classes: Classes) -> Histograms:
        """Rows of each class by sensitive value."""
        begin, end = self.first[classes.members], self.first[classes.members + 1]
        cells = np.repeat(begin - np.concatenate(([0], np.cumsum(end - begin)[:-1])), end - begin)
        cells += np.arange(len(cells))
        key = np.repeat(classes.owner(), end - begin) * len(self.whole) + self.value[cells]
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        start = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        rows = np.add.reduceat(self.rows[cells][order], start)
        owner, value = np.divmod(ordered[start], len(self.whole))
        return Histograms(np.searchsorted(owner, np.arange(len(classes.first))), value, rows)
