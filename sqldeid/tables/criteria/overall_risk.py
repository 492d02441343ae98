"""Average risk and records at risk (El Emam 2013): what the sizes of all released classes must meet together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqldeid.errors import UnknownKindError

AVERAGE, AT_RISK = "average risk", "records at risk"
"""What results call the two."""


@dataclass(frozen=True, slots=True)
class Words:
    """One of the two in words: its name, what is asked, as a plan tells it, and the promise in one sentence."""

    name: str
    asked: float
    told: str
    promise: str


@dataclass(frozen=True, slots=True)
class OverallRisk:
    """Released classes are few for their rows (average risk), and few rows lie in small ones (records at risk).

    Classes that fail k or a criterion of classes are suppressed first. Where what is left does not meet both, its
    smallest classes are suppressed, too, all of one size together, until it does: the *least size* of a node is the
    least number, k or more, such that the passing classes of so many rows and more meet both. It exists, for nothing
    that is released meets them. A node is admissible where all these rows are within the suppression limit.

    Parameters
    ----------
    average
        Greatest average of 1/size over released rows, which is classes / rows; None where it is not asked for.
    threshold, share
        The greatest share of released rows whose 1/size exceeds the threshold; both None where it is not asked for.

    Guarantee
        Who knows the quasi-identifying values of every person of the release, and picks for each a row that fits, is
        right for at most the share `average` of them (expected). For at most the share `share` of them the
        probability is above `threshold`.
    Assumes
        What k-anonymity assumes; and that each released person is as likely to be sought as any other.
    Does not protect
        A single person: one may be at the risk 1/k, however small the average; k bounds the worst. Nor against
        sensitive values that a class shares (use l-diversity), nor against what suppression tells: here also that
        classes above k were small.
    Source
        El Emam 2013, *Guide to the De-Identification of Personal Health Information* (maximum and average risk); ARX's
        average re-identification risk and its bound on records at risk, which suppress what is at the greatest risk,
        too (one class after the other, where here a whole size goes).

    What is monotone. Without suppression both: merging classes keeps the rows, never adds a class, and never moves a
    row below a size. With suppression the rows that a node suppresses are not: a whole size goes at once. So the core
    is the least that could be suppressed were rows divisible: choose for each class of k rows and more the share w of
    its rows that is released, between 0 and 1, such that sum of w (1 - average * size) <= 0 (and likewise that the
    released rows at risk are at most `share` of the released ones); classes below k have w = 0. The least of the rows
    that are not released, F, is the core:

    - What a node suppresses is one such choice (w is 0 or 1), so it suppresses at least F.
    - F only falls upwards. Let x be below y, and w a choice at x. Give each class D of y the share W = sum of w_i s_i
      over its parts i, over its size s_D. As many rows are released. W is at most the largest w_i, so at most their
      sum, and W (1 - average s_D) <= sum of w_i (1 - average s_i): the average holds at y. A part of a D that is
      at risk is at risk itself, so the rows at risk are no more, and that share holds, too. A D below k has such parts
      alone.

    Of two demands the greater F counts; it is found by giving up the smallest classes first, of the last size a part,
    since a row given up lowers the sum by 1/size - average. Which rows those are at another node is not said: so a
    bound may count them, and never look at what they lose (`Evaluation.core_leaves`).
    """

    average: Fraction | None = None
    threshold: Fraction | None = None
    share: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.threshold is None) != (self.share is None) or (self.average is None and self.share is None):
            raise UnknownKindError(type(self).__name__, "criterion of the whole release")

    def risky(self, size: int) -> bool:
        """Whether 1/size exceeds the threshold."""
        return self.threshold is not None and size * self.threshold.numerator < self.threshold.denominator

    def least_size(self, sizes: Mapping[int, int], k: int) -> int:
        """Least size of the released classes.

        Parameters
        ----------
        sizes
            Class size → classes that pass every criterion of classes; smaller ones than k do not count.
        """
        rising = sorted(size for size in sizes if size >= k)
        classes = sum(sizes[size] for size in rising)
        rows = sum(size * sizes[size] for size in rising)
        risky = sum(size * sizes[size] for size in rising if self.risky(size))
        least = k
        for size in rising:
            if self._few(classes, rows) and self._safe(risky, rows):
                return least
            gone = sizes[size]
            classes, rows, least = classes - gone, rows - gone * size, size + 1
            risky -= gone * size if self.risky(size) else 0
        return least

    def core(self, sizes: Mapping[int, int], k: int) -> int:
        """Rows that every specialisation suppresses at least (F), from all classes: class size → classes."""
        below = sum(size * n for size, n in sizes.items() if size < k)
        rising = sorted(size for size in sizes if size >= k)
        rows = sum(size * sizes[size] for size in rising)
        risky = sum(size * sizes[size] for size in rising if self.risky(size))
        return below + max(self._core_of_average(sizes, rising, rows), self._core_of_share(risky, rows))

    def _core_of_average(self, sizes: Mapping[int, int], rising: list[int], rows: int) -> int:
        if self.average is None:
            return 0
        num, den = self.average.numerator, self.average.denominator
        over = sum(sizes[size] for size in rising) * den - rows * num
        gone = 0
        for size in rising:
            if over <= 0:
                break
            gain, most = den - size * num, sizes[size]
            if gain * most < over:
                over, gone = over - gain * most, gone + size * most
                continue
            return gone - (-over * size // gain)
        return gone

    def _core_of_share(self, risky: int, rows: int) -> int:
        if self.share is None or self._safe(risky, rows):
            return 0
        num, den = self.share.numerator, self.share.denominator
        return -((rows * num - risky * den) // (den - num))

    def _few(self, classes: int, rows: int) -> bool:
        return self.average is None or classes * self.average.denominator <= rows * self.average.numerator

    def _safe(self, risky: int, rows: int) -> bool:
        return self.share is None or risky * self.share.denominator <= rows * self.share.numerator

    @property
    def words(self) -> tuple[Words, ...]:
        """What is asked, one entry for each of the two that is."""
        found = []
        if self.average is not None:
            r = float(self.average)
            said = f"Whoever seeks all released persons by their quasi-identifying values finds at most {r:g} of them."
            found.append(Words(AVERAGE, r, f"at most {r:g} over the released rows", said))
        if self.threshold is not None and self.share is not None:
            t, s = float(self.threshold), float(self.share)
            said = f"At most {s:g} of the released rows are found with a probability above {t:g}."
            found.append(Words(AT_RISK, s, f"at most {s:g} of the released rows above {t:g}", said))
        return tuple(found)

    def said(self) -> dict[str, object]:
        """As the job says it."""
        found: dict[str, object] = {} if self.average is None else {"average_risk": float(self.average)}
        if self.threshold is not None and self.share is not None:
            found["at_risk"] = {"threshold": float(self.threshold), "share": float(self.share)}
        return found
