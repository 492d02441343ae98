"""Peeling in steps against peeling that visits every node in each step."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from sqldeid.tables.peel import LocalProblem
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Grid, make_grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.state import State
from tests.support.local_problems import problems


def peeled(problem: LocalProblem) -> object:
    """What is released in steps alone: shares of 0 let next to nothing go before them."""
    state = State(make_grid(problem), problem.rows)
    share = np.zeros(len(problem.rows), dtype=np.int64)
    import_module("sqldeid.tables.peel.partition")._peel_all(state, Judge(problem), share, Clock(None))
    return [state.nodes[i] if i >= 0 else None for i in state.at.tolist()], state.cost.tolist()


@settings(deadline=None)
@given(problems(most_combinations=20))
def test_nodes_that_are_passed_over_release_nothing(problem: LocalProblem) -> None:
    rising, found = Nodes.rising, peeled(problem)

    def visited(nodes: Nodes, grid: Grid, rows: Any, *asked: int) -> Nodes:
        some, whole = set(rising(nodes, grid, rows, *asked).every()), rising(nodes, grid, rows)
        assert [x for x in whole.every() if x in some] == rising(nodes, grid, rows, *asked).every()
        return whole

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Nodes, "rising", visited)
        assert peeled(problem) == found
