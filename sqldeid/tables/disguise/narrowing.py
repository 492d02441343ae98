"""How far shifted dates can be shifted back by who knows when the study was: a seeded simulation.

Guarantee
    None: it measures an attack.
Assumes
    True first dates are uniform over the days at which a person's dates all lie in the period; the shifts are those of
    a release (uniform, −365 to 365 without 0). The attacker knows the period and sees the shifted dates.
Does not protect
    Against who knows more: an interval, a weekday, a season, how many people come when.
Source
    soundness.md 7; the period of the study bounds the shift by its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import JobError
from sqldeid.tables.disguise.shift import SHIFT_DAYS

WIDTHS = (1, 7, 30, 90, 365)
"""Numbers of possible shifts, up to which the share of persons is told."""

UNITS = {"time": 1, "day": 1, "week": 7, "month": 30}
"""Days of what a date is cut to; a month is taken as 30."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left of the shifts in one setting.

    Parameters
    ----------
    period_days, span_days
        Length of the study; days from a person's first date to the last.
    to
        What dates are cut to after the shift.
    median
        Possible shifts of the median person, of 730.
    within
        Share of persons with at most so many possible shifts, by their number; 0 … 1.
    """

    period_days: int
    span_days: int
    to: str
    median: float
    within: dict[int, float]


def narrow(
    period_days: int, span_days: Sequence[int], units: Sequence[str], *, persons: int = 100_000, seed: int = 1
) -> list[Narrowed]:
    """Simulate the attack for each span and unit.

    Raises
    ------
    JobError
        If a span does not fit into the period.
    """
    found = []
    for span in span_days:
        if not 0 <= span < period_days:
            raise JobError(f"--span: {span} days do not fit into a period of {period_days}", key="span")
        for to in units:
            left = _left(period_days, span, UNITS[to], persons, np.random.default_rng(seed))
            within = {width: float(np.mean(left <= width)) for width in WIDTHS}
            found.append(Narrowed(period_days, span, to, float(np.median(left)), within))
    return found


def _left(period: int, span: int, unit: int, persons: int, rng: np.random.Generator) -> Ints:
    """Possible shifts of each person: those that put the first and the last date into the period."""
    first = rng.integers(0, period - span, persons)
    shift = rng.integers(-SHIFT_DAYS, SHIFT_DAYS, persons)
    shift += shift >= 0  # never 0
    moved, last = first + shift, first + span + shift
    earliest, latest = moved // unit * unit, last // unit * unit + unit - 1  # what is shown of both, at its widest
    least = np.maximum(-SHIFT_DAYS, earliest - (period - span - 1))
    most = np.minimum(SHIFT_DAYS, latest - span)
    left: Ints = most - least + 1 - ((least <= 0) & (most >= 0))
    return left
