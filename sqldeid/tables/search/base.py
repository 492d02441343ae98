"""What a search is given and what it returns; counting, limits, ties and the best node so far in one place.

A strategy sees `Problem.ask(nodes)` and bounds, never SQL. The best node, the proven bound and every check made stay in
`Problem.state`, also when a check is interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from sqldeid.errors import Interrupted, NoSolutionError
from sqldeid.tables.model.evaluation import Evaluate, Evaluation, Marginal, admissible
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.model.loss import Loss

_SHOWN = 12
"""Columns of a node that a message names."""

Key = tuple[int, int, Node]
"""How admissible nodes compare: units of loss, suppressed rows, the node itself; the smallest wins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands: best loss and bound in the published scale, and what it took so far."""

    best: float | None
    bound: float | None
    checks: int
    statements: int
    open: int | None


@dataclass(slots=True)
class State:
    """What is known so far; mutable, readable at any time, also after an interruption.

    Parameters
    ----------
    best
        The best admissible check so far.
    key
        Its key; None while no admissible node is known.
    bound
        Units below which no unchecked node can be: proven so far.
    checked
        Every check made, by node: what a certificate is drawn from.
    nearest
        The check with fewest failing rows.
    """

    best: Evaluation | None = None
    key: Key | None = None
    bound: int = 0
    checked: dict[Node, Evaluation] = field(default_factory=dict)
    nearest: Evaluation | None = None
    checks: int = 0
    statements: int = 0
    open: int | None = None
    started: float = field(default_factory=monotonic)


@dataclass(frozen=True, slots=True)
class Problem:
    """One optimisation over a lattice.

    Parameters
    ----------
    lattice
        The nodes.
    marginals
        One per quasi-identifier, in the lattice's order.
    rows
        Rows of the table.
    allowed
        Most rows that may be suppressed.
    loss
        What is minimised.
    evaluate
        Checks nodes.
    time_limit
        Seconds after which the search stops with the best node so far and the proven gap.
    checks_limit
        Checks after which it does.
    max_loss
        Greatest loss accepted, in the published scale (`inverse-ola`).
    least_k
        Least k accepted (`inverse-ola`).
    most_m
        Greatest m accepted, where the least m of m-concealing is sought instead (`inverse-ola`).
    progress
        Called after every statement.
    stop
        Asked before every statement; true ends the search with `Interrupted`.
    full_statements
        Whether each statement asks as many nodes as it may, even those expected to close little: it costs several
        times what a node in it does.
    prior
        Checks under the same criteria that are only to be learnt from. Those of admissible nodes may lack their
        suppressed leaves where the node cannot win: its loss without suppression is worse than the best in `state`.
    """

    lattice: Lattice
    marginals: Sequence[Marginal]
    rows: int
    allowed: int
    loss: Loss
    evaluate: Evaluate
    time_limit: float | None = None
    checks_limit: int | None = None
    max_loss: float | None = None
    least_k: int = 1
    most_m: float | None = None
    progress: Callable[[Progress], None] | None = None
    stop: Callable[[], bool] | None = None
    full_statements: bool = False
    prior: Sequence[Evaluation] = ()
    state: State = field(default_factory=State)

    def ask(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes in one statement, remember what was learnt, and keep the best.

        Raises
        ------
        Interrupted
            When the caller's stop flag is set.
        """
        self._heed_stop()
        state = self.state
        found = self.evaluate(nodes, histogram=histogram) if histogram else self.evaluate(nodes)
        state.statements += 1
        state.checks += len(nodes)
        for evaluation in found:
            self._learn(evaluation)
        if self.progress is not None:
            self.progress(self.standing())
        return found

    def _learn(self, evaluation: Evaluation) -> None:
        state = self.state
        state.checked[evaluation.node] = evaluation
        if state.nearest is None or evaluation.failing < state.nearest.failing:
            state.nearest = evaluation
        if admissible(evaluation, self.allowed) and not self.hopeless(evaluation.node, evaluation.failing):
            key = self.key(evaluation)
            if state.key is None or key < state.key:
                state.best, state.key = evaluation, key

    def hopeless(self, node: Node, failing: int) -> bool:
        """Whether an admissible node that suppresses so many rows loses more than the best so far, whichever they are.

        Proof. Each suppressed row loses everything, and by generalisation at most the widest group of the node's
        levels, which it no longer does: the loss is at least `bound` + `penalty` (`Loss.of`, with the saved leaves at
        their most). Where that is above the best, ties included, the node is not the answer, whatever its leaves.
        """
        key, loss = self.state.key, self.loss
        if key is None or loss.parts is None:
            return False
        return loss.bound(node) + loss.penalty(node, failing) > key[0]

    def key(self, evaluation: Evaluation) -> Key:
        """The key of an admissible check."""
        return (self.loss.of(evaluation), evaluation.failing, evaluation.node)

    def worst(self) -> int:
        """Units that the top loses, or, for `loss`, that suppressing every row would."""
        if self.loss.parts is None:
            return self.rows**2
        return self.loss.suppressed_row * self.rows or self.loss.bound(self.lattice.top)

    def spent(self, share: float = 1.0) -> bool:
        """Whether (that share of) a time or check limit is reached.

        Raises
        ------
        Interrupted
            When the caller's stop flag is set.
        """
        self._heed_stop()
        if self.checks_limit is not None and self.state.checks >= share * self.checks_limit:
            return True
        return self.time_limit is not None and monotonic() - self.state.started >= share * self.time_limit

    def _heed_stop(self) -> None:
        if self.stop is not None and self.stop():
            raise Interrupted("the search was stopped")

    def room(self, most: int) -> int:
        """How many of `most` checks the check limit still allows."""
        return most if self.checks_limit is None else max(0, min(most, self.checks_limit - self.state.checks))

    def standing(self) -> Progress:
        """Best, bound and effort so far, in the published scale."""
        state = self.state
        best = None if state.key is None else self.loss.value(state.key[0])
        return Progress(best, self.loss.value(state.bound), state.checks, state.statements, state.open)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The node a search chose and what is proven about it.

    Parameters
    ----------
    node, evaluation
        The chosen node and its check.
    exact
        Its loss in units of `Loss`.
    loss
        Its loss in the published scale.
    optimal
        Whether no other node can be better, ties included: proven.
    bound
        Units that no node of the lattice can be below: proven.
    gap
        `loss` less that bound, in the published scale; 0 when optimal.
    checks, statements, seconds
        Effort: nodes checked, calls of `evaluate`, wall time.
    checked
        Every check made, by node.
    k
        `inverse-ola`: the greatest k reached; else None.
    m
        `inverse-ola` with m-concealing: the least m reached; else None.
    """

    node: Node
    evaluation: Evaluation
    exact: int
    loss: float
    optimal: bool
    bound: int
    gap: float
    checks: int
    statements: int
    seconds: float
    checked: dict[Node, Evaluation]
    k: int | None = None
    m: float | None = None


Strategy = Callable[[Problem], Outcome]
"""A search: asks the problem for checks until it may answer."""


def finish(problem: Problem, *, optimal: bool) -> Outcome:
    """The outcome for the best node so far.

    Raises
    ------
    NoSolutionError
        When no checked node is admissible.
    """
    state = problem.state
    if state.best is None or state.key is None:
        raise no_solution(problem, exhausted=optimal)
    exact = state.key[0]
    bound = exact if optimal else min(state.bound, exact)
    return Outcome(
        node=state.best.node,
        evaluation=state.best,
        exact=exact,
        loss=problem.loss.value(exact),
        optimal=optimal,
        bound=bound,
        gap=problem.loss.value(exact - bound),
        checks=state.checks,
        statements=state.statements,
        seconds=monotonic() - state.started,
        checked=state.checked,
    )


def no_solution(problem: Problem, *, exhausted: bool) -> NoSolutionError:
    """Why there is no answer, with the nearest node by levels."""
    reason = "no node of the lattice is admissible" if exhausted else "no admissible node was found within the limits"
    nearest = problem.state.nearest
    if nearest is None:
        return NoSolutionError(f"{reason}; raise time_limit or checks_limit")
    return NoSolutionError(
        f"{reason}: the nearest ({describe(problem, nearest.node)}) would suppress {nearest.failing:,} rows, "
        f"{problem.allowed:,} are allowed. Raise suppression_limit or lower the criteria.",
        key="suppression_limit",
    )


def describe(problem: Problem, node: Node) -> str:
    """A node in words: every column with its level, of many columns the first."""
    words = [f"{m.name} {x}" for m, x in zip(problem.marginals, node, strict=True)]
    rest = f" … and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + rest


def interrupted(problem: Problem) -> Interrupted:
    """What to say when a search was stopped: the best node and the proven gap so far."""
    state, standing = problem.state, problem.standing()
    if state.best is None or standing.best is None:
        return Interrupted(f"the search was interrupted after {state.checks:,} checks; no admissible node was known")
    gap = standing.best - (standing.bound or 0.0)
    return Interrupted(
        f"the search was interrupted after {state.checks:,} checks; best node so far: "
        f"{describe(problem, state.best.node)}, loss {standing.best:.6g}, gap at most {max(gap, 0.0):.6g}; "
        "with search.time_limit a run releases the best node at its end"
    )
