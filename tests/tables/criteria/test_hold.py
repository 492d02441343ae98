"""What is judged of many classes at once is what `holds` says of each; unions of holding classes hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from sqldeid.tables.criteria.histograms import Histograms

NUMBERS = st.fractions(Fraction(1, 20), 3, max_denominator=20)
GROUPS = ((0, 1, 2, 3, 4), (0, 0, 1, 1, 2))
CRITERIA: list[st.SearchStrategy[ClassCriterion]] = [
    st.builds(DistinctLDiversity, st.just("x"), st.integers(1, 4)),
    st.builds(EntropyLDiversity, st.just("x"), st.integers(1, 4)),
    st.builds(RecursiveLDiversity, st.just("x"), st.integers(1, 4), NUMBERS),
    st.builds(TCloseness, st.just("x"), NUMBERS, st.sampled_from(["equal", "ordered"])),
    st.builds(HierarchicalTCloseness, st.just("x"), NUMBERS, st.just(GROUPS)),
    st.builds(DeltaDisclosure, st.just("x"), NUMBERS),
    st.builds(BetaLikeness, st.just("x"), NUMBERS, st.sampled_from(["basic", "enhanced"])),
]
COUNTS = st.integers(1, 4).flatmap(
    lambda values: st.lists(
        st.lists(st.integers(0, 6), min_size=values, max_size=values).filter(any), min_size=1, max_size=6
    )
)


@pytest.mark.parametrize("criteria", CRITERIA)
@given(st.data(), COUNTS)
def test_many_classes_are_judged_as_each_alone(
    criteria: st.SearchStrategy[ClassCriterion], data: st.DataObject, counts: list[list[int]]
) -> None:
    criterion, dense = data.draw(criteria), np.array(counts, dtype=np.int64)
    owner, value = np.nonzero(dense)
    first = np.searchsorted(owner, np.arange(len(dense)))
    whole = dense.sum(axis=0)
    holding = criterion.hold(Histograms(first, value, dense[owner, value]), whole)
    alone = [holds(criterion, row, whole) for row in dense]
    assert holding.tolist() == alone
    if all(alone):
        assert holds(criterion, whole, whole)
    if holding[0] and holding[-1]:
        assert holds(criterion, dense[0] + dense[-1], whole)


def holds(criterion: ClassCriterion, counts: np.ndarray, whole: np.ndarray) -> bool:
    by_place = {i: int(n) for i, n in enumerate(counts.tolist()) if n}
    return criterion.holds(by_place, int(counts.sum()), whole)
