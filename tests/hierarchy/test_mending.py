"""What is said of values that a hierarchy does not cover, and how many rows a rule hides."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sqldeid.hierarchy import open_source
from sqldeid.hierarchy.mending import hidden_rows, mending
from sqldeid.hierarchy.topcoded import top_coded

DATES = {"dates": ["month", "year"]}


def test_a_rule_is_not_to_be_added_to_and_a_text_column_of_dates_is_to_be_cast():
    said = mending(open_source(DATES, Path()), 2, "refuse", 'my "day"', text=True)
    assert said.startswith("Mend the column first: its type is text")
    assert 'strptime("my ""day""", ' in said and "['%Y-%m-%d', '%d.%m.%Y'])" in said
    assert "Add " not in said and "prefix" not in said and '"top", which shows them as "*"' in said


@pytest.mark.parametrize("rule", [DATES, {"bands": [5]}, {"edges": [[1, 2]]}], ids=str)
def test_of_dates_and_numbers_no_prefix_is_proposed(rule):
    said = mending(open_source(rule, Path()), 1, "refuse", "x", text=False)
    assert said.startswith("A rule cannot be added to: mend it") and "prefix" not in said and "strptime" not in said


@pytest.mark.parametrize(("set_already", "proposed"), [("refuse", '"prefix" or "top"'), ("prefix", '"top"')])
def test_what_is_set_already_is_not_proposed(tmp_path, set_already, proposed):
    (tmp_path / "w.csv").write_text("A;x\n")
    said = mending(open_source("w.csv", tmp_path), 1, set_already, "x", text=True)
    assert said == f"Add it to the hierarchy, or set uncovered = {proposed}"


def test_hidden_rows_equal_a_count_by_hand():
    draw = random.Random(7)
    for _ in range(20):
        numbers = draw.sample(range(-5, 15), draw.randint(1, 12))
        rows = [draw.randint(1, 9) for _ in numbers]
        wanted = sum(n for x, n in zip(numbers, rows, strict=True) if not 0 <= x < 10)
        source = open_source({"edges": [[0, 5, 10]]}, Path())
        for asked in (source, top_coded(source, pa.array([9]), "9", numeric=False, uncovered="top")):
            given = hidden_rows(asked, pa.array([*numbers, None]), np.array([*rows, 3]), numeric=False)
            assert given == wanted  # NULL is no value that is not read
