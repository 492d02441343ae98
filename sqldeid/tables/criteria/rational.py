"""Numbers as they were written, and proven bounds of exponentials: no guarantee may hang on a rounded float."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isfinite

from sqldeid.errors import JobError

Real = Fraction | float
"""A number of a job or a command line; a float stands for the decimal number it was written as."""

_DIGITS = 60

_LOWEST = Fraction(-20_000)


def exact(value: Real) -> Fraction:
    """The number as it was written: 0.1 is a tenth.

    Raises
    ------
    JobError
        For what is no finite number.
    """
    if not isfinite(value):
        raise JobError("beta, epsilon, delta and penalty_factor must be finite numbers", key="search.epsilon_safe")
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def exp_bounds(x: Fraction, digits: int = _DIGITS) -> tuple[Fraction, Fraction]:
    """Two rationals, exp(x) between them, about `digits` decimal digits apart.

    `decimal` rounds exp correctly, so the value next to it on either side is a bound; the argument is rounded outwards.
    Below exp(-20000) the lower bound is 0.
    """
    if x < _LOWEST:
        return Fraction(0), exp_bounds(_LOWEST, digits)[1]
    low, high = _outwards(x, digits)
    context = _context(digits)
    return Fraction(context.exp(low).next_minus(context)), Fraction(context.exp(high).next_plus(context))


def log_bounds(x: Fraction, digits: int = _DIGITS) -> tuple[Fraction, Fraction]:
    """Two rationals, ln(x) between them; `x` above 0.

    The logarithm of 1 is 0, exactly; the decimal next to 0 has more digits than memory holds.
    """
    low, high = _outwards(x, digits)
    context = _context(digits)
    least, most = context.ln(low), context.ln(high)
    return (
        Fraction(least.next_minus(context)) if least else Fraction(0),
        Fraction(most.next_plus(context)) if most else Fraction(0),
    )


def _context(digits: int) -> Context:
    return Context(prec=digits, Emin=-(10**15), Emax=10**15, traps=[])


def _outwards(x: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """The decimals around a fraction."""
    bounds = []
    for rounding in (ROUND_FLOOR, ROUND_CEILING):
        context = Context(prec=digits, rounding=rounding, Emin=-(10**15), Emax=10**15, traps=[])
        bounds.append(context.divide(context.create_decimal(x.numerator), Decimal(x.denominator)))
    return bounds[0], bounds[1]
