"""Datafly: generalise the column with most distinct values until few enough rows fail. A baseline, never proven.

Source: Sweeney 2002, "Achieving k-anonymity privacy protection using generalization and suppression", §4.
"""

from __future__ import annotations

from sqldeid.tables.model.evaluation import admissible
from sqldeid.tables.search.base import Outcome, Problem, finish


def datafly(problem: Problem) -> Outcome:
    """Climb from the original table, one column a step (ties: the first column), to the first admissible node.

    Raises
    ------
    NoSolutionError
        When no node of the climb is admissible, or a limit is reached before.
    """
    node = problem.lattice.bottom
    problem.state.bound = problem.loss.bound(node)
    while not admissible(problem.ask([node])[0], problem.allowed):
        if node == problem.lattice.top or problem.spent():
            break
        steps = problem.lattice.generalisations(node)
        node = max(steps, key=lambda step: _distinct(problem, node, step))
    return finish(problem, optimal=False)


def _distinct(problem: Problem, node: tuple[int, ...], step: tuple[int, ...]) -> int:
    """Distinct values, at `node`, of the column that `step` generalises."""
    column = next(j for j, (x, y) in enumerate(zip(node, step, strict=True)) if x != y)
    return int((problem.marginals[column].rows[node[column]] > 0).sum())
