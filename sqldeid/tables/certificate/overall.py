"""What all released classes must meet together, recounted for a certificate, by bisection. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

from sqldeid.tables.criteria import OverallRisk


def core(overall: OverallRisk, sizes: Mapping[int, int], k: int) -> int:
    """Rows that a node and every specialisation suppress at least: those below k, and the least that must be given up.

    Parameters
    ----------
    sizes
        Of all classes of the node: size → classes.

    Rows are given up one by one, smallest classes first, a class of which some rows are left being that part of one.
    The fewer classes and rows at risk are left for the rows, the better; so the least number is found by bisection.
    """
    rising = sorted(size for size in sizes if size >= k)
    rows = sum(size * sizes[size] for size in rising)
    least = bisect_left(range(rows), True, key=lambda gone: _met(overall, sizes, rising, rows, gone))
    return sum(size * n for size, n in sizes.items() if size < k) + least


def _met(overall: OverallRisk, sizes: Mapping[int, int], rising: list[int], rows: int, gone: int) -> bool:
    classes, risky, left = Fraction(0), 0, gone
    for size in rising:
        given = min(left, size * sizes[size])
        left -= given
        stays = size * sizes[size] - given
        if stays:
            classes += sizes[size] if not given else Fraction(stays, size)
            risky += stays if overall.threshold is not None and Fraction(1, size) > overall.threshold else 0
    few = overall.average is None or classes <= overall.average * (rows - gone)
    return few and (overall.share is None or risky <= overall.share * (rows - gone))
