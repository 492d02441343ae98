"""The default search on Adult equals exhaustive search over all 12,960 nodes: a quarter of a grid of k, limits, losses.

Each limit meets each loss, and most k. The rest of the grid, as all of it, is `make bench`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.classes import Workbench, read_table
from benchmarks.exhaust import Exhausted, exhaust
from sqldeid.errors import NoSolutionError
from sqldeid.tables.model.evaluation import Evaluation, allowed_rows
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.model.loss import LOSSES, make_loss
from sqldeid.tables.search import Problem, search
from tests.support.places import ROOT

KS = (2, 3, 5, 10, 25, 100)
LIMITS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
pytestmark = [pytest.mark.xdist_group("adult_grid"), pytest.mark.deep]


class Lookup:
    """`Evaluate` from what is known of every node."""

    def __init__(self, exhausted: Exhausted, k: int, allowed: int) -> None:
        self.exhausted, self.at, self.allowed = exhausted, exhausted.ks.index(k), allowed

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        return [self.one(node) for node in nodes]

    def one(self, node: Node) -> Evaluation:
        known = self.exhausted
        i = int(np.ravel_multi_index(node, known.heights))
        failing = int(known.failing[self.at, i])
        leaves = tuple(int(x) for x in known.leaves[self.at, i]) if failing <= self.allowed else None
        logs = tuple(int(x) for x in known.logs[self.at, i]) if failing <= self.allowed else None
        return Evaluation(
            node, failing, failing, int(known.classes[i]), int(known.squares[i]), leaves, suppressed_logs=logs
        )


@pytest.fixture(scope="module")
def adult(shared_data: Path) -> Exhausted:
    return exhaust(read_table(shared_data / "adult", "adult.csv", "adult_hierarchy_{}.csv"), KS)


def test_every_node_is_what_the_database_says(adult: Exhausted) -> None:
    """A sample of the nodes, by SQL on the folded classes."""
    nodes = list(islice(Lattice(adult.heights), 7, None, 131))
    for k in (5, 100):
        bench = Workbench(adult.columns, k, 1508)
        for start in range(0, len(nodes), 25):
            batch = nodes[start : start + 25]
            for asked, known in zip(bench(batch), Lookup(adult, k, 1508)(batch), strict=True):
                assert (asked.failing, asked.classes, asked.squares) == (known.failing, known.classes, known.squares)
                if asked.suppressed_leaves and asked.failing:
                    assert asked.suppressed_leaves == known.suppressed_leaves


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k", KS)
def test_same_optimum(adult: Exhausted, k: int, name: str) -> None:
    marginals = [c.marginal for c in adult.columns]
    loss = make_loss(name, marginals, adult.rows)
    for limit in LIMITS[(KS.index(k) + list(LOSSES).index(name)) % 4 :: 4]:
        allowed = allowed_rows(limit, adult.rows)
        lookup = Lookup(adult, k, allowed)
        problem = Problem(Lattice(adult.heights), marginals, adult.rows, allowed, loss, lookup)
        expected = adult.optimum(name, k, allowed)
        if expected is None:
            with pytest.raises(NoSolutionError):
                search("frontier", problem)
            continue
        outcome = search("frontier", problem)
        assert outcome.node == expected, limit
        assert outcome.optimal


def test_the_page_says_what_each_loss_costs(adult: Exhausted) -> None:
    """docs/losses.md, the checks at 5 %: by the search as it is, within a fifth."""
    page = (ROOT / "docs/losses.md").read_text(encoding="utf-8").splitlines()
    head = next(line for line in page if line.startswith("| suppression limit"))
    names = [cell.strip(" `") for cell in head.strip("|").split("|")][1:]
    shown = next(line for line in page if line.startswith("| 5 % |"))
    told = [int(cell.replace(",", "")) for cell in shown.strip("|").split("|")[1:]]
    assert sorted(names) == sorted(LOSSES)
    marginals = [c.marginal for c in adult.columns]
    allowed = allowed_rows(0.05, adult.rows)
    for name, checks in zip(names, told, strict=True):
        loss = make_loss(name, marginals, adult.rows)
        lookup = Lookup(adult, 5, allowed)
        outcome = search("frontier", Problem(Lattice(adult.heights), marginals, adult.rows, allowed, loss, lookup))
        assert checks / 1.2 <= outcome.checks <= checks * 1.2, name


def test_a_loss_that_is_not_known_has_no_exhaustive_answer(adult: Exhausted) -> None:
    with pytest.raises(ValueError, match="made_up"):
        adult.losses("made_up", 5)
