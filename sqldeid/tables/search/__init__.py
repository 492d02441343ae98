"""Searches over the generalisation lattice, by the name a job file gives them."""

from __future__ import annotations

from sqldeid.errors import Interrupted, JobError
from sqldeid.tables.search.base import Outcome, Problem, Progress, State, Strategy, interrupted
from sqldeid.tables.search.best_first import best_first
from sqldeid.tables.search.datafly import datafly
from sqldeid.tables.search.flash import flash
from sqldeid.tables.search.frontier import frontier
from sqldeid.tables.search.igreedy import igreedy
from sqldeid.tables.search.inverse_ola import inverse_ola
from sqldeid.tables.search.ola import ola

STRATEGIES: dict[str, Strategy] = {
    "frontier": frontier,
    "best-first": best_first,
    "flash": flash,
    "ola": ola,
    "inverse-ola": inverse_ola,
    "datafly": datafly,
    "igreedy": igreedy,
}
"""`method` of a job's `search` table -> strategy."""


def search(method: str, problem: Problem) -> Outcome:
    """Run a strategy by name.

    Parameters
    ----------
    method
        A key of `STRATEGIES`.
    problem
        What to search; `problem.state` holds the best node, the bound and all checks, also after an exception.

    Raises
    ------
    JobError
        For an unknown method.
    NoSolutionError
        When no node is admissible, or none was found within the limits; names the nearest.
    Interrupted
        On Ctrl-C or the caller's stop flag; names the best node and the gap so far.
    """
    if method not in STRATEGIES:
        raise JobError(f"unknown search {method!r}; choose one of {', '.join(STRATEGIES)}", key="search.method")
    try:
        return STRATEGIES[method](problem)
    except (KeyboardInterrupt, Interrupted) as stopped:
        raise interrupted(problem) from stopped


__all__ = ["STRATEGIES", "Outcome", "Problem", "Progress", "State", "Strategy", "search"]
