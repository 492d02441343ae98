"""Peeling in steps against peeling that visits every node in each step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from sqldeid.errors import NoSolutionError
from sqldeid.tables.peel import LocalProblem, partition
from sqldeid.tables.peel.grid import Grid
from sqldeid.tables.peel.nodes import Nodes
from tests.support.local_problems import problems


def released(problem: LocalProblem) -> object:
    try:
        found = partition(problem)
    except NoSolutionError as error:
        return str(error)
    return found.nodes, found.layer.tolist(), found.units, found.bound


@settings(deadline=None)
@given(problems(most_combinations=20))
def test_nodes_that_are_passed_over_release_nothing(problem: LocalProblem) -> None:
    rising, found = Nodes.rising, released(problem)

    def visited(nodes: Nodes, grid: Grid, rows: Any, *asked: int) -> Nodes:
        some = rising(nodes, grid, rows, *asked)
        whole = rising(nodes, grid, rows)
        assert [x for x in whole.every() if x in set(some.every())] == some.every()
        return whole

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Nodes, "rising", visited)
        assert released(problem) == found
