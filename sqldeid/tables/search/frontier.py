"""The default search: bound without data, check where the answer is expected to close most, many nodes a statement.

Exact for every loss and for every criterion with a declared monotone core. See `region` for what a check proves,
`guide` for the choice, `prediction` for the model behind it.
"""

from __future__ import annotations

from sqldeid.tables.search.base import Outcome, Problem, finish
from sqldeid.tables.search.guide import Guide
from sqldeid.tables.search.prediction import Prediction
from sqldeid.tables.search.region import Region

_FIRST, _MOST = 8, 80
"""Nodes in a statement, at the start (every answer teaches much) and later."""


def frontier(problem: Problem) -> Outcome:
    """Find the optimum and prove it, or, within a limit, the best node so far and the proven gap.

    Raises
    ------
    NoSolutionError
        When no node is admissible, or none was found within the limits.
    """
    region = Region(problem)
    prediction = Prediction(problem.marginals, problem.rows, problem.allowed)
    guide = Guide(region, prediction)
    nodes = [problem.lattice.top]
    while True:
        for evaluation in (found := problem.ask(nodes)):
            region.learn(evaluation)
        prediction.learn(found)
        flags = region.open()
        problem.state.bound = region.bound(flags)
        problem.state.open = int(flags.sum())
        if not problem.state.open:
            return finish(problem, optimal=True)
        size = problem.room(min(_MOST, _FIRST + problem.state.checks // 10))
        if problem.spent() or not size:
            return finish(problem, optimal=False)
        nodes = guide.choose(flags, size)
