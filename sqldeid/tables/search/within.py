"""The nodes whose loss before suppression is within a bound: what inverse searches look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from time import monotonic

import numpy as np

from sqldeid.arrays import Flags
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.base import Outcome, Problem, State
from sqldeid.tables.search.frontier import frontier
from sqldeid.tables.search.ola import Tags
from sqldeid.tables.search.region import outer_sum


def nodes_within(problem: Problem) -> tuple[Flags, bool]:
    """Which nodes lose at most `max_loss` before suppression, and whether the limits allowed to find all of them.

    Without a check where the loss needs none; else by bisecting paths, with what they check.

    Raises
    ------
    JobError
        For lattices too large to tag.
    """
    loss, most = problem.loss, most_units(problem)
    if loss.parts is None:
        return _by_paths(problem)
    Tags(problem.lattice)
    units = outer_sum([np.array([float(p / 2**loss.guard) for p in part]) for part in loss.parts])
    margin = max(1.0, float(units.max()) * 2.0**-44)
    within: Flags = units <= most + margin
    for node in np.argwhere(within & (units >= most - margin)):
        within[tuple(node)] = loss.bound(tuple(int(x) for x in node)) <= most
    return within, True


def _by_paths(problem: Problem) -> tuple[Flags, bool]:
    tags, most = Tags(problem.lattice), most_units(problem)
    within: Flags = np.zeros(problem.lattice.heights, dtype=np.bool_)
    while path := tags.path():
        low, high = -1, len(path)
        while high - low > 1:
            if problem.spent():
                return within, False
            middle = (low + high) // 2
            node = path[middle]
            if problem.loss.whole(problem.ask([node], histogram=True)[0]) <= most:
                tags.close_below(node)
                within[tuple(slice(0, x + 1) for x in node)] = True
                low = middle
            else:
                tags.close_above(node)
                high = middle
    return within, True


def maximal(flags: Flags) -> list[Node]:
    """The flagged nodes none of whose direct generalisations is flagged."""
    found = flags.copy()
    for axis in range(flags.ndim):
        below = tuple(slice(0, -1) if a == axis else slice(None) for a in range(flags.ndim))
        above = tuple(slice(1, None) if a == axis else slice(None) for a in range(flags.ndim))
        found[below] &= ~flags[above]
    return [tuple(int(x) for x in node) for node in np.argwhere(found)]


def most_units(problem: Problem) -> int:
    """Units of loss at `max_loss`, taken as the decimal number it was written as."""
    return int(Fraction(repr(problem.max_loss)) / problem.loss.unit)


def least_loss(problem: Problem, judged: Callable[[Evaluation], Evaluation]) -> Outcome:
    """The node with least loss where each check is taken as `judged` says; what was checked is not asked again."""

    def evaluate(nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        known = problem.state.checked
        fresh = [node for node in nodes if node not in known]
        if fresh:
            problem.ask(fresh, histogram=True)
        return [judged(known[node]) for node in nodes]

    outcome = frontier(replace(problem, evaluate=evaluate, state=State(started=problem.state.started), progress=None))
    return replace(outcome, checks=problem.state.checks, statements=problem.state.statements)


def best_of(problem: Problem, evaluations: Sequence[Evaluation]) -> Outcome:
    """The best of some checks, where a limit ended the search."""
    state = problem.state
    best = min((e for e in evaluations if e.failing <= problem.allowed), key=problem.key)
    exact = problem.loss.of(best)
    value = problem.loss.value(exact)
    effort = (state.checks, state.statements, monotonic() - state.started)
    return Outcome(best.node, best, exact, value, False, 0, value, *effort, state.checked)
