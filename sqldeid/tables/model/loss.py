"""Information losses: exact comparison, and lower bounds that need only the columns' marginals. Pure.

Every loss is an integer number of units, so that two nodes compare exactly; `Loss.value` turns units into the
published scale. `loss`, `prec` and `entropy` of a node, apart from what suppression adds to `loss`, are sums of one
part per column and level: known for every node before any check. docs/design/add-a-loss says where else a loss
is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import lcm

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import JobError, SqldeidError
from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import Node

Parts = tuple[tuple[int, ...], ...]
"""Units by column and level; each column's parts never fall as the level rises."""

LOSSES = ("loss", "prec", "dm_star", "entropy")
"""Names of the losses a search can minimise."""

_ENTROPY_BITS = 40
"""`entropy` is compared in units of about 2**-40 of the top's entropy (9.1e-13): a total and transitive order."""

_GUARD_BITS = 64
"""Further bits kept in each part of `entropy`, so that equal sums of different parts round alike."""

_DIGITS = 60
"""Decimal digits in which `entropy` is computed; more than its 104 bits need."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One information loss over one table.

    Parameters
    ----------
    name
        One of `LOSSES`.
    unit
        What one unit is worth in the published scale.
    parts
        Units, times 2**guard, that column j at level x adds before suppression, or None where there is no data-free
        bound. That is `dm_star` alone: where `parts` is None, searches and certificates take `Evaluation.squares`.
    suppressed_row
        Units that one suppressed row costs in all; 0 for losses taken before suppression.
    leaf
        Per column, units that one leaf more costs one released row (`loss` only, else zeros).
    widest
        Per column and level, the most units one released row costs there (`loss` only, else zeros).
    guard
        Bits that the sum of the parts is rounded by; 0 but for `entropy`.
    """

    name: str
    unit: Fraction
    parts: Parts | None
    suppressed_row: int
    leaf: tuple[int, ...]
    widest: Parts
    guard: int = 0

    def bound(self, node: Node) -> int:
        """Units that `node` and each of its generalisations lose at least; needs no data but the marginals."""
        if self.parts is None:
            return 0
        units = sum(part[x] for part, x in zip(self.parts, node, strict=True))
        return (units + (1 << self.guard >> 1)) >> self.guard

    def of(self, evaluation: Evaluation) -> int:
        """Units that a checked node loses.

        Raises
        ------
        SqldeidError
            For `loss`, when rows would be suppressed and the check did not say which (it was not asked for).
        """
        if self.parts is None:
            return evaluation.squares
        before = self.bound(evaluation.node)
        if not self.suppressed_row or not evaluation.failing:
            return before
        if evaluation.suppressed_leaves is None:
            raise SqldeidError("the loss of a node that is not admissible was asked for")
        saved = sum(c * leaves for c, leaves in zip(self.leaf, evaluation.suppressed_leaves, strict=True))
        return before - saved + self.suppressed_row * evaluation.failing

    def least(self, evaluation: Evaluation) -> int:
        """Units that an admissible node loses; or at least, where it was not asked for its leaves: it cannot win."""
        if evaluation.suppressed_leaves is None and self.parts is not None:
            return self.bound(evaluation.node) + self.penalty(evaluation.node, evaluation.failing)
        return self.of(evaluation)

    def penalty(self, node: Node, suppressed: int) -> int:
        """Units that suppressing at least `suppressed` rows adds at `node` at least, whichever rows they are."""
        if not self.suppressed_row:
            return 0
        widest = sum(part[x] for part, x in zip(self.widest, node, strict=True))
        return suppressed * (self.suppressed_row - widest)

    def value(self, exact: int) -> float:
        """Units in the published scale: 0 … 1 for `loss` and `prec`, bits for `entropy`, a count for `dm_star`."""
        return float(self.unit * exact)


def make_loss(name: str, marginals: Sequence[Marginal], rows: int) -> Loss:
    """Prepare a loss for one table.

    Parameters
    ----------
    name
        `loss`, `prec`, `dm_star` or `entropy`.
    marginals
        One per quasi-identifier, in the order of the lattice.
    rows
        Rows of the table.

    Raises
    ------
    JobError
        For an unknown name or a weight that is not positive.

    Source
        Iyengar 2002 (`loss`); Sweeney 2002 (`prec`); El Emam et al. 2009 (`dm_star`); Gionis & Tassa 2009 (`entropy`).
    """
    for marginal in marginals:
        if marginal.weight <= 0:
            raise JobError(f"the weight of column {marginal.name} is {marginal.weight}; it must be above 0")
    if name == "loss":
        return _iyengar(marginals, rows)
    if name == "prec":
        return _prec(marginals)
    if name == "entropy":
        return _entropy(marginals)
    if name == "dm_star":
        return Loss(name, Fraction(1), None, 0, _zeros(marginals), _zero_parts(marginals))
    raise JobError(f"unknown loss {name!r}; choose one of {', '.join(LOSSES)}")


def _iyengar(marginals: Sequence[Marginal], rows: int) -> Loss:
    """Mean over cells of (leaves - 1)/(domain - 1), a suppressed cell 1; one common denominator for all columns."""
    common = lcm(*(m.weight.denominator * max(m.domain - 1, 1) for m in marginals))
    leaf = tuple(int(m.weight * common / (m.domain - 1)) if m.domain > 1 else 0 for m in marginals)
    parts = tuple(
        tuple(c * int((counts * (leaves - 1)).sum()) for counts, leaves in zip(m.rows, m.leaves, strict=True))
        for c, m in zip(leaf, marginals, strict=True)
    )
    widest = tuple(
        tuple(c * int((leaves[counts > 0] - 1).max(initial=0)) for counts, leaves in zip(m.rows, m.leaves, strict=True))
        for c, m in zip(leaf, marginals, strict=True)
    )
    total = sum((m.weight for m in marginals), Fraction(0))
    return Loss("loss", Fraction(1) / (common * rows * total), parts, int(total * common), leaf, widest)


def _prec(marginals: Sequence[Marginal]) -> Loss:
    """Weighted mean of level/(height - 1)."""
    common = lcm(*(m.weight.denominator * max(m.height - 1, 1) for m in marginals))
    parts = tuple(tuple(int(m.weight * common / max(m.height - 1, 1)) * x for x in range(m.height)) for m in marginals)
    total = sum((m.weight for m in marginals), Fraction(0))
    return Loss("prec", Fraction(1) / (common * total), parts, 0, _zeros(marginals), _zero_parts(marginals))


def _entropy(marginals: Sequence[Marginal]) -> Loss:
    """Bits lost: -sum over rows and columns of log2 P[original | generalised]."""
    with localcontext(prec=_DIGITS):
        bits = [_bits(m) for m in marginals]
        top = sum((column[-1] for column in bits), Decimal(0))
        coarse = max(int(top), 1).bit_length() - _ENTROPY_BITS
        fine = Decimal(2) ** (coarse - _GUARD_BITS)
        parts = tuple(tuple(accumulate((round(b / fine) for b in column), max)) for column in bits)
    unit = Fraction(2) ** coarse
    return Loss("entropy", unit, parts, 0, _zeros(marginals), _zero_parts(marginals), guard=_GUARD_BITS)


def _bits(marginal: Marginal) -> list[Decimal]:
    """Bits that one column loses at each level, all rows together, to `_DIGITS` digits."""
    with localcontext(prec=_DIGITS):
        spread = [_spread(counts) for counts in marginal.rows]
        return [(s - spread[0]) / Decimal(2).ln() for s in spread]


def _spread(counts: Ints) -> Decimal:
    """Sum of n·ln n over groups of n rows."""
    sizes, times = np.unique(counts[counts > 1], return_counts=True)
    pairs = zip(sizes.tolist(), times.tolist(), strict=True)
    return sum((n * t * Decimal(n).ln() for n, t in pairs), Decimal(0))


def _zeros(marginals: Sequence[Marginal]) -> tuple[int, ...]:
    return (0,) * len(marginals)


def _zero_parts(marginals: Sequence[Marginal]) -> Parts:
    return tuple((0,) * m.height for m in marginals)


@dataclass(frozen=True, slots=True)
class LossReport:
    """Every loss of one checked node, in the published scales.

    Parameters
    ----------
    loss, prec
        0 … 1.
    dm_star, dm_star_original
        Sum of squared class sizes before suppression, at the node and in the original table.
    entropy
        Bits, before suppression.
    columns
        Per quasi-identifier its own `loss`, unweighted, 0 … 1: share of the domain of released cells, 1 for suppressed.
    """

    loss: float
    prec: float
    dm_star: int
    dm_star_original: int
    entropy: float
    columns: dict[str, float]

    @property
    def totals(self) -> dict[str, float]:
        """The losses of the whole release by name, as a result tells them."""
        return {name: getattr(self, name) for name in ("loss", "prec", "dm_star", "dm_star_original", "entropy")}


def all_losses(evaluation: Evaluation, marginals: Sequence[Marginal], rows: int, original_squares: int) -> LossReport:
    """Report every loss of an admissible node.

    Parameters
    ----------
    evaluation
        The node's check, with `suppressed_leaves` where rows are suppressed.
    marginals, rows
        As for `make_loss`.
    original_squares
        Sum of squared class sizes of the original table (node 0).
    """
    node = evaluation.node
    loss, prec = (make_loss(name, marginals, rows) for name in ("loss", "prec"))
    return LossReport(
        loss=loss.value(loss.of(evaluation)),
        prec=prec.value(prec.of(evaluation)),
        dm_star=evaluation.squares,
        dm_star_original=original_squares,
        entropy=float(sum((_bits(m)[x] for m, x in zip(marginals, node, strict=True)), Decimal(0))),
        columns={m.name: _column_loss(m, j, evaluation, rows) for j, m in enumerate(marginals)},
    )


def _column_loss(marginal: Marginal, j: int, evaluation: Evaluation, rows: int) -> float:
    """One column's mean share of its domain over released cells, 1 for suppressed ones."""
    level = evaluation.node[j]
    leaves = int((marginal.rows[level] * (marginal.leaves[level] - 1)).sum())
    if evaluation.failing:
        if evaluation.suppressed_leaves is None:
            raise SqldeidError("the loss of a node that is not admissible was asked for")
        leaves -= evaluation.suppressed_leaves[j]
    share = Fraction(leaves, max(marginal.domain - 1, 1))
    return float((share + evaluation.failing) / rows)
