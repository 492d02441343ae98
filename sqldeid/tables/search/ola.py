"""Optimal Lattice Anonymization: bisect paths, tag what follows, compare the k-minimal nodes.

Source: El Emam et al. 2009, §3; Mazzone 2019, §4.3.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sqldeid.arrays import Flags
from sqldeid.errors import JobError
from sqldeid.tables.model.evaluation import admissible
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.search.antichain import Antichain
from sqldeid.tables.search.base import Outcome, Problem, finish

_MOST = 10_000_000
"""Nodes of a lattice that can be tagged one by one."""

_AXES = 30
"""Quasi-identifiers of such a lattice."""


def ola(problem: Problem) -> Outcome:
    """Find every k-minimal node and return the one with least loss.

    Exact for losses taken before suppression (all but `loss`, `payout`): no node loses less than a k-minimal node
    below it. With `loss` the optimum need not be k-minimal, so the outcome is never called optimal.

    With criteria that are not inherited upwards under a suppression limit (entropy and recursive l-diversity,
    t-closeness, m-concealing) a failing node closes its specialisations by the rows that it forces out, else itself
    alone; a passing one closes its generalisations, which lose no less even where they pass. What is left is checked,
    so the answer is exact all the same, with more checks.

    Raises
    ------
    JobError
        For lattices too large to tag.
    NoSolutionError
        When no node is admissible, or none was found within the limits.
    """
    tags = Tags(problem.lattice)
    minimal = Antichain(upwards=True)
    while (path := tags.path()) and not problem.spent():
        _bisect(problem, tags, minimal, path)
    if not len(minimal):
        return finish(problem, optimal=not path)
    state = problem.state
    state.key = min(problem.key(state.checked[node]) for node in minimal)
    state.best = state.checked[state.key[2]]
    before_suppression = not problem.loss.suppressed_row
    if not path and before_suppression:
        decide_ties(problem, minimal)
    if not path and not before_suppression:
        state.bound = min(problem.loss.bound(node) for node in minimal)
    return finish(problem, optimal=before_suppression and not path)


def decide_ties(problem: Problem, minimal: Iterable[Node]) -> None:
    """Check what loses as much as the best though it is coarser: a level that merges no rows costs no entropy.

    Such a node has the classes of the one below it, so it never wins; but a proof must be able to say so without them.
    """
    loss, best = problem.loss, problem.state.key
    if best is None or loss.parts is None:
        return  # a proof knows that classes are equal where whole ones lose the same
    seen = {node for node in minimal if loss.bound(node) == best[0]}
    near = list(seen)
    while near:
        above = {x for node in near for x in problem.lattice.generalisations(node)} - seen
        near = [x for x in above if loss.bound(x) == best[0]]
        seen.update(near)
    tied = sorted(x for x in seen if x not in problem.state.checked and (best[1] or x < best[2]))
    if tied and not problem.spent():
        problem.ask(tied[: problem.room(len(tied))])


def _bisect(problem: Problem, tags: Tags, minimal: Antichain, path: list[Node]) -> None:
    """Find the lowest admissible node of a path, one check a step, and tag what each check decides.

    A generalisation of an admissible node may fail under a criterion that is not monotone; it loses no less either way.
    """
    low, high = -1, len(path)
    while high - low > 1 and not problem.spent():
        middle = (low + high) // 2
        evaluation = problem.ask([path[middle]])[0]
        if admissible(evaluation, problem.allowed):
            tags.close_above(evaluation.node)
            minimal.add(evaluation.node)
            high = middle
            continue
        low = middle
        if evaluation.core_failing > problem.allowed:
            tags.close_below(evaluation.node)
        else:
            tags.close(evaluation.node)


class Tags:
    """Which nodes are decided: checked, above a passing node, or below one whose core fails.

    Raises
    ------
    JobError
        For lattices too large to tag.
    """

    def __init__(self, lattice: Lattice) -> None:
        if lattice.size > _MOST or len(lattice.heights) > _AXES:
            raise JobError(
                f"this search tags every node, and {lattice.size:,} nodes of {len(lattice.heights)} columns are too "
                "many; use frontier or best-first",
                key="search.method",
            )
        self._lattice = lattice
        self._open: Flags = np.ones(lattice.heights, dtype=np.bool_)

    def path(self) -> list[Node]:
        """A chain of undecided nodes from the first one (no undecided node is below it) upwards; empty when done."""
        first = int(self._open.argmax())
        if not self._open.ravel()[first]:
            return []
        path = [tuple(int(x) for x in np.unravel_index(first, self._open.shape))]
        while step := next((n for n in self._lattice.generalisations(path[-1]) if self._open[n]), None):
            path.append(step)
        return path

    def close(self, node: Node) -> None:
        """Tag one node as decided."""
        self._open[node] = False

    def close_above(self, node: Node) -> None:
        """Tag a node and its generalisations as decided."""
        self._open[tuple(slice(x, None) for x in node)] = False

    def close_below(self, node: Node) -> None:
        """Tag a node and its specialisations as decided."""
        self._open[tuple(slice(0, x + 1) for x in node)] = False
