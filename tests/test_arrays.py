"""Different rows of an array are those of NumPy, in its order."""

from __future__ import annotations

import numpy as np
import pytest

from sqldeid.arrays import unique_rows


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (int(rng.integers(1, 40)), int(rng.integers(1, 5))))
    assert np.array_equal(unique_rows(rows), np.unique(rows, axis=0))


def test_no_row_has_none() -> None:
    assert unique_rows(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)
