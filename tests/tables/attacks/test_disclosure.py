"""What classes tell of sensitive values equals what is counted class by class, row by row."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sqldeid.tables.attacks.base import SUPPRESSED
from sqldeid.tables.attacks.disclosure import disclose
from tests.support.attacked_tables import folded_table, known_table, people

Row = tuple[int, int]
"""The class, or `SUPPRESSED`, and the value."""


def slow(rows: list[Row]) -> dict[str, float]:
    """Every figure, from all rows of the source."""
    whole = {v: n / len(rows) for v, n in Counter(v for _, v in rows).items()}
    shown = [row for row in rows if row[0] != SUPPRESSED]
    alike, positive, negative, skewness, share = 0, [], [], [], []
    for number, _ in shown:
        values = [v for c, v in shown if c == number]
        p = {v: values.count(v) / len(values) for v in whole}
        alike += len(set(values)) == 1
        positive.append(max(p[v] / q for v, q in whole.items()))
        negative.append(max([(1 - p[v]) / (1 - q) for v, q in whole.items() if q < 1], default=1.0))
        share.append(max(p.values()))
        skewness.append(sum(abs(p[v] - q) for v, q in whole.items()) / 2)
    found = {"alike": alike / len(shown)}
    told = {"positive": positive, "negative": negative, "skewness": skewness, "share": share}
    for name, figures in told.items():
        found |= {f"{name}_max": max(figures), f"{name}_mean": sum(figures) / len(figures)}
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_figures_equal_those_of_rows(seed: int) -> None:
    rng, table = np.random.default_rng(seed), people(6 + 3 * seed, seed, spread=4)
    if seed % 4 == 0:
        table["u"] = [1] * len(table["u"])  # of one value nothing is learnt
    with folded_table(table, 1) as (engine, folded):
        known = known_table(engine, folded)
        class_of = rng.integers(SUPPRESSED, 3, len(known.rows))
        class_of[0] = 0
        read = engine.query(f"SELECT * FROM {known.cells.sql()} ORDER BY id")
        codes = [read.column(s.code.name).to_pylist() for s in known.secrets]
        found = disclose(known, class_of)
    for column, own in zip(found.columns, codes, strict=True):
        times = zip(class_of.tolist(), own, known.rows.tolist(), strict=True)
        expected = slow([(c, v) for c, v, n in times for _ in range(n)])
        told = column.to_dict()
        assert {name: told["alike"]["value"] if name == "alike" else told[name] for name in expected} == {
            name: pytest.approx(x) for name, x in expected.items()
        }
