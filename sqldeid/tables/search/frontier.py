"""The default search: bound without data, check where the answer is expected to close most, many nodes a statement.

Exact for every loss and for every criterion with a declared monotone core. See `region` for what a check proves,
`guide` for the choice, `prediction` for the model behind it.
"""

from __future__ import annotations

from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.search.base import Outcome, Problem, finish
from sqldeid.tables.search.boxes import Boxes
from sqldeid.tables.search.descent import descend
from sqldeid.tables.search.guide import Guide
from sqldeid.tables.search.prediction import Prediction
from sqldeid.tables.search.region import Region

_FIRST, _GROWTH, _MOST = 8, 10, (100, 400)
"""Nodes in a statement: at the start (every answer teaches much), how many checks until one more, and at most (in small
and large lattices)."""


_ARRAYS = 10_000_000
"""Nodes of a lattice up to which arrays over it are kept."""

_AXES = 30
"""Quasi-identifiers up to which they are."""

_AT_ONCE = 200_000
"""Nodes of a lattice up to which the proof finds good nodes soon enough by itself."""


def frontier(problem: Problem) -> Outcome:
    """Find the optimum and prove it, or, within a limit, the best node so far and the proven gap.

    What the problem's state and its prior hold already is learnt from first.

    Raises
    ------
    NoSolutionError
        When no node is admissible, or none was found within the limits.
    """
    prediction = Prediction(problem.marginals, problem.rows, problem.allowed)
    if known := _known(problem):
        prediction.learn(known)
    top = problem.ask([problem.lattice.top])
    prediction.learn(top)
    if top[0].core_failing > problem.allowed:
        return finish(problem, optimal=True)
    if problem.lattice.size > _AT_ONCE:
        descend(problem, prediction)
    if problem.lattice.size > _ARRAYS or len(problem.lattice.heights) > _AXES:
        return finish(problem, optimal=Boxes(problem, prediction).run())
    return finish(problem, optimal=_prove(problem, prediction))


def _known(problem: Problem) -> list[Evaluation]:
    """What was checked before; of two checks of a node the one in this search's state."""
    return list({e.node: e for e in (*problem.prior, *problem.state.checked.values())}.values())


def _prove(problem: Problem, prediction: Prediction) -> bool:
    """Check what closes most until nothing is open, or a limit is reached."""
    region = Region(problem)
    guide = Guide(region, prediction)
    most = min(_MOST[1], max(_MOST[0], problem.lattice.size // 4000))
    found = _known(problem)
    while True:
        for evaluation in found:
            region.learn(evaluation)
        flags = region.open()
        problem.state.bound = region.bound(flags)
        problem.state.open = int(flags.sum())
        if not problem.state.open:
            return True
        size = problem.room(min(most, _FIRST + problem.state.checks // _GROWTH))
        if problem.spent() or not size:
            return False
        found = problem.ask(guide.choose(flags, size))
        prediction.learn(found)
