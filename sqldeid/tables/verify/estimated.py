"""k-map as it is estimated, re-checked: the test of a class, by sums of exact decimals from zero on. Pure."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from sqldeid.tables.criteria.estimated_map import TRUNCATED, EstimatedMap

_DIGITS = 60


def stands_out(asked: EstimatedMap, rows: int) -> bool:
    """Whether a class of fewer than k persons has so many rows with at most the probability that is accepted.

    The search sums the probabilities of as many rows and more; here those of fewer are summed.
    """
    if rows >= asked.k:
        return True
    if rows - 1 < asked.k * asked.fraction:  # where Poisson need not be the greater tail
        return False
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_FLOOR
        mean = _decimal(asked.k * asked.fraction)
        none = (-mean).exp()
        term, fewer = none, Decimal(0)
        for n in range(rows):
            fewer, term = fewer + term, term * mean / (n + 1)
        seen = 1 - none if asked.estimate == TRUNCATED else Decimal(1)
        return 1 - fewer <= _decimal(asked.significance) * seen


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator
