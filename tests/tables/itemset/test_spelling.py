"""Items that are one but for their spelling, against a dictionary of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.itemset.spelling import Spelled, spelled_apart
from tests.support.examples import examples

CODES = st.lists(st.one_of(st.none(), st.text("aA1. \t\u00c4\u00e4", max_size=4)), max_size=12, unique=True)


@given(CODES, st.data())
@settings(max_examples=examples(400), deadline=None)
def test_it_is_what_a_dictionary_of_them_says(values: list[str | None], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    alike = defaultdict(list)
    for value, n in zip(values, rows, strict=True):
        if value is not None:
            alike["".join(value.lower().replace(".", "").split())].append(n)
    several = [n for n in alike.values() if len(n) > 1]
    found = spelled_apart(pa.array(values, pa.string()), np.array(rows, dtype=np.int64))
    assert found == Spelled(sum(map(len, several)), len(several), sum(map(sum, several)))


def test_numbers_are_never_spelled_apart() -> None:
    assert spelled_apart(pa.array([1, 2, None]), np.array([1, 1, 1])) == Spelled()
