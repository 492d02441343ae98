"""Improved greedy: always the step that saves most rows from suppression for the loss it costs. A baseline.

Source: the heuristic that Prasser et al. 2016 compare with (table 5), after Babu et al. 2013.
"""

from __future__ import annotations

from fractions import Fraction

from sqldeid.tables.model.evaluation import Evaluation, admissible
from sqldeid.tables.search.base import Outcome, Problem, finish


def igreedy(problem: Problem) -> Outcome:
    """Climb from the original table; check every one-step generalisation in one statement, take the best ratio.

    Raises
    ------
    NoSolutionError
        When no node of the climb is admissible, or a limit is reached before.
    """
    here = problem.ask([problem.lattice.bottom])[0]
    problem.state.bound = problem.loss.bound(here.node)
    while not admissible(here, problem.allowed):
        steps = problem.lattice.generalisations(here.node)
        if not steps or problem.spent() or problem.room(len(steps)) < len(steps):
            break
        found, before = problem.ask(steps), here
        here = max(found, key=lambda e: _ratio(problem, before, e))
    return finish(problem, optimal=False)


def _ratio(problem: Problem, before: Evaluation, after: Evaluation) -> tuple[Fraction, int]:
    """Rows saved per unit lost; among equals the step that leaves fewest rows failing."""
    loss = problem.loss
    if loss.parts is None:
        cost = loss.whole(after) - loss.whole(before)
    else:
        cost = loss.bound(after.node) - loss.bound(before.node)
    return Fraction(before.failing - after.failing, max(cost, 1)), -after.failing
