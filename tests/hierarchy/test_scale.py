"""A million leaves: seconds, not hours, and a bounded memory. The limits are wide; a quadratic step breaks them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sqldeid.hierarchy import open_source

MILLION = 1_000_000
SECONDS = 240.0  # of a busy machine; a quadratic step takes hours


@pytest.mark.deep
@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"bands": [5, 50, 500]}, pa.array(np.arange(MILLION))),
        ({"bands": [0.5, 50]}, pa.array(np.arange(MILLION) / 8)),
        ({"mask": [1, 2, 3]}, pa.array(np.arange(MILLION))),
    ],
    ids=["bands", "bands of floats", "mask"],
)
def test_a_rule_over_a_million_values(spec, values) -> None:
    start = time.monotonic()
    hierarchy = open_source(spec, Path("/nonexistent")).bind(values)
    codes, _ = hierarchy.codes()
    assert time.monotonic() - start < SECONDS
    assert hierarchy.leaves == MILLION == len(np.unique(codes))


@pytest.mark.deep
def test_a_file_of_a_million_lines(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    with path.open("w") as file:
        file.writelines(f"{i:07d};{i // 10:06d};{i // 1000:04d};*\n" for i in range(MILLION))
    start = time.monotonic()
    source = open_source("million.csv", tmp_path)
    numbers = np.random.default_rng(1).permutation(MILLION)
    hierarchy = source.bind(pa.array(numbers))
    codes, bits = hierarchy.codes()
    assert hierarchy.labels[1][hierarchy.groups[1][hierarchy.leaf[0]]] == f"{numbers[0] // 10:06d}"
    assert bits == (0, 4, 11, 21) and len(np.unique(codes)) == MILLION
    lacking = pa.array([f"{i:07d}x" for i in range(MILLION)])
    grown = source.bind(lacking, uncovered="prefix")
    assert grown.leaves == 2 * MILLION
    assert grown.labels[1][grown.groups[1][grown.leaf[-1]]] == "099999"
    assert time.monotonic() - start < 2 * SECONDS
