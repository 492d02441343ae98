"""Information losses: exact comparison, and lower bounds that need only the columns' marginals. Pure.

Every loss is an integer number of units, so that two nodes compare exactly; `Loss.value` turns units into the
published scale. All but `dm_star` and `class_size`, apart from what suppression adds to `loss`, are sums of one part
per column and level: known for every node before any check. docs/design/add-a-loss says where else a loss is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import JobError, SqldeidError, UnknownKindError
from sqldeid.tables.model.evaluation import Evaluation, Marginal, log_leaves
from sqldeid.tables.model.lattice import Node

Parts = tuple[tuple[int, ...], ...]
"""Units by column and level; each column's parts never fall as the level rises."""

LOSSES = ("loss", "prec", "dm_star", "entropy", "height", "ambiguity", "normalised_entropy", "class_size", "payout")
"""Names of the losses a search can minimise."""

_ENTROPY_BITS = 40
"""Irrational losses are compared in units of about 2**-40 of the top's (9.1e-13): a total and transitive order."""

_GUARD_BITS = 64
"""Further bits kept in each part of an irrational loss, so that equal sums of different parts round alike."""

_DIGITS = 60
"""Decimal digits in which logarithms are computed; more than their 104 bits need."""


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
        bound: losses of whole classes, `dm_star` and `class_size`, for which searches and certificates take `whole`.
    suppressed_row
        Units that one suppressed row costs in all; 0 for losses taken before suppression.
    leaf
        Per column, units that one leaf more (`payout`: one unit of its logarithm) costs one released row; zeros for
        losses taken before suppression.
    widest
        Per column and level, the most units one released row costs there; zeros likewise.
    guard
        Bits that the sum of the parts is rounded by; 0 but for losses that are logarithms.
    rows
        Rows of the table; 0 but for `class_size`.
    logs
        Whether `leaf` is of the leaves' logarithms (`Evaluation.suppressed_logs`).
    """

    name: str
    unit: Fraction
    parts: Parts | None
    suppressed_row: int
    leaf: tuple[int, ...]
    widest: Parts
    guard: int = 0
    rows: int = 0
    logs: bool = False

    def lost(self, evaluation: Evaluation) -> tuple[int, ...] | None:
        """Units by column that the suppressed rows would lose by generalisation; None where it was not asked for."""
        counted = evaluation.suppressed_logs if self.logs else evaluation.suppressed_leaves
        return None if counted is None else tuple(c * x for c, x in zip(self.leaf, counted, strict=True))

    def core_lost(self, evaluation: Evaluation) -> tuple[int, ...] | None:
        """The same of the rows of the core, at most; None where it is not known which they are."""
        return None if evaluation.core_moves else self.lost(evaluation)

    def whole(self, evaluation: Evaluation) -> int:
        """Units that a checked node loses under a loss of whole classes (`parts` is None).

        Guarantee: of x ≼ y no fewer at y, and equal only where both have the same classes: y's are unions of x's.
        Squares grow where two are united, (a + b)² > a² + b², and so do rows less classes, by one for each union.

        Raises
        ------
        UnknownKindError
            For a loss that has parts: what is proven here need not hold of it.
        """
        if self.parts is None and self.name == "dm_star":
            return evaluation.squares
        if self.parts is None and self.name == "class_size":
            return self.rows - evaluation.classes
        raise UnknownKindError(self.name, "loss of whole classes")

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
            For `loss` and `payout`, when rows would be suppressed and the check did not say which (not asked for).
        """
        if self.parts is None:
            return self.whole(evaluation)
        before = self.bound(evaluation.node)
        if not self.suppressed_row or not evaluation.failing:
            return before
        if (lost := self.lost(evaluation)) is None:
            raise SqldeidError("the loss of a node that is not admissible was asked for")
        return before - sum(lost) + self.suppressed_row * evaluation.failing

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
        """Units in the published scale: 0 … 1, bits (`entropy`, `ambiguity`), levels (`height`), rows² (`dm_star`)."""
        return float(self.unit * exact)


def make_loss(name: str, marginals: Sequence[Marginal], rows: int) -> Loss:
    """Prepare a loss for one table.

    Parameters
    ----------
    name
        One of `LOSSES`.
    marginals
        One per quasi-identifier, in the order of the lattice.
    rows
        Rows of the table.

    Raises
    ------
    JobError
        For an unknown name or a weight that is not positive.

    Source
        Iyengar 2002 (`loss`); Sweeney 2002 (`prec`); El Emam et al. 2009 (`dm_star`); Gionis & Tassa 2009 (`entropy`;
        divided column by column by its most, `normalised_entropy`); Samarati 2001 (`height`); Goldberger & Tassa 2010
        (`ambiguity`, here its logarithm, row by row); LeFevre et al. 2006 (`class_size`: their average s as 1 - 1/s);
        Wan et al. 2015 (`payout`: the share of a publisher's greatest payout that is lost where nobody attacks).
    """
    for marginal in marginals:
        if marginal.weight <= 0:
            raise JobError(f"the weight of column {marginal.name} is {marginal.weight}; it must be above 0")
    if name in _MADE:
        return _MADE[name](marginals, rows)
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


def _payout(marginals: Sequence[Marginal], rows: int) -> Loss:
    """Mean over rows of sum over columns of log2 leaves, over that of the domains; a suppressed row 1. Unweighted.

    A publisher is paid B (1 - IL) for a released row, with IL = sum of log leaves / sum of log domains, and nothing for
    a suppressed one; of the greatest payout, B for each row, this is the share that is lost. Logarithms are counted in
    whole units (`log_leaves`), so nodes compare exactly, by them.
    """
    top = sum(int(log_leaves(np.array([m.domain]))[0]) for m in marginals)
    logs = [[log_leaves(np.maximum(leaves, 1)) for leaves in m.leaves] for m in marginals]
    parts = tuple(
        tuple(int((counts * own).sum()) for counts, own in zip(m.rows, by_level, strict=True))
        for m, by_level in zip(marginals, logs, strict=True)
    )
    widest = tuple(
        tuple(int(own[counts > 0].max(initial=0)) for counts, own in zip(m.rows, by_level, strict=True))
        for m, by_level in zip(marginals, logs, strict=True)
    )
    unit = Fraction(1, max(top, 1) * rows)
    return Loss("payout", unit, parts, max(top, 1), (1,) * len(marginals), widest, logs=True)


def _prec(marginals: Sequence[Marginal], _rows: int) -> Loss:
    """Weighted mean of level/(height - 1)."""
    common = lcm(*(m.weight.denominator * max(m.height - 1, 1) for m in marginals))
    parts = tuple(tuple(int(m.weight * common / max(m.height - 1, 1)) * x for x in range(m.height)) for m in marginals)
    total = sum((m.weight for m in marginals), Fraction(0))
    return Loss("prec", Fraction(1) / (common * total), parts, 0, _zeros(marginals), _zero_parts(marginals))


def _entropy(marginals: Sequence[Marginal], _rows: int) -> Loss:
    """Bits lost: -sum over rows and columns of log2 P[original | generalised]."""
    return _rounded("entropy", [_bits(m) for m in marginals], Fraction(1), marginals)


def _rounded(name: str, columns: Sequence[Sequence[Decimal]], scale: Fraction, marginals: Sequence[Marginal]) -> Loss:
    """A loss whose parts are irrational, by column and level; `scale` is what 1 of them is worth when published."""
    with localcontext(prec=_DIGITS):
        top = sum((column[-1] for column in columns), Decimal(0))
        coarse = max(int(top), 1).bit_length() - _ENTROPY_BITS
        fine = Decimal(2) ** (coarse - _GUARD_BITS)
        parts = tuple(tuple(accumulate((round(b / fine) for b in column), max)) for column in columns)
    unit = Fraction(2) ** coarse * scale
    return Loss(name, unit, parts, 0, _zeros(marginals), _zero_parts(marginals), guard=_GUARD_BITS)


def _height(marginals: Sequence[Marginal], _rows: int) -> Loss:
    """Weighted sum of levels."""
    common = lcm(*(m.weight.denominator for m in marginals))
    parts = tuple(tuple(int(m.weight * common) * x for x in range(m.height)) for m in marginals)
    return Loss("height", Fraction(1, common), parts, 0, _zeros(marginals), _zero_parts(marginals))


def _ambiguities(marginals: Sequence[Marginal]) -> list[list[Decimal]]:
    """Per column and level its weight times the sum over rows of log2 of the leaves that a row's value stands for.

    With weights of 1 the sum over columns is log2 of the number of original combinations of hierarchies' leaves that
    the row could be. A group's leaves are a subset of those of the group above, so no part falls as the level rises.
    """
    return [[_log_leaves(m, x) * _decimal(m.weight) for x in range(m.height)] for m in marginals]


def _log_leaves(marginal: Marginal, level: int) -> Decimal:
    """Sum over rows of log2 of leaves, to `_DIGITS` digits; groups that no row has are left out."""
    counts, leaves = marginal.rows[level], marginal.leaves[level]
    with localcontext(prec=_DIGITS):
        sizes = np.unique(leaves[counts > 0])
        pairs = ((int(n), int(counts[leaves == n].sum())) for n in sizes)
        return sum((rows * _ln(n) for n, rows in pairs if n > 1), Decimal(0)) / _ln(2)


def _shares_of_entropy(bits: Sequence[Sequence[Decimal]], marginals: Sequence[Marginal]) -> list[list[Decimal]]:
    """Per column and level its weight times its `entropy` as a share of that at its top; 0 where that is 0.

    Parameters
    ----------
    bits
        What `_bits` has of each column.
    """
    with localcontext(prec=_DIGITS):
        columns = [(own, _decimal(m.weight)) for own, m in zip(bits, marginals, strict=True)]
        return [[w * b / own[-1] if own[-1] else Decimal(0) for b in own] for own, w in columns]


def _decimal(weight: Fraction) -> Decimal:
    with localcontext(prec=_DIGITS):
        return Decimal(weight.numerator) / Decimal(weight.denominator)


def _weight(marginals: Sequence[Marginal]) -> Fraction:
    return sum((m.weight for m in marginals), Fraction(0))


def _bits(marginal: Marginal) -> list[Decimal]:
    """Bits that one column loses at each level, all rows together, to `_DIGITS` digits."""
    with localcontext(prec=_DIGITS):
        spread = [_spread(counts) for counts in marginal.rows]
        return [(s - spread[0]) / _ln(2) for s in spread]


def _spread(counts: Ints) -> Decimal:
    """Sum of n·ln n over groups of n rows."""
    sizes, times = np.unique(counts[counts > 1], return_counts=True)
    pairs = zip(sizes.tolist(), times.tolist(), strict=True)
    return sum((n * t * _ln(n) for n, t in pairs), Decimal(0))


@lru_cache(maxsize=1 << 16)
def _ln(number: int) -> Decimal:
    """Natural logarithm to `_DIGITS` digits; the same sizes come again at every level."""
    with localcontext(prec=_DIGITS):
        return Decimal(number).ln()


def _zeros(marginals: Sequence[Marginal]) -> tuple[int, ...]:
    return (0,) * len(marginals)


def _zero_parts(marginals: Sequence[Marginal]) -> Parts:
    return tuple((0,) * m.height for m in marginals)


def _ambiguity(marginals: Sequence[Marginal], rows: int) -> Loss:
    return _rounded("ambiguity", _ambiguities(marginals), Fraction(1, rows), marginals)


def _normalised_entropy(marginals: Sequence[Marginal], _rows: int) -> Loss:
    shares = _shares_of_entropy([_bits(m) for m in marginals], marginals)
    return _rounded("normalised_entropy", shares, 1 / _weight(marginals), marginals)


def _dm_star(marginals: Sequence[Marginal], _rows: int) -> Loss:
    return Loss("dm_star", Fraction(1), None, 0, _zeros(marginals), _zero_parts(marginals))


def _class_size(marginals: Sequence[Marginal], rows: int) -> Loss:
    return Loss("class_size", Fraction(1, rows), None, 0, _zeros(marginals), _zero_parts(marginals), rows=rows)


_MADE: Mapping[str, Callable[[Sequence[Marginal], int], Loss]] = {
    "loss": _iyengar,
    "prec": _prec,
    "dm_star": _dm_star,
    "entropy": _entropy,
    "height": _height,
    "ambiguity": _ambiguity,
    "normalised_entropy": _normalised_entropy,
    "class_size": _class_size,
    "payout": _payout,
}


@dataclass(frozen=True, slots=True)
class LossReport:
    """Every loss of one checked node, in the published scales.

    Parameters
    ----------
    loss, prec
        0 … 1.
    dm_star, dm_star_original
        Sum of squared class sizes before suppression, at the node and in the original table.
    entropy, ambiguity
        Bits, before suppression: over all rows, and of a row on average.
    height
        Levels, before suppression.
    normalised_entropy, class_size
        0 … 1, before suppression; 1 - 1/s of classes of s rows on average.
    payout
        0 … 1: share of the publisher's greatest payout that is lost, where nobody attacks.
    columns
        Per quasi-identifier its own `loss`, unweighted, 0 … 1: share of the domain of released cells, 1 for suppressed.
    """

    loss: float
    prec: float
    dm_star: int
    dm_star_original: int
    entropy: float
    height: float
    ambiguity: float
    normalised_entropy: float
    class_size: float
    payout: float
    columns: dict[str, float]

    @property
    def totals(self) -> dict[str, float]:
        """The losses of the whole release by name, as a result tells them."""
        return {name: getattr(self, name) for name in (*LOSSES[:3], "dm_star_original", *LOSSES[3:])}


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
    bits = [_bits(m) for m in marginals]
    loss, prec, payout = (make_loss(name, marginals, rows) for name in ("loss", "prec", "payout"))
    return LossReport(
        loss=loss.value(loss.of(evaluation)),
        prec=prec.value(prec.of(evaluation)),
        dm_star=evaluation.squares,
        dm_star_original=original_squares,
        entropy=_at(bits, node),
        height=float(sum((m.weight * x for m, x in zip(marginals, node, strict=True)), Fraction(0))),
        ambiguity=_at(_ambiguities(marginals), node) / rows,
        normalised_entropy=_at(_shares_of_entropy(bits, marginals), node) / float(_weight(marginals)),
        class_size=float(1 - Fraction(evaluation.classes, rows)),
        payout=payout.value(payout.of(evaluation)),
        columns={m.name: _column_loss(m, j, evaluation, rows) for j, m in enumerate(marginals)},
    )


def _at(columns: Sequence[Sequence[Decimal]], node: Node) -> float:
    """The sum of what each column has at its level."""
    return float(sum((column[x] for column, x in zip(columns, node, strict=True)), Decimal(0)))


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
