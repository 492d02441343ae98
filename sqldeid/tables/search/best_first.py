"""Best-first branch and bound, bottom up, with what was learnt kept in antichains.

Source: Prasser et al. 2016, "Effective pruning in large search spaces".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.search.antichain import Antichain, Store
from sqldeid.tables.search.base import Outcome, Problem, finish


@dataclass(slots=True)
class _Frontier:
    """Reached nodes whose generalisations were not reached yet, by expected loss, and by proven bound.

    `order` and `bounds` hold the same nodes; an entry of `bounds` whose node was taken meanwhile is skipped.
    """

    failing: Antichain
    lossy: Antichain
    order: list[tuple[float, Node]] = field(default_factory=list)
    bounds: list[tuple[int, Node]] = field(default_factory=list)
    waiting: dict[Node, int] = field(default_factory=dict)
    reached: set[Node] = field(default_factory=set)

    def push(self, node: Node, expected: float, bound: int) -> None:
        self.waiting[node] = bound
        heappush(self.order, (expected, node))
        heappush(self.bounds, (bound, node))

    def pop(self) -> tuple[Node, int]:
        _, node = heappop(self.order)
        return node, self.waiting.pop(node)

    def least(self) -> int | None:
        """Units below which no node that was not reached can be; None when all were."""
        while self.bounds and self.bounds[0][1] not in self.waiting:
            heappop(self.bounds)
        return self.bounds[0][0] if self.bounds else None


def best_first(problem: Problem, store: Store = Antichain) -> Outcome:
    """Expand the reached node that looks best, check its new generalisations in one statement, until none can win.

    Exact for every loss and criterion: a node is left out only when its bound exceeds the best loss (and so do its
    generalisations' bounds), or when it lies below a node whose core fails for too many rows.

    Parameters
    ----------
    problem
        What to search.
    store
        Keeps the nodes of a property; for comparisons of stores.

    Raises
    ------
    NoSolutionError
        When no node is admissible, or none was found within the limits.
    """
    frontier = _Frontier(store(upwards=False), store(upwards=True))
    if _limited(problem) and not _top_leaves_room(problem, frontier):
        return _stopped(problem, frontier)
    _visit(problem, frontier, [problem.lattice.bottom], 0)
    while frontier.order:
        if problem.spent():
            return _stopped(problem, frontier)
        node, bound = frontier.pop()
        if _hopeless(problem, node, bound):
            frontier.lossy.add(node)
            continue
        news = [x for x in problem.lattice.generalisations(node) if x not in frontier.reached]
        if problem.room(len(news)) < len(news):
            frontier.push(node, 0.0, bound)
            return _stopped(problem, frontier)
        _visit(problem, frontier, news, bound)
        problem.state.bound = _proven(problem, frontier)
    return finish(problem, optimal=True)


def _limited(problem: Problem) -> bool:
    """Whether the search may have to stop early; then the top is worth a check, which passes if any node does."""
    limits = problem.time_limit is not None or problem.checks_limit is not None
    return limits and problem.lattice.top != problem.lattice.bottom


def _top_leaves_room(problem: Problem, frontier: _Frontier) -> bool:
    """Check the top, so that there is an answer whenever the search stops; whether a check is left after it."""
    frontier.reached.add(problem.lattice.top)
    problem.ask([problem.lattice.top])
    if problem.room(1):
        return True
    bottom = problem.lattice.bottom
    frontier.push(bottom, 0.0, problem.loss.bound(bottom))
    return False


def _visit(problem: Problem, frontier: _Frontier, nodes: list[Node], inherited: int) -> None:
    """Reach nodes: leave out the hopeless, check those not known to fail, queue all for expansion."""
    frontier.reached.update(nodes)
    promising = [x for x in nodes if not frontier.lossy.covers(x)]
    hopeless = {x for x in promising if _hopeless(problem, x, inherited)}
    for node in hopeless:
        frontier.lossy.add(node)
    unknown = [x for x in promising if x not in hopeless and not frontier.failing.covers(x)]
    found = {e.node: e for e in problem.ask(unknown)} if unknown else {}
    for node in promising:
        if node not in hopeless:
            _queue(problem, frontier, node, found.get(node), inherited)


def _queue(problem: Problem, frontier: _Frontier, node: Node, found: Evaluation | None, inherited: int) -> None:
    """Queue a node by the loss it seems to have; `found` is None where it is known to fail."""
    bound = max(problem.loss.bound(node), inherited)
    if found is None:
        frontier.push(node, _expected(problem, bound, problem.rows), bound)
        return
    if problem.loss.parts is None:
        bound = problem.loss.whole(found)
    if found.core_failing > problem.allowed:
        frontier.failing.add(node)
    frontier.push(node, _expected(problem, bound, found.failing), bound)


def _expected(problem: Problem, bound: int, failing: int) -> float:
    """Loss as if the failing rows lost by generalisation what all rows lose on average."""
    share = failing / problem.rows
    return bound * (1 - share) + problem.worst() * share


def _hopeless(problem: Problem, node: Node, inherited: int) -> bool:
    """Whether neither `node` nor a generalisation of it can beat the best node or win a tie.

    A generalisation whose bound equals the best loss could still win by fewer suppressed rows or a smaller node.
    """
    key = problem.state.key
    return key is not None and max(problem.loss.bound(node), inherited) > key[0]


def _proven(problem: Problem, frontier: _Frontier) -> int:
    """Units below which no node of the lattice can be."""
    least, key = frontier.least(), problem.state.key
    known = [x for x in (least, key[0] if key else None) if x is not None]
    return min(known, default=0)


def _stopped(problem: Problem, frontier: _Frontier) -> Outcome:
    """The best so far; proven optimal only if nothing that waits can be better or tie."""
    least, key = frontier.least(), problem.state.key
    problem.state.bound = _proven(problem, frontier)
    return finish(problem, optimal=key is not None and (least is None or least > key[0]))
