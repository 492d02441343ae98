"""Why Grassberger's estimate of entropy is no criterion: the figures of `docs/closeness.md`, by its formula."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest
from scipy.special import digamma

PAGE = Path(__file__).parents[3] / "docs/closeness.md"


def estimate(*counts: int) -> float:
    """Equally likely values by the estimate of Grassberger 2003: ln N less the mean of G(n) over rows."""
    rows = sum(counts)
    corrected = (n * (digamma(n) + (-1) ** n * (digamma((n + 1) / 2) - digamma(n / 2)) / 2) for n in counts)
    return exp(log(rows) - sum(corrected) / rows)


def shannon(*counts: int) -> float:
    return exp(-sum(n / sum(counts) * log(n / sum(counts)) for n in counts))


@pytest.mark.parametrize(("counts", "told"), [((1, 1, 1), "10.7"), ((1, 1), "7.1"), ((2, 2), "1.93")])
def test_the_page_tells_what_the_formula_gives(counts, told):
    assert f"{estimate(*counts):.{len(told.partition('.')[2])}f}" == told
    assert told in PAGE.read_text(encoding="utf-8")


def test_it_bounds_the_entropy_in_neither_direction_and_is_not_inherited():
    assert estimate(1, 1, 1) > shannon(1, 1, 1) == pytest.approx(3)
    assert estimate(2, 2) < shannon(2, 2) == pytest.approx(2)
    assert estimate(1, 1) > 7 > 2 > estimate(1 + 1, 1 + 1)
