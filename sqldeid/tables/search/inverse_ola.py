"""Inverse OLA: the greatest k that a bounded loss allows.

Source: Mazzone 2019, §4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqldeid.errors import JobError, NoSolutionError
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.search.base import Outcome, Problem
from sqldeid.tables.search.inverse_concealing import inverse_concealing
from sqldeid.tables.search.within import best_of, least_loss, maximal, most_units, nodes_within

_STATEMENT = 40
"""Nodes in a statement."""


def inverse_ola(problem: Problem) -> Outcome:
    """Find the greatest k with loss at most `max_loss` and suppression within the limit, then the least loss for it.

    The k of a node is the largest for which the rows in classes smaller than k may all be suppressed. `loss` is taken
    before suppression, like the other losses: the suppressed rows depend on the k that is sought. Ties: smaller loss,
    fewer rows in classes below k, then the lexicographically smallest node. k never falls upwards, so the greatest k is
    on the maximal nodes within `max_loss`; the least loss for it is then an ordinary search.

    With `most_m` the least m of m-concealing is sought instead (`inverse_concealing`).

    Returns
    -------
    Outcome
        With `k` (or `m`); the evaluation's failing rows are those in classes smaller than that k.

    Raises
    ------
    JobError
        Without `max_loss`, or for lattices too large to tag.
    NoSolutionError
        When no node within `max_loss` has the least k accepted, or none was found within the limits.
    """
    if problem.max_loss is None:
        raise JobError("inverse-ola needs max_loss, the greatest loss accepted", key="search.max_loss")
    problem = replace(problem, loss=replace(problem.loss, suppressed_row=0))
    if problem.most_m is not None:
        return inverse_concealing(problem, problem.most_m)
    complete = _check_maximal(problem)
    checked = [e for e in problem.state.checked.values() if problem.loss.of(e) <= most_units(problem)]
    k = max((_k_of(problem, e) for e in checked), default=0)
    if k < problem.least_k:
        raise NoSolutionError(
            f"no node within max_loss {problem.max_loss:g} reaches k = {problem.least_k}; the greatest found is {k}. "
            "Raise max_loss or suppression_limit, or lower k.",
            key="search.max_loss",
        )
    if complete:
        outcome = least_loss(problem, lambda e: _at(e, k))
        if outcome.optimal:
            return replace(outcome, k=k)
    return _best_checked(problem, k)


def _check_maximal(problem: Problem) -> bool:
    """Check the nodes within `max_loss` all of whose generalisations lose more; whether the limits allowed all."""
    within, complete = nodes_within(problem)
    nodes = maximal(within)
    for start in range(0, len(nodes), _STATEMENT):
        fresh = [n for n in nodes[start : start + _STATEMENT] if n not in problem.state.checked]
        batch = fresh[: problem.room(_STATEMENT)]
        if (fresh and not batch) or problem.spent():
            return False
        if batch:
            problem.ask(batch, histogram=True)
    return complete


def _k_of(problem: Problem, evaluation: Evaluation) -> int:
    """The largest k such that rows in classes smaller than k may all be suppressed."""
    rows = 0
    for size, times in sorted((evaluation.histogram or {}).items()):
        rows += size * times
        if rows > problem.allowed:
            return size
    return problem.rows


def _smaller(histogram: Mapping[int, int], k: int) -> int:
    """Rows in classes smaller than k."""
    return sum(size * times for size, times in histogram.items() if size < k)


def _at(evaluation: Evaluation, k: int) -> Evaluation:
    """A check as if the criterion were k-anonymity with this k."""
    failing = _smaller(evaluation.histogram or {}, k)
    return replace(evaluation, core_failing=failing, failing=failing, suppressed_leaves=None, suppressed_logs=None)


def _best_checked(problem: Problem, k: int) -> Outcome:
    """The best checked node with this k, where a limit ended the search."""
    fits = [_at(e, k) for e in problem.state.checked.values() if problem.loss.of(e) <= most_units(problem)]
    return replace(best_of(problem, fits), k=k)
