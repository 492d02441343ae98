"""Shares against cuts that look at every class of the source, one node after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import DistinctLDiversity
from sqldeid.tables.peel import LocalProblem, shares
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Grid, make_grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import every_node
from sqldeid.tables.peel.shares import least_shares
from tests.support.local_problems import problems
from tests.tables.peel.test_partition import can_hold_a_class

CRITERIA = st.lists(st.just(DistinctLDiversity("x", 2)), max_size=1)


def cut(problem: LocalProblem, grid: Grid) -> list[int]:
    """The greatest shares of each class lowered to the height at which the k greatest sum to what k rows lose."""
    share, k = [grid.row] * len(problem.rows), problem.least_rows
    for node in every_node(grid, problem.rows).every():
        keys = grid.keys(node)
        for key in np.unique(keys):
            members = np.flatnonzero(keys == key)
            if can_hold_a_class(problem, members):
                most = k * int(grid.cost(node, members[:1])[0])
                height = max(share[m] for m in members)
                while summed(problem, share, members, height, k) > most:
                    height -= 1
                for m in members:
                    share[m] = min(share[m], height)
    return share


def summed(problem: LocalProblem, share: list[int], members: Ints, height: int, k: int) -> int:
    every = [min(share[m], height) for m in members for _ in range(problem.rows[m])]
    return sum(sorted(every, reverse=True)[:k])


@settings(deadline=None)
@given(problems(CRITERIA, most_combinations=8), st.sampled_from([0, 500]))
def test_shares_are_those_of_cuts_one_after_the_other(problem: LocalProblem, few: int) -> None:
    grid = make_grid(problem)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shares, "_FEW", few)
        found = least_shares(grid, Judge(problem), every_node(grid, problem.rows), grid.row, Clock(None))
    assert found.tolist() == cut(problem, grid)
