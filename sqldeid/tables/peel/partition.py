"""Find a release with levels of its own for each class, and what every such release must lose."""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import NoSolutionError
from sqldeid.tables.peel.bound import parts_of, shares_of
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.clustering import cluster, high_nodes, low_nodes
from sqldeid.tables.peel.grid import make_grid
from sqldeid.tables.peel.improving import improve
from sqldeid.tables.peel.joining import place_left_over
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.layers import in_layers
from sqldeid.tables.peel.nodes import listed
from sqldeid.tables.peel.peeling import peel
from sqldeid.tables.peel.problem import LocalProblem, Partition
from sqldeid.tables.peel.state import State

_BOUND = 0.3
"""Share of the time that the bound may take."""

_CLUSTER = 0.7
"""Share of what is then left that classes of neighbours may take, where the lattice is too large to be visited."""

_STEPS, _RATIO = 20, 0.82
"""How often rows are peeled that lose no more than a limit each, and by how much each limit is less than the next."""


def partition(problem: LocalProblem) -> Partition:
    """Recode each class at the lowest levels that its neighbours allow.

    Guarantee
        Each released class, counted on equal labels, has at least k rows and meets every criterion; at most `allowed`
        rows are suppressed; all rows of a combination are treated alike.
    Assumes
        Hierarchies nest, and their last level is one group.
    Does not protect
        Against what a criterion does not; against reading from the levels that finer classes would have failed
        (Cohen 2022), which with k alone tells sizes, with criteria on sensitive columns more.
    Source
        `docs/design/local.md`; order of nodes and ties depend on quasi-identifying values and the job alone.

    Raises
    ------
    NoSolutionError
        Where not even all rows in one class meet the criteria.
    """
    grid, judge, clock = make_grid(problem), Judge(problem), Clock(problem.seconds)
    parts = parts_of(grid)
    bounding = clock.part(_BOUND)
    share = shares_of(problem, grid, parts, bounding)
    state = State(grid, problem.rows)
    if len(parts) == 1:
        _peel_all(state, judge, share[0], clock)
    else:
        peel(state, judge, low_nodes(grid, problem.rows), clock)
        growing = clock.part(_CLUSTER)
        cluster(state, judge, growing)
        bounding.stopped |= growing.stopped
        peel(state, judge, high_nodes(grid, problem.rows), Clock(None))
    place_left_over(state, judge, problem.allowed, clock)
    if problem.layers is None:
        improve(state, judge, clock)
    elif len(np.unique(state.at[state.at >= 0])) > problem.layers:
        state = _few(state, judge, problem, clock)
    used, layer = np.unique(state.at[state.at >= 0], return_inverse=True)
    layers = state.at.copy()
    layers[state.at >= 0] = layer
    chosen = tuple(state.nodes[i] for i in used.tolist())
    bound = int((share.sum(axis=0) * problem.rows).sum())
    return Partition(chosen, layers, state.units, bound, grid.unit, clock.stopped or bounding.stopped, parts, share)


def _few(state: State, judge: Judge, problem: LocalProblem, clock: Clock) -> State:
    found = in_layers(state, judge, problem.layers or 1, problem.allowed, clock)
    if found is None:
        raise NoSolutionError(
            f"no release of {problem.layers} layers meets the criteria; raise layers or suppression_limit"
        )
    return found


def _peel_all(state: State, judge: Judge, share: Ints, clock: Clock) -> None:
    """Peel by shares; then what is left by what each row would lose, from little to all, in steps."""
    grid, nodes = state.grid, listed(state.grid)
    peel(state, judge, nodes.rising(grid, state.rows, int(share.max(initial=0))), clock, share)
    steps, before = 1 if judge.columns else _STEPS, -1
    for i in range(1, steps + 1):
        rows = np.where(state.at < 0, state.rows, 0)
        most = int(grid.row * _RATIO ** (steps - i))
        # What has k rows now and loses no more than in the step before had them then, and was released.
        peel(state, judge, nodes.rising(grid, rows, most, before), clock, np.full(len(rows), most))
        before = most
    if clock.over():
        peel(state, judge, high_nodes(grid, state.rows), Clock(None))
