"""Make a release by local recoding once more, of some of its persons, for attacks that hold persons out of it."""

from __future__ import annotations

from random import SystemRandom

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import NoSolutionError
from sqldeid.tables.attacks.folding import folded_part
from sqldeid.tables.attacks.known import Released
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.local.blunt import blunted
from sqldeid.tables.local.combinations import Combinations, problem_of, read_combinations
from sqldeid.tables.local.layers import Layers, layers_of
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.peel import partition

REMADE = ("tables/local/read_combinations", "tables/local/read_cells", "tables/local/read_known")
"""Statements that find the classes once more."""


def remake(planned: LocalPlan, folded: Folded, engine: Engine, people: exp.Table, persons: int) -> Released:
    """The release of the persons `train` of a table (`sqldeid.tables.attacks.known.Remake`), by the same algorithm.

    Cost: classes are formed once more.

    Raises
    ------
    NoSolutionError
        If more rows than allowed are in no class that meets the criteria.
    """
    plan, bench = planned.table, engine.bench
    part = folded_part(plan, folded, people, persons, bench)
    found = read_combinations(part, bench)
    problem = problem_of(planned, part, found, bench)
    layers = layers_of(problem, partition(problem), blank=plan.demands.blanks)
    if int(problem.rows[~layers.released].sum()) > problem.allowed:
        raise NoSolutionError.at(f"{planned.key}.privacy", "more rows than allowed are in no class")
    if amount := plan.search.blunt:
        layers = blunted(layers, amount, SystemRandom())
    return Released(layers.nodes, put_assigned(planned, found, layers, bench))


def put_assigned(planned: LocalPlan, found: Combinations, layers: Layers, bench: Engine) -> exp.Table:
    """The released combinations with their layer and class, on the bench."""
    here = layers.released
    columns: dict[str, Ints] = {f"w{i}": np.asarray(word[here]) for i, word in enumerate(found.words)}
    columns |= {"layer": layers.layer[here] + 1, "class": layers.owner[here]}
    return bench.put(f"{planned.table.name}_assigned", pa.table(columns))
