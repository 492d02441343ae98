"""Flash: bisect paths level by level, go on from the nodes that failed; then compare what may still win.

Source: Kohlmayer et al. 2012, "Flash: efficient, stable and optimal k-anonymity", algorithms 1 to 3; with stores of
antichains in place of the lattice as Prasser et al. 2016 have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sqldeid.errors import JobError
from sqldeid.tables.model.evaluation import admissible
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.search.antichain import Antichain, Store
from sqldeid.tables.search.base import Outcome, Problem, finish
from sqldeid.tables.search.ola import decide_ties

_MOST = 10_000_000
"""Nodes of a lattice that can be visited one by one."""

Rank = tuple[int, float, float, Node]
"""Flash's order of nodes: level, mean generalisation, mean share of values that are merged; then the node."""


def flash(problem: Problem, store: Store = Antichain) -> Outcome:
    """Bisect paths from the bottom upwards, then check what no bound rules out.

    The first phase is the source's. Every level is visited in a stable order; from each undecided node a path of
    undecided nodes leads upwards and is bisected, then paths from the nodes of it that failed. It finds where the
    admissible nodes begin, and for losses taken before suppression (all but `loss`, `payout`) the optimum. With
    `loss` a generalisation of an admissible node may lose less, for it suppresses less: a second phase checks, by
    their bounds, the nodes that neither fail nor lose too much by generalisation alone.

    Exact for every loss and criterion: a node is left out only below one whose core fails for too many rows, at a
    bound above the best loss, or, for losses taken before suppression, above an admissible one.

    Parameters
    ----------
    problem
        What to search.
    store
        Keeps the nodes of a property; for comparisons of stores.

    Raises
    ------
    JobError
        For lattices too large to visit node by node.
    NoSolutionError
        When no node is admissible, or none was found within the limits.
    """
    if problem.lattice.size > _MOST:
        raise JobError(
            f"this search visits every node, and {problem.lattice.size:,} nodes of {len(problem.lattice.heights)} "
            "columns are too many; use frontier or best-first",
            key="search.method",
        )
    known = _Known(problem, store(upwards=False), store(upwards=True), store(upwards=True))
    if not _bisect_all(problem, known):
        problem.state.bound = problem.loss.bound(problem.lattice.bottom)
        return finish(problem, optimal=False)
    if problem.loss.suppressed_row:
        return finish(problem, optimal=_compare(problem, known))
    decide_ties(problem, [node for node, e in problem.state.checked.items() if admissible(e, problem.allowed)])
    return finish(problem, optimal=True)


@dataclass(slots=True)
class _Known:
    """What the checks so far imply of other nodes.

    Parameters
    ----------
    failing
        Nodes whose core fails for too many rows; specialisations inherit it.
    passing
        Admissible nodes: where the criteria are monotone, generalisations pass, too.
    lossy
        Nodes whose bound is above the best loss; generalisations inherit it.
    """

    problem: Problem
    failing: Antichain
    passing: Antichain
    lossy: Antichain
    order: dict[Node, Rank] = field(default_factory=dict)

    def cannot_win(self, node: Node) -> bool:
        """Whether the node fails, or loses more by generalisation alone than the best so far in all."""
        if self.lossy.covers(node):
            return True
        key = self.problem.state.key
        if key is not None and self.problem.loss.bound(node) > key[0]:
            self.lossy.add(node)
            return True
        return self.failing.covers(node)

    def decided(self, node: Node) -> bool:
        """Whether the first phase need not check the node."""
        return node in self.problem.state.checked or self.cannot_win(node) or self.passing.covers(node)

    def rank(self, node: Node) -> Rank:
        """The node's place in Flash's order, which does not depend on the order of the columns."""
        known = self.order.get(node)
        if known is None:
            known = self.order[node] = _rank(self.problem, node)
        return known


def _rank(problem: Problem, node: Node) -> Rank:
    steps = merged = 0.0
    for marginal, x in zip(problem.marginals, node, strict=True):
        steps += x / max(marginal.height - 1, 1)
        merged += 1 - len(marginal.rows[x]) / max(len(marginal.rows[0]), 1)
    return sum(node), steps / len(node), merged / len(node), node


def levels(lattice: Lattice) -> Iterator[list[Node]]:
    """The nodes of each level, the sum of a node's levels, from the bottom up; one level at a time in memory."""
    rest = [sum(h - 1 for h in lattice.heights[j:]) for j in range(len(lattice.heights) + 1)]

    def nodes(j: int, total: int) -> Iterator[Node]:
        if j == len(lattice.heights):
            yield ()
            return
        for x in range(max(0, total - rest[j + 1]), min(lattice.heights[j] - 1, total) + 1):
            for tail in nodes(j + 1, total - x):
                yield (x, *tail)

    for total in range(rest[0] + 1):
        yield list(nodes(0, total))


def _bisect_all(problem: Problem, known: _Known) -> bool:
    """The first phase; whether the limits allowed all of it.

    Under a criterion that is not monotone one bisection may leave the path's first node undecided, so it is repeated.
    """
    waiting: list[Rank] = []
    for level in levels(problem.lattice):
        known.order = {node: known.rank(node) for node in level}  # what lies below is not asked for again
        for node in sorted(level, key=known.rank):
            while not known.decided(node):
                _bisect(problem, known, waiting, _path(problem, known, node))
                if not _continue(problem, known, waiting):
                    return False
    return True


def _continue(problem: Problem, known: _Known, waiting: list[Rank]) -> bool:
    """Bisect the paths that begin above nodes that failed; whether the limits allow to go on."""
    while waiting:
        failed = heappop(waiting)[-1]
        for node in sorted(problem.lattice.generalisations(failed), key=known.rank):
            if problem.spent():
                return False
            if not known.decided(node):
                _bisect(problem, known, waiting, _path(problem, known, node))
    return not problem.spent()


def _path(problem: Problem, known: _Known, node: Node) -> list[Node]:
    """Undecided nodes from `node` upwards, always to the first generalisation in Flash's order."""
    path = [node]
    while True:
        above = sorted(problem.lattice.generalisations(path[-1]), key=known.rank)
        step = next((x for x in above if not known.decided(x)), None)
        if step is None:
            return path
        path.append(step)


def _bisect(problem: Problem, known: _Known, waiting: list[Rank], path: list[Node]) -> None:
    """Find the lowest admissible node of a path, one check a step; nodes that fail wait to be gone on from."""
    low, high = -1, len(path)
    while high - low > 1 and not problem.spent():
        middle = (low + high) // 2
        evaluation = problem.ask([path[middle]])[0]
        if admissible(evaluation, problem.allowed):
            known.passing.add(evaluation.node)
            high = middle
            continue
        low = middle
        heappush(waiting, known.rank(evaluation.node))
        if evaluation.core_failing > problem.allowed:
            known.failing.add(evaluation.node)


def _compare(problem: Problem, known: _Known) -> bool:
    """The second phase: check the open nodes by their bounds until none can win; whether the limits allowed all."""
    checked, bound = problem.state.checked, problem.loss.bound
    for value, node in sorted((bound(x), x) for x in _open(problem, known) if x not in checked):
        if known.cannot_win(node):
            continue
        problem.state.bound = value
        if problem.spent():
            return False
        evaluation = problem.ask([node])[0]
        if evaluation.core_failing > problem.allowed:
            known.failing.add(node)
    return True


def _open(problem: Problem, known: _Known) -> Iterator[Node]:
    """Nodes that were not ruled out, found upwards from the bottom without a look at what loses too much."""
    seen = {problem.lattice.bottom}
    near = [problem.lattice.bottom]
    key = problem.state.key
    while near:
        node = near.pop()
        if key is not None and problem.loss.bound(node) > key[0]:
            continue
        if not known.failing.covers(node):
            yield node
        above = [x for x in problem.lattice.generalisations(node) if x not in seen]
        seen.update(above)
        near.extend(above)
