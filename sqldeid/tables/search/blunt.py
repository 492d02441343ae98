"""`search.blunt`: a node that is drawn in secret, so that its choice makes nothing certain of finer ones. Pure.

A reader who knows that a node is the best learns that each better one fails (Cohen 2022): downcoding, and with criteria
on sensitive values the minimality attack. Here the best node is found, and another may be released.

*What is released.* A node drawn evenly from those that were checked, are admissible, and lose at most `NEAR` · amount
more than the best, as a share of its loss. With probability 1 in `RARE` it is a node drawn evenly from the whole
lattice instead, if that is admissible. The bits are the operating system's, and are forgotten. Every node that is
released is checked by all criteria as every other one is: no criterion and no limit is weakened.

*What it proves.* Let D' be any source that gives the released table at the released node, however it is finer. The node
is admissible for D', so a run on D' releases it with probability at least 1/(`RARE` · nodes of the lattice). So who
knows everything but the source and the bits is certain of nothing that the released table and its levels do not say by
themselves; and the odds of two such sources change by at most `RARE` · nodes, over the whole table. It holds for k and
for every criterion, in one release.

*What it only makes harder.* Odds may still change by up to that, and in most runs the node is nearly the best one: what
"better ones mostly fail" makes likely stays likely. Who has several releases of the same persons, each drawn anew,
learns more; so a ledger refuses it. What classes tell by themselves (a value that all members share) is not touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqldeid.tables.model.evaluation import admissible
from sqldeid.tables.search.base import Outcome, Problem

NEAR = 0.1
"""Share of the best loss by which a released node may lose more, with the greatest amount."""

RARE = 1024
"""Once in so many runs the node is drawn from the whole lattice."""


class Bits(Protocol):
    """Where draws come from: `random.SystemRandom`, or a seeded one in tests."""

    def randrange(self, stop: int, /) -> int:
        """A whole number from 0 to below `stop`, each alike."""


def blunted(problem: Problem, outcome: Outcome, amount: float, bits: Bits) -> Outcome:
    """An outcome with a node drawn beside the one that was found. Cost: at most two checks.

    Parameters
    ----------
    amount
        0 … 1.
    """
    allowed, most = problem.allowed, outcome.exact * (1 + NEAR * amount)
    near = [e.node for e in outcome.checked.values() if admissible(e, allowed) and problem.loss.least(e) <= most]
    near = sorted({*near, outcome.node})
    node = near[bits.randrange(len(near))]
    anywhere = tuple(bits.randrange(height) for height in problem.lattice.heights)
    if bits.randrange(RARE) == 0 and admissible(problem.evaluate([anywhere])[0], allowed):
        node = anywhere
    evaluation = problem.evaluate([node])[0]
    exact = problem.loss.of(evaluation)
    return replace(
        outcome,
        node=node,
        evaluation=evaluation,
        exact=exact,
        loss=problem.loss.value(exact),
        optimal=False,
        gap=problem.loss.value(exact - outcome.bound),
        checked={**outcome.checked, node: evaluation},
    )
