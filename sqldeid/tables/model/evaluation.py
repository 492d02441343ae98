"""What a check of a lattice node returns, what is known without one, and the one place that decides admissibility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria.knowledge import Profile
from sqldeid.tables.model.lattice import Node


@dataclass(frozen=True, slots=True)
class Marginal:
    """One quasi-identifier's own distribution, level by level; all that data-free bounds need.

    Parameters
    ----------
    name
        Column name, for messages.
    weight
        Positive weight of the column in `prec` and `loss`.
    rows
        Per level, rows of the table in each group of that level; sums to the number of rows at every level.
    leaves
        Per level, leaves of the *hierarchy* (present in the data or not) in each group, same order as `rows`.
    """

    name: str
    weight: Fraction
    rows: tuple[Ints, ...]
    leaves: tuple[Ints, ...]

    @property
    def height(self) -> int:
        """Number of levels."""
        return len(self.rows)

    @property
    def domain(self) -> int:
        """Leaves of the whole hierarchy."""
        return int(self.leaves[0].sum())


LOG_UNITS = 10**6
"""In which logarithms of base 2 are counted: whole millionths."""


def log_leaves(leaves: Ints) -> Ints:
    """Logarithms of base 2 of numbers of leaves, to the nearest unit (`LOG_UNITS`); they never fall as leaves rise."""
    units: Ints = np.rint(np.log2(leaves) * LOG_UNITS).astype(np.int64)
    return units


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One checked node.

    Parameters
    ----------
    node
        The node.
    core_failing
        Rows in classes that fail the criteria's monotone core: a lower bound of the core's failing rows at every
        specialisation of the node.
    failing
        Rows in classes that fail any criterion: the rows that would be suppressed.
    classes
        Equivalence classes before suppression.
    squares
        Sum of squared class sizes before suppression (DM*).
    suppressed_leaves
        Per quasi-identifier, sum over suppressed rows of (leaves of the generalised value - 1); what `loss` needs.
        None where the node is not admissible (it is not asked for there).
    suppressed_logs
        The same sum of the leaves' logarithms (`LOG_UNITS`); what `payout` needs.
    histogram
        Class size -> number of classes, before suppression; None unless asked for.
    least
        Rows of a released class at least, where all released classes must meet something together (`OverallRisk`);
        0 where k decides, and where the node is not admissible by k and the criteria of classes.
    core_moves
        Whether the core counts rows that may be others at other nodes.
    profile
        Risks under m-concealing, where its least m is sought (`inverse-ola`); None elsewhere, and where the classes
        below k are too many.
    """

    node: Node
    core_failing: int
    failing: int
    classes: int
    squares: int
    suppressed_leaves: tuple[int, ...] | None = None
    histogram: Mapping[int, int] | None = None
    profile: Profile | None = None
    least: int = 0
    core_moves: bool = False
    suppressed_logs: tuple[int, ...] | None = None


class Evaluate(Protocol):
    """Ask for many nodes at once; a strategy never learns where the answer comes from."""

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """The nodes' evaluations, in their order."""
        ...


def allowed_rows(limit: float, rows: int) -> int:
    """Most rows that may be suppressed: floor(limit·rows), `limit` taken as the decimal number it was written as."""
    return int(Fraction(repr(limit)) * rows)


def admissible(evaluation: Evaluation, allowed: int) -> bool:
    """Whether the node's suppressed rows stay within what is allowed. The only place that decides it."""
    return evaluation.failing <= allowed
