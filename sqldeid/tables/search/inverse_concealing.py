"""Inverse OLA for m-concealing: the least m (greatest 1/m) that a bounded loss allows. New against the source.

Under a suppression limit the m of a node does not only fall upwards, so the maximal nodes do not decide. What bounds it
downwards are the rows whose own risk exceeds m: they are suppressed at every specialisation, too (soundness.md 9). So a
node's m is never below the least m that leaves few enough such rows at any node above it.

Source: Mazzone 2019, §4.4 and §5.2; soundness.md 9 and 12.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf

from sqldeid.arrays import Flags
from sqldeid.errors import NoSolutionError
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.search.base import Outcome, Problem
from sqldeid.tables.search.within import best_of, least_loss, maximal, nodes_within

_STATEMENT = 40
"""Nodes in a statement."""


def inverse_concealing(problem: Problem, most_m: float) -> Outcome:
    """Find the least m with loss at most `max_loss` and suppression within the limit, then the least loss for it.

    The m of a node is the least for which the rows in classes below k, and in classes with a risk above m, may all be
    suppressed. Ties: smaller loss (before suppression), fewer suppressed rows, then the lexicographically first node.

    Parameters
    ----------
    problem
        Its evaluations hold the risks of classes and rows (`profile`); losses are taken before suppression.
    most_m
        Greatest m accepted.

    Returns
    -------
    Outcome
        With `m`; the evaluation's failing rows are those that this m suppresses.

    Raises
    ------
    NoSolutionError
        When no node within `max_loss` has an m that is accepted, or none was found within the limits.
    """
    within, complete = nodes_within(problem)
    m, closed = _least_m(problem, within)
    if m > most_m:
        raise _none(problem, m, most_m)
    if complete and closed:
        outcome = least_loss(problem, lambda e: _at(e, m))
        if outcome.optimal:
            return replace(outcome, m=m)
    checked = problem.state.checked.values()
    return replace(best_of(problem, [_at(e, m) for e in checked if within[e.node]]), m=m)


def _least_m(problem: Problem, within: Flags) -> tuple[float, bool]:
    """The least m of the nodes within `max_loss`, and whether that is proven."""
    open_ = within.copy()
    m = _close(problem, within, open_)
    while open_.any():
        nodes = maximal(open_)[: problem.room(_STATEMENT)]
        if not nodes or problem.spent():
            return m, False
        problem.ask(nodes, histogram=True)
        m = _close(problem, within, open_)
    return m, True


def _close(problem: Problem, within: Flags, open_: Flags) -> float:
    """Close what was checked, and what lies below a node whose rows alone do not allow a smaller m; the least m."""
    checked = [e for e in problem.state.checked.values() if within[e.node]]
    m = min((_m_of(problem, e) for e in checked), default=inf)
    for e in checked:
        below = tuple(slice(0, x + 1) for x in e.node)
        open_[below if _bound(problem, e) >= m else e.node] = False
    return m


def _m_of(problem: Problem, evaluation: Evaluation) -> float:
    """The least m whose failing classes may all be suppressed; infinite where those below k are too many."""
    return inf if evaluation.profile is None else evaluation.profile.classes.least(problem.allowed)


def _bound(problem: Problem, evaluation: Evaluation) -> float:
    """What no m of a specialisation is below."""
    return inf if evaluation.profile is None else evaluation.profile.cells.least(problem.allowed)


def _at(evaluation: Evaluation, m: float) -> Evaluation:
    """A check as if the criterion were m-concealing with this m."""
    profile = evaluation.profile
    if profile is None:
        return evaluation
    failing, core = profile.classes.above(m), profile.cells.above(m)
    return replace(evaluation, failing=failing, core_failing=core, suppressed_leaves=None, suppressed_logs=None)


def _none(problem: Problem, m: float, most_m: float) -> NoSolutionError:
    if isinf(m):
        why = f"no node within max_loss {problem.max_loss:g} keeps the rows in classes below k within suppression_limit"
        return NoSolutionError(f"{why}. Raise max_loss or suppression_limit, or lower k.", key="search.max_loss")
    return NoSolutionError(
        f"no node within max_loss {problem.max_loss:g} reaches m = {most_m:g}; the least found is {m:.6g}. Raise "
        "max_loss, suppression_limit or m.",
        key="search.max_loss",
    )
