"""What is released of each cell: equal to a slow rule, cell by cell, and never a part of fewer than k."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.ledger.parts import Branches, decide

CELL = st.tuples(st.integers(1, 6), st.lists(st.integers(1, 15), max_size=4), st.integers(0, 9))
"""k of the cell, persons by class, persons who leave."""


def branches(cells: list[tuple[int, list[int], int]], new: list[int]) -> Branches:
    rows = [(-1, n, 0, False) for n in new]
    for number, (k, classes, leavers) in enumerate(cells):
        rows += [(number, n, k, False) for n in classes] + ([(number, leavers, k, True)] if leavers else [])
    cell, n, k, leaves = (np.array(c) for c in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 4
    return Branches(cell.astype(np.int64), n.astype(np.int64), k.astype(np.int64), leaves.astype(np.bool_))


def oracle(k: int, cell: tuple[int, list[int], int]) -> int:
    """Persons of one cell that the rule releases, by the rule as it is said."""
    own, classes, leavers = cell
    there = sorted(n for n in classes if n >= max(own, k))
    out = leavers + sum(n for n in classes if n < max(own, k))
    while there and 0 < out < own:
        lacking = own - out
        if there[-1] - lacking >= max(own, k):
            there[-1] -= lacking
            break
        out += there.pop(0)
    return sum(there)


@given(st.integers(1, 6), st.lists(CELL, max_size=6), st.lists(st.integers(1, 9), max_size=4))
def test_parts(k: int, cells: list[tuple[int, list[int], int]], new: list[int]) -> None:
    given_ = branches(cells, new)
    there = sorted({*given_.cell[given_.cell >= 0].tolist()})
    cells = [cells[i] for i in there]
    given_ = branches(cells, new)
    least = np.array([c[0] for c in cells], dtype=np.int64)
    decided = decide(given_, k, np.zeros(len(given_.n), dtype=np.bool_), least)
    kept, out = decided.parts(given_)
    for number, (own, classes, leavers) in enumerate(cells):
        mine = kept[(given_.cell == number) & (kept > 0)]
        assert out[number] in (0, sum(classes) + leavers) or out[number] >= own
        assert all(n >= max(own, k) for n in mine)
        assert mine.sum() == oracle(k, (own, classes, leavers))
        assert (number in decided.torn(given_)) == (len(mine) + (out[number] > 0) > 1)
    assert sorted(kept[given_.cell < 0].tolist()) == sorted(n if n >= k else 0 for n in new)


def test_what_is_withdrawn_for_other_reasons_leaves_with_companions() -> None:
    given_ = branches([(3, [4, 9], 0)], [])
    decided = decide(given_, 3, np.array([True, False]), np.array([8]))
    assert decided.withdrawn.tolist() == [True, False]
    assert decided.companions.tolist() == [0, 4]
    assert decided.parts(given_)[1].tolist() == [8]
