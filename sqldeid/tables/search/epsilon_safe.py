"""The node that `epsilon-safe` releases: drawn by the exponential mechanism over all nodes, few of them ever checked.

A node's cost, in nats, is prec plus a penalty. prec needs no data; the penalty needs a check, but is inherited: rows
suppressed at y are suppressed at every x ≼ y, so each check bounds the costs of a whole downset. Nodes are proposed in
proportion to the weight that they have at most, then checked, and taken with the probability that makes up for the
bound (`mechanism.Proposals`). What is drawn follows the exponential mechanism exactly, whatever was checked before and
why, because the weights of a proposal are fixed before it is drawn.

Source
    Mazzone 2019, §4.5.3 and §4.5.4, where the utility of every node is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.tables.criteria.mechanism import Proposals, Randomness
from sqldeid.tables.model.evaluation import Evaluate, Evaluation, Marginal
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.search.base import Problem
from sqldeid.tables.search.guide import Guide
from sqldeid.tables.search.prediction import Prediction
from sqldeid.tables.search.region import Region, outer_sum
from sqldeid.tables.search.utility import Utility

_FIRST, _MOST = 4, 64
"""Proposals checked in a statement: at first, and at most; doubled while none is taken."""

_SCOUTS = 4
"""Nodes checked besides the proposals of a statement, where that is expected to save others."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node drawn by the exponential mechanism.

    Parameters
    ----------
    node, evaluation
        The node and its check on the sample.
    checks, statements, proposals
        Effort: nodes checked, calls of `evaluate`, proposals until one was taken. For the data holder only.
    lattice_size
        Checks that the utility of every node would have taken.
    """

    node: Node
    evaluation: Evaluation
    checks: int
    statements: int
    proposals: int
    lattice_size: int


@dataclass(frozen=True, slots=True)
class Steps:
    """The penalty at every node, in steps of `Utility`: one axis per quasi-identifier; and what it took."""

    steps: Ints
    checks: int
    statements: int


class _Known:
    """Bounds of every node's steps, and the checks made."""

    def __init__(self, utility: Utility, evaluate: Evaluate) -> None:
        self.utility, self._evaluate = utility, evaluate
        self.least: Ints = np.zeros(utility.heights, dtype=np.int64)
        self.most: Ints = np.full(utility.heights, np.iinfo(np.int64).max, dtype=np.int64)
        self.checked: dict[Node, Evaluation] = {}
        self.statements = 0

    def ask(self, nodes: Iterable[Node]) -> list[Evaluation]:
        """Check those not checked yet, in one statement."""
        new = [node for node in dict.fromkeys(nodes) if node not in self.checked]
        if not new:
            return []
        found = self._evaluate(new)
        self.statements += 1
        for evaluation in found:
            self._learn(evaluation)
        return found

    def _learn(self, evaluation: Evaluation) -> None:
        """Never fewer steps below a node, never more above it."""
        node, steps = evaluation.node, self.utility.steps(evaluation)
        self.checked[node] = evaluation
        below = self.least[tuple(slice(0, x + 1) for x in node)]
        above = self.most[tuple(slice(x, None) for x in node)]
        np.maximum(below, steps, out=below)
        np.minimum(above, steps, out=above)


def draw_node(
    utility: Utility, evaluate: Evaluate, randomness: Randomness, marginals: Sequence[Marginal], rows: int
) -> Drawn:
    """Draw a node by the exponential mechanism, exactly.

    Parameters
    ----------
    utility
        What is drawn by.
    evaluate
        Checks nodes on the *sample*, with the utility's k and no further criterion.
    randomness
        Secret bits.
    marginals, rows
        Of the sample; they only guide what is checked besides the proposals.

    Returns
    -------
    Drawn
        Node x with probability exp(-cost(x)) / Σ exp(-cost), over all nodes of the lattice.
    """
    known, size, drawn = _Known(utility, evaluate), _FIRST, 0
    scouts = _Scouts(utility, marginals, rows) if utility.penalty == "suppression" and rows else None
    sent: list[Node] = []
    while True:
        costs = utility.costs(known.least)
        proposals = Proposals(costs)
        choices = [proposals.draw(randomness) for _ in range(size)]
        nodes = [_node(utility, choice) for choice in choices]
        found = known.ask([*nodes, *sent])
        for choice, node in zip(choices, nodes, strict=True):
            drawn += 1
            evaluation = known.checked[node]
            if proposals.accept(choice, utility.cost(node, utility.steps(evaluation)), randomness):
                return Drawn(node, evaluation, len(known.checked), known.statements, drawn, utility.lattice.size)
        size = min(_MOST, 2 * size)
        sent = scouts.choose(known, utility.costs(known.least), found) if scouts else []


class _Scouts:
    """Nodes to check because their answer is expected to lower the weight of much that lies below them.

    For the penalty "suppression" alone: its steps are many, and the nodes with the least prec have the most of them.
    """

    def __init__(self, utility: Utility, marginals: Sequence[Marginal], rows: int) -> None:
        self._utility, self._rows = utility, rows
        self._prediction = Prediction(marginals, rows, rows // 4)

    def choose(self, known: _Known, costs: Floats, found: list[Evaluation]) -> list[Node]:
        """The nodes, given every node's least cost and the latest checks."""
        if found:
            self._prediction.learn(found)
        weights = np.exp(costs.min() - costs)
        rate = float(self._utility.nats * self._utility.step)
        raised = np.maximum(self._expected() - known.least, 0) * rate
        for node in known.checked:
            raised[node] = 0
        kept, chosen = np.exp(-raised), []
        for _ in range(_SCOUTS):
            gain = _sum_below(weights) * (1 - kept)
            node = _node(self._utility, int(gain.argmax()))
            chosen.append(node)
            weights[tuple(slice(0, x + 1) for x in node)] *= kept[node]
            kept[node] = 1
        return chosen

    def _expected(self) -> Floats:
        """Rows that the prediction expects to be suppressed at every node."""
        effects, entropies, slope, bend = self._prediction.tables()
        total = outer_sum(entropies)
        logit = outer_sum(effects) + total * (slope + bend * total)
        rows: Floats = self._rows * (0.5 + 0.5 * np.tanh(logit / 2))
        return rows


def _sum_below(weights: Floats) -> Floats:
    """For every node, the sum over all nodes below it, itself included."""
    for axis in range(weights.ndim):
        weights = np.cumsum(weights, axis=axis)
    return weights


def _node(utility: Utility, position: int) -> Node:
    return tuple(int(x) for x in np.unravel_index(position, utility.heights))


def steps_everywhere(utility: Utility, evaluate: Evaluate, marginals: Sequence[Marginal], rows: int) -> Steps:
    """The penalty at every node, with as few checks as bounds from both sides allow.

    First the border between nodes without steps and nodes with some is found, by checks chosen to close most; between
    two checked nodes with equal steps nothing is checked. For the penalty "k-anonymity" that border is all.

    Parameters
    ----------
    marginals, rows
        Of the sample; they only guide what is checked first.
    """
    known = _Known(utility, evaluate)
    if rows:
        _find_border(known, marginals, rows)
    while (unknown := np.flatnonzero(known.least < known.most)).size:
        known.ask(_node(utility, position) for position in unknown[:_BATCH])
    return Steps(known.least, len(known.checked), known.statements)


_BATCH = 200
"""Nodes in a statement where every one must be checked."""


def _find_border(known: _Known, marginals: Sequence[Marginal], rows: int) -> None:
    """Check until every node is known to have steps or to have none.

    The guide is used as for the loss `dm_star`, where a check that passes closes what lies above, one that fails
    what lies below, and nothing else.
    """
    utility = known.utility
    allowed = min(utility.allowed, rows) if utility.penalty == "k-anonymity" else 0
    problem = Problem(utility.lattice, marginals, rows, allowed, make_loss("dm_star", marginals, rows), known._evaluate)
    region, prediction = Region(problem), Prediction(marginals, rows, allowed)
    guide = Guide(region, prediction)
    while (unknown := (known.least == 0) & (known.most > 0)).any():
        region.unknown[...] = unknown
        prediction.learn(known.ask(guide.choose(unknown, 100)))
