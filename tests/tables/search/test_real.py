"""The default search on real data: known optima, and a ceiling on the checks they may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.classes import Workbench, read_table
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.search import Outcome, Problem, search

ADULT = ("adult", "adult.csv", "adult_hierarchy_{}.csv")
WIDE = ("wide", "mach2019_int.csv", "mach2019_int_hierarchy_{}.csv")


def run(
    data: Path, files: tuple[str, str, str], columns: int, limit: float, method: str = "frontier", **options: object
) -> Outcome:
    """Search the first columns of a file for `loss` under 5-anonymity."""
    folder, name, hierarchy = files
    table = read_table(data / folder, name, hierarchy, columns)
    rows = len(table[0].codes)
    bench = Workbench(table, 5, allowed_rows(limit, rows))
    loss = make_loss("loss", bench.marginals, rows)
    problem = Problem(bench.lattice, bench.marginals, rows, bench.allowed, loss, bench, **options)  # type: ignore[arg-type]
    return search(method, problem)


@pytest.mark.parametrize(
    ("limit", "node", "loss", "suppressed", "most"),
    [
        (0.0, (0, 4, 1, 1, 3, 2, 2, 1, 0), 0.6355438467035841, 0, 100),
        (0.05, (0, 3, 0, 0, 2, 1, 1, 2, 0), 0.26963466278940496, 1346, 130),
        (0.2, (0, 3, 0, 0, 2, 1, 1, 1, 0), 0.2277003232568182, 2553, 400),
    ],
)
def test_adult(shared_data: Path, limit: float, node: tuple[int, ...], loss: float, suppressed: int, most: int) -> None:
    outcome = run(shared_data, ADULT, 9, limit)
    assert outcome.optimal
    assert outcome.node == node
    assert outcome.loss == pytest.approx(loss, abs=1e-14)
    assert outcome.evaluation.failing == suppressed
    assert outcome.checks <= most


@pytest.mark.deep
@pytest.mark.parametrize("method", ["best-first", "flash"])
def test_adult_agrees(shared_data: Path, method: str) -> None:
    outcome = run(shared_data, ADULT, 9, 0.05, method)
    assert outcome.optimal
    assert outcome.node == (0, 3, 0, 0, 2, 1, 1, 2, 0)


@pytest.mark.parametrize(("columns", "loss", "most"), [(8, 0.17994409964, 120), (9, 0.2635584187, 380)])
def test_wide(shared_data: Path, columns: int, loss: float, most: int) -> None:
    outcome = run(shared_data, WIDE, columns, 0.05)
    assert outcome.optimal
    assert outcome.loss == pytest.approx(loss, abs=1e-8)
    assert outcome.checks <= most


@pytest.mark.deep
def test_wide_with_every_attribute_stops_with_a_good_node_and_a_gap(shared_data: Path) -> None:
    """85 million nodes: no array of the lattice's size, a node better than others find in a minute, a proven gap."""
    outcome = run(shared_data, WIDE, 16, 0.05, checks_limit=1500)
    assert not outcome.optimal
    assert outcome.checks <= 1500
    assert outcome.loss <= 0.5812
    assert 0 < outcome.gap < outcome.loss
