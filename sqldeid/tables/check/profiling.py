"""`evaluate` of `inverse-ola` under m-concealing: class counts, and the risks that any m is read off.

Nothing is suppressed by a criterion here but k: which m the allowed suppression can pay for is what is sought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqldeid.tables.check.check import NODES_PER_STATEMENT, Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.model.evaluation import Evaluation, admissible
from sqldeid.tables.model.lattice import Node


@dataclass(frozen=True, slots=True)
class Profiler:
    """Checks nodes by k alone and adds the profile of their risks.

    Parameters
    ----------
    checker
        Counts classes below k.
    judge
        Reads the cells of classes and known values.
    """

    checker: Checker
    judge: Judge

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes, in their order."""
        found = self.checker(nodes, histogram=False)
        ask = [i for i, e in enumerate(found) if admissible(e, self.checker.allowed)]
        for start in range(0, len(ask), NODES_PER_STATEMENT):
            some = ask[start : start + NODES_PER_STATEMENT]
            profiles = self.judge.profiles([self.checker.arm(i, nodes[i]) for i in some])
            for i in some:
                found[i] = replace(found[i], profile=profiles[i])
        return found
