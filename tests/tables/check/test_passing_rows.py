"""The largest part of a class that can pass, against all of its parts, one by one; and the proof's formulas for it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from sqldeid.tables.certificate.passing_rows import passing_rows
from sqldeid.tables.check.passing_rows import Histograms, survivors
from sqldeid.tables.criteria import (
    BetaLikeness,
    ClassCriterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    HierarchicalTCloseness,
    RecursiveLDiversity,
    TCloseness,
)

GROUPS = (tuple(range(60)), tuple(i // 2 for i in range(60)))
CRITERIA: list[ClassCriterion] = [
    DistinctLDiversity("s", 3),
    EntropyLDiversity("s", 2),
    EntropyLDiversity("s", 3),
    RecursiveLDiversity("s", 1, Fraction(1, 2)),
    RecursiveLDiversity("s", 2, Fraction(3, 2)),
    RecursiveLDiversity("s", 3, Fraction(3)),
    TCloseness("s", Fraction(1, 5), "equal"),
    TCloseness("s", Fraction(0), "equal"),
    TCloseness("s", Fraction(1, 2), "equal"),
    TCloseness("s", Fraction(1, 10), "ordered"),
    TCloseness("s", Fraction(1, 4), "ordered"),
    HierarchicalTCloseness("s", Fraction(0), GROUPS),
    HierarchicalTCloseness("s", Fraction(1, 5), GROUPS),
    HierarchicalTCloseness("s", Fraction(2, 5), GROUPS),
    DeltaDisclosure("s", Fraction(1, 2)),
    DeltaDisclosure("s", Fraction(2)),
    BetaLikeness("s", Fraction(1, 2), "basic"),
    BetaLikeness("s", Fraction(3, 2), "enhanced"),
]


def passes(criterion: ClassCriterion, counts: tuple[int, ...], whole: list[int]) -> bool:
    falling, n = sorted((c for c in counts if c), reverse=True), sum(counts)
    if isinstance(criterion, HierarchicalTCloseness):
        pairs = [(c, w, g) for c, w, g in zip(counts, whole, GROUPS[1], strict=False)]
        upper = {g: (sum(c for c, _, x in pairs if x == g), sum(w for _, w, x in pairs if x == g)) for g in (0, 1)}
        both = [*((c, w) for c, w, _ in pairs), *upper.values()]
        return sum(abs(Fraction(c, n) - Fraction(w, sum(whole))) for c, w in both) <= 4 * criterion.t
    if isinstance(criterion, TCloseness):
        gaps = [Fraction(c, n) - Fraction(w, sum(whole)) for c, w in zip(counts, whole, strict=True)]
        if criterion.distance == "equal":
            return sum(map(abs, gaps)) <= 2 * criterion.t
        moved = sum(abs(sum(gaps[: i + 1])) for i in range(len(gaps)))
        return moved <= criterion.t * max(len(gaps) - 1, 1)
    ratios = [Fraction(c * sum(whole), n * w) for c, w in zip(counts, whole, strict=True)]
    if isinstance(criterion, DeltaDisclosure):
        return all(r and abs(log(r)) < criterion.delta for r in ratios)
    if isinstance(criterion, BetaLikeness):
        limits = [-log(w / sum(whole)) if criterion.kind == "enhanced" else criterion.beta for w in whole]
        return all(r - 1 <= min(criterion.beta, most) for r, most in zip(ratios, limits, strict=True))
    if isinstance(criterion, EntropyLDiversity):
        return -sum(c / n * log(c / n) for c in falling) >= log(criterion.l) - 1e-9
    if isinstance(criterion, RecursiveLDiversity):
        return falling[0] < criterion.c * sum(falling[criterion.l - 1 :])
    return len(falling) >= criterion.l


def largest(criterion: ClassCriterion, counts: list[int], whole: list[int]) -> int:
    parts = product(*(range(c + 1) for c in counts))
    return max((sum(p) for p in parts if sum(p) and passes(criterion, p, whole)), default=0)


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_no_more_rows_survive_than_the_largest_part_that_passes(criterion: ClassCriterion) -> None:
    rng = np.random.default_rng(11)
    classes, whole = [], [int(x) for x in rng.integers(1, 9, 4)]
    while len(classes) < 60:
        counts = [int(x) for x in rng.integers(0, 6, 4) * rng.integers(0, 2, 4)]
        if sum(counts):
            classes.append(counts)
    cells = [(i, v, c) for i, counts in enumerate(classes) for v, c in enumerate(counts) if c]
    owner, value, rows = (np.array(x, dtype=np.int64) for x in zip(*cells, strict=True))
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    reference = np.array(whole, dtype=np.int64)
    found = survivors(criterion, Histograms(first, value, rows), reference)
    assert (found == passing_rows(criterion, first, value, rows, reference)).all()
    true = np.array([largest(criterion, counts, whole) for counts in classes])
    assert (found >= true).all()
    if not criterion.against_whole:  # there it is a bound: rows are whole, and cuts do not move freely
        assert (found == true).all()
    size = np.array([sum(c) for c in classes])
    fails = np.array([not passes(criterion, tuple(c), whole) for c in classes])
    assert ((found < size) == fails).all()
    assert fails.any()


def test_large_classes_are_as_exact() -> None:
    rng = np.random.default_rng(3)
    for criterion in CRITERIA:
        counts = rng.integers(1, 200_000, (40, 6)) // rng.choice([1, 50, 5_000], (40, 6)) + 1
        whole = rng.integers(100_000, 900_000, 6)
        first, value = np.arange(40) * 6, np.tile(np.arange(6), 40)
        found = survivors(criterion, Histograms(first, value, counts.ravel()), whole)
        assert (found == passing_rows(criterion, first, value, counts.ravel(), whole)).all()
        assert ((found >= 0) & (found <= counts.sum(axis=1))).all()
