"""Make a release by local recoding once more, of some of its persons, for attacks that hold persons out of it.

It is made from nothing but these persons, by all that a release is made by: bound, peeling, improvement. To begin with
the shares or the classes of the whole table would be quicker; but these know of the persons who are held out, so that
a little of what attackers achieve on them would come from the release itself, and the risk would be told too low.
Instead it is made beside the release of all, in a process of its own where there is a second core.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.tables.attacks.control import Drawn, draw_persons
from sqldeid.tables.attacks.folding import fold_attacked, folded_part
from sqldeid.tables.attacks.held_out import too_few
from sqldeid.tables.attacks.known import Released
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.local.combinations import Combinations, has_room, problem_of, read_combinations
from sqldeid.tables.local.forming import asked_of, formed
from sqldeid.tables.local.layers import Layers
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.peel.apart import Apart
from sqldeid.tables.peel.problem import LocalProblem

REMADE = ("tables/local/read_combinations", "tables/local/read_cells", "tables/local/read_known")
"""Statements that find the classes once more."""


class Remade:
    """The release of the persons who are not held out, on its way from the moment on that the source is folded.

    Where persons are too few, nobody is held out and there is none. Cost: persons are drawn and the fold of those who
    stay is read; classes are formed once more.

    Parameters
    ----------
    known
        The source as attacks see it.
    drawn
        Who is held out; None where nobody is.

    Raises
    ------
    JobError
        If the source gives other values than when it was folded.
    """

    def __init__(self, planned: LocalPlan, folded: Folded, engine: Engine) -> None:
        self.known = fold_attacked(planned.table, folded, engine)
        self.drawn = None if too_few(folded.rows) else draw_persons(self.known)
        self._way = None if self.drawn is None else _Way.of(planned, folded, self.drawn, engine.bench)

    def released(self, _people: exp.Table, _persons: int) -> Released:
        """The release of the persons that were drawn (`sqldeid.tables.attacks.known.Remake`).

        Raises
        ------
        NoSolutionError
            If more rows than allowed are in no class that meets the criteria.
        """
        if self._way is None:
            raise ValueError("nobody is held out")
        return self._way.released()

    def stop(self) -> None:
        """Nobody asks for it any more."""
        if self._way is not None:
            self._way.parts.stop()


@dataclass(frozen=True, slots=True)
class _Way:
    """The classes of those who stay, on their way."""

    planned: LocalPlan
    bench: Engine
    found: Combinations
    problem: LocalProblem
    parts: Apart

    @classmethod
    def of(cls, planned: LocalPlan, folded: Folded, drawn: Drawn, bench: Engine) -> _Way:
        """Set out."""
        part = folded_part(planned.table, folded, drawn.people, drawn.parted.persons[0], bench)
        found = read_combinations(part, bench)
        problem = problem_of(planned, part, found, bench)
        asked, both = asked_of(planned, problem), folded.size + part.size
        return cls(planned, bench, found, problem, Apart(asked, partial(has_room, planned, both, bench)))

    def released(self) -> Released:
        """Arrived."""
        layers = formed(self.planned, self.problem, self.parts.partition()).layers
        return Released(layers.nodes, put_assigned(self.planned, self.found, layers, self.bench))


def put_assigned(planned: LocalPlan, found: Combinations, layers: Layers, bench: Engine) -> exp.Table:
    """The released combinations with their layer and class, on the bench."""
    here = layers.released
    columns: dict[str, Ints] = {f"w{i}": np.asarray(word[here]) for i, word in enumerate(found.words)}
    columns |= {"layer": layers.layer[here] + 1, "class": layers.owner[here]}
    return bench.put(f"{planned.table.name}_assigned", pa.table(columns))
