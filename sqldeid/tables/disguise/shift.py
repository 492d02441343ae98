"""One secret number of days for each person, by which all of their shifted dates move: intervals stay.

Guarantee
    Without other knowledge each of 730 shifts is as likely as any other.
Assumes
    Nobody knows the period of the study, an interval between two dates of a person, or a true date of theirs.
Does not protect
    Near the ends of a known period few shifts are possible (`sqldeid.tables.disguise.narrowing` measures how few);
    intervals are fingerprints; releases that shift the same dates anew tell them by comparison.
Source
    Mazzone 2019, ch. 3: MIMIC-III's dates are shifted at random, consistently for each patient; soundness.md 7:
    intervals are fingerprints.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria.mechanism import Randomness

SHIFT_DAYS = 365
"""The most that a person's dates move, back or forth; by less than a day they never do."""

OVER_89_YEARS = 90
"""From this age on no date of birth is released: "over 89" counts completed years."""


def draw_days(count: int, randomness: Randomness) -> Ints:
    """`count` independent uniform whole numbers from −365 to 365 without 0; shape (count,).

    A 64-bit word beyond the last full round of 730 is drawn again, so that no number is likelier than another.
    """
    choices = 2 * SHIFT_DAYS
    last = np.uint64(2**64 - 2**64 % choices - 1)
    words = randomness.words(count)
    while (late := np.flatnonzero(words > last)).size:
        words = words.copy()
        words[late] = randomness.words(late.size)
    places = (words % np.uint64(choices)).astype(np.int64)
    return np.where(places < SHIFT_DAYS, places - SHIFT_DAYS, places - SHIFT_DAYS + 1)
