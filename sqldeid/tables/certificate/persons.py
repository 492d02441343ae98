"""A certificate's judgement where a person may have many rows: persons counted on the proof's fold, in exact numbers.

Only classes of fewer than k persons fail at every specialisation, too; a class that fails another criterion forces
nothing out (`sqldeid.tables.criteria.persons`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.certificate.rejudge import Arms, Failing, Rejudge, stacked
from sqldeid.tables.criteria import known


@dataclass(frozen=True, slots=True)
class PersonRejudge(Rejudge):
    """The criteria of a plan on the proof's fold, by persons."""

    def failing(self, arms: Arms) -> Failing:
        """Every failing class of the nodes that the arms describe."""
        found = [self._failing_of(arm) for arm in arms]
        rows = np.concatenate(found)
        return Failing(rows[:, 0], rows[:, 1:-2], rows[:, -2], rows[:, -1])

    def _failing_of(self, arm: Mapping[str, object]) -> Ints:
        """Node, groups, size and forced of one node's failing classes."""
        asked = {"folded": self.folded, "columns": arm["columns"]}
        read = self.engine.ask("tables/certificate/prove_persons", **asked)
        classes = stacked(read, self._names)
        persons, size = (read.column(c).to_numpy().astype(np.int64) for c in ("persons", "size"))
        few = persons < self.plan.demands.k
        fails = few.copy()
        number = {tuple(row): i for i, row in enumerate(classes.tolist())}
        for criterion in self.plan.criteria:
            place = self.places[criterion.column]
            read = self.engine.ask("tables/certificate/prove_values", place=place, **asked)
            counts: dict[int, dict[int, int]] = {}
            for row, at, c in zip(
                stacked(read, self._names).tolist(),
                read.column("place").to_pylist(),
                read.column("c").to_pylist(),
                strict=True,
            ):
                counts.setdefault(number[tuple(row)], {})[at] = c
            whole = self.whole(criterion.column)
            for i, by_place in counts.items():
                fails[i] |= not few[i] and not known(criterion).holds(by_place, int(persons[i]), whole)
        node = np.full(int(fails.sum()), int(str(arm["id"])), dtype=np.int64)
        return np.column_stack([node, classes[fails], size[fails], np.where(few, size, 0)[fails]])
