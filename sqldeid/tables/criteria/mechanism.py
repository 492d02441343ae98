"""Exact random choices from secret bits: rows by Bernoulli(β), a node by the exponential mechanism.

No probability here is a rounded float. Floats only propose; whether a proposal is taken is decided by comparing a
uniform number, drawn bit by bit, with proven rational bounds that are refined until the answer is certain.

Source
    McSherry & Talwar 2007 (exponential mechanism); Mironov 2012 (why rounded floats break such guarantees); Canonne,
    Kamath & Steinke 2020 (exact sampling from rational parameters).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.errors import SqldeidError
from sqldeid.tables.criteria.rational import Real, exact, exp_bounds

Words = npt.NDArray[np.uint64]

_WORD = 64
_BLOCK = 1 << 20
"""Rows whose bits are drawn at once: 8 MB."""

_UNITS = 40
"""Proposals are weighed in units of 2**-40 of the heaviest."""

_MOST_CHOICES = 1 << 22
"""So that all units together stay below 2**63."""


class Randomness(Protocol):
    """Where bits come from."""

    secret: bool
    """Whether nobody can draw the same bits again; without that no guarantee may be printed."""

    def words(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""
        ...


class SystemRandomness:
    """The operating system's entropy."""

    secret = True

    def words(self, count: int) -> Words:
        """Words from `os.urandom`."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededRandomness:
    """Bits that a seed determines: for tests and for jobs that state a seed; the release is then not private.

    Parameters
    ----------
    seed
        Any integer of at least 0.
    """

    secret = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, count: int) -> Words:
        """The next words of the stream."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


def bernoulli(count: int, probability: Fraction, randomness: Randomness) -> Flags:
    """`count` independent flags, each True with exactly the rational `probability`.

    A uniform number in [0, 1) is below the probability iff its first 64-bit digit that differs is smaller; only where
    digits are equal (one in 2**64) are further ones drawn. So nothing is rounded, for any rational.
    """
    flags = np.zeros(count, dtype=np.bool_)
    if probability >= 1:
        return ~flags
    undecided, rest = np.arange(count), probability
    while len(undecided) and rest > 0:
        digit, rest = divmod(rest * (1 << _WORD), 1)
        drawn = randomness.words(len(undecided))
        flags[undecided] = drawn < np.uint64(digit)
        undecided = undecided[drawn == np.uint64(digit)]
    return flags


def sample_rows(counts: Ints, beta: Real, randomness: Randomness) -> Ints:
    """How many rows of each class are kept when every row is kept with probability exactly β, independently.

    Parameters
    ----------
    counts
        Rows per class, classes in any order; at least 0 each.
    beta
        Between 0 and 1, both allowed.

    Returns
    -------
    Counts
        One Binomial(count, β) per class, in the same order.
    """
    share, ends = exact(beta), np.cumsum(counts, dtype=np.int64)
    if not 0 <= share <= 1 or (len(counts) and counts.min() < 0):
        raise SqldeidError("rows cannot be drawn: beta or a class size is out of range")
    rows = int(ends[-1]) if len(ends) else 0
    kept_until = np.zeros(len(ends) + 1, dtype=np.int64)
    before = 0
    for start in range(0, rows, _BLOCK):
        size = min(_BLOCK, rows - start)
        kept = np.cumsum(bernoulli(size, share, randomness), dtype=np.int64)
        first, last = np.searchsorted(ends, [start, start + size], side="right")
        kept_until[first + 1 : last + 1] = before + kept[ends[first:last] - start - 1]
        before += int(kept[-1])
    return np.diff(kept_until)


def draw_below(limit: int, randomness: Randomness) -> int:
    """A uniform integer from 0 to `limit` - 1: bits are drawn anew until they are below."""
    if limit < 1:
        raise SqldeidError("there is nothing to draw from")
    bits = (limit - 1).bit_length()
    while True:
        drawn = _bits(randomness, bits)
        if drawn < limit:
            return drawn


def _bits(randomness: Randomness, bits: int) -> int:
    words = randomness.words(-(-bits // _WORD)) if bits else ()
    number = 0
    for word in words:
        number = number << _WORD | int(word)
    return number >> (-bits % _WORD)


def bernoulli_exp(scale: Fraction, exponent: Fraction, randomness: Randomness) -> bool:
    """True with probability exactly scale·exp(exponent), which is at most 1.

    A uniform number is drawn 64 bits at a time; it lies in [u, u + 1)/2**b. It is decided as soon as that interval lies
    on one side of proven bounds of the probability, which are refined with b. Both shrink, so this ends with
    probability 1, after 64 bits but for one case in about 2**64.

    Raises
    ------
    SqldeidError
        If the probability is above 1.
    """
    drawn, bits = 0, 0
    while True:
        drawn, bits = drawn << _WORD | _bits(randomness, _WORD), bits + _WORD
        low, high = (scale * bound for bound in exp_bounds(exponent, bits // 3 + 10))
        if low > 1:
            raise SqldeidError("a proposal was weighed too low; nothing may be drawn from it")
        if Fraction(drawn + 1, 1 << bits) <= low:
            return True
        if Fraction(drawn, 1 << bits) >= high:
            return False


class Proposals:
    """Choices drawn in proportion to weights that are at least exp(-cost), to be accepted or rejected.

    Parameters
    ----------
    costs
        A lower bound of every choice's cost, in nats, as floats: off by at most 2**-47 of the greatest of them.

    Notes
    -----
    Choice i is proposed in proportion to an integer q_i ≥ 2**40·exp(base - cost_i), and accepted with probability
    2**40·exp(base - cost_i)/q_i for its exact cost. So, given that a choice is accepted, it is i with probability
    proportional to exp(-cost_i), whatever the q_i were and however they were arrived at: the q_i set only how many
    proposals it takes. That every q_i is large enough is checked where it counts, on the proposal itself.
    """

    def __init__(self, costs: Floats) -> None:
        if not 0 < costs.size <= _MOST_CHOICES:
            raise SqldeidError(f"a draw from {costs.size:,} choices; 1 to {_MOST_CHOICES:,} can be weighed exactly")
        least = float(costs.min())
        margin = 1e-9 + 2.0**-46 * float(np.abs(costs).max())
        self._base = Fraction(least)
        weights = np.exp(least + margin - costs.ravel())
        self._units = np.ceil(weights * 2.0**_UNITS).astype(np.int64) + 1
        self._until = np.cumsum(self._units)

    def draw(self, randomness: Randomness) -> int:
        """A proposal: the position of a choice."""
        return int(np.searchsorted(self._until, draw_below(int(self._until[-1]), randomness), side="right"))

    def accept(self, choice: int, cost: Fraction, randomness: Randomness) -> bool:
        """Whether the proposal stands, given its exact cost.

        Raises
        ------
        SqldeidError
            If the exact cost is below the bound that the proposal was drawn with.
        """
        scale = Fraction(1 << _UNITS, int(self._units[choice]))
        return bernoulli_exp(scale, self._base - cost, randomness)


def draw(costs: Floats, cost: Callable[[int], Fraction], randomness: Randomness) -> int:
    """The exponential mechanism over choices whose costs are all known.

    Parameters
    ----------
    costs
        ε′·(greatest utility - utility)/(2·Δu) of each choice, or that plus a constant, as floats.
    cost
        The same of one choice, exactly.
    randomness
        Secret bits.

    Returns
    -------
    int
        Position i with probability exp(-cost(i)) / Σ exp(-cost), exactly.
    """
    proposals = Proposals(costs)
    while True:
        choice = proposals.draw(randomness)
        if proposals.accept(choice, cost(choice), randomness):
            return choice


def log_sum_exp_probabilities(scores: Floats) -> Floats:
    """Probabilities proportional to exp(score), by log-sum-exp in floats: for figures, never for a private draw.

    An infinite score takes all, shared alike between equals.
    """
    top = scores.max()
    weights = (scores == top).astype(np.float64) if np.isinf(top) else np.exp(scores - top)
    probabilities: Floats = weights / weights.sum()
    return probabilities
