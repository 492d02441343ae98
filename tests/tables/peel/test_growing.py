"""Classes grown from neighbours: the best class around a combination, and the promise where nodes cannot be listed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import NoSolutionError
from sqldeid.tables.criteria import DistinctLDiversity, TCloseness
from sqldeid.tables.peel import Attribute, LocalProblem, Partition, bound, clustering, growing, partition
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Grid, make_grid
from sqldeid.tables.peel.growing import Pool
from sqldeid.tables.peel.joining import meet
from sqldeid.tables.peel.judge import Judge
from tests.support.local_problems import concealing, meets, problems, recounted

CRITERIA = st.lists(
    st.sampled_from([DistinctLDiversity("x", 2), TCloseness("x", Fraction(3, 10), "equal")]), max_size=2
)


@settings(deadline=None)
@given(problem=problems(most_combinations=8), data=st.data())
def test_with_all_ways_kept_a_class_is_the_cheapest_around_its_first(
    problem: LocalProblem, data: st.DataObject
) -> None:
    grid, judge = make_grid(problem), Judge(problem)
    pool = Pool(grid, judge, np.arange(len(problem.rows)))
    pool.ways = 10_000
    closed = data.draw(st.sets(st.integers(0, len(problem.rows) - 1), max_size=3))
    pool.take(np.array(sorted(closed), dtype=np.int64))
    open_ = [i for i in range(len(problem.rows)) if i not in closed]
    if not open_:
        return
    head = data.draw(st.sampled_from(open_))
    node, taken = pool.grown(head)
    least = cheapest(problem, grid, head, open_)
    if least is None:
        assert taken is None
        return
    assert taken is not None
    assert {head} <= set(taken.tolist()) <= set(open_)
    assert len(set(taken.tolist())) == len(taken)
    assert meet(grid, taken) == node
    assert int(problem.rows[taken].sum()) >= problem.k
    assert int(grid.cost(node, taken[:1])[0]) == least


def cheapest(problem: LocalProblem, grid: Grid, head: int, open_: list[int]) -> int | None:
    """Units that a row loses at least in any class of enough rows around a combination."""
    others = [i for i in open_ if i != head]
    sets = (np.array([head, *some]) for n in range(len(others) + 1) for some in combinations(others, n))
    costs = [
        int(grid.cost(meet(grid, members), members[:1])[0])
        for members in sets
        if int(problem.rows[members].sum()) >= problem.k
    ]
    return min(costs, default=None)


@pytest.mark.parametrize("block", [2, 5, 12_000])
@settings(deadline=None)
@given(problem=problems(CRITERIA, hidden=st.none() | concealing()), data=st.data())
def test_the_promise_holds_where_nodes_cannot_be_listed(block: int, problem: LocalProblem, data: st.DataObject) -> None:
    release = grown(problem, block, data.draw(st.integers(1, 3)), None)
    if release is None:
        assert not meets(problem, np.arange(len(problem.rows)))
        return
    lost = recounted(problem, release)
    assert release.unit * release.bound <= lost == release.unit * release.units


@settings(deadline=None)
@given(problem=problems(CRITERIA, hidden=st.none() | concealing()))
def test_so_it_does_where_the_time_is_over(problem: LocalProblem) -> None:
    release, free = grown(problem, 5, 1, 0.0), grown(problem, 5, 1, None)
    assert (release is None) == (free is None)
    if release is not None:
        assert release.stopped
        assert recounted(problem, release) == release.unit * release.units


@pytest.mark.parametrize("listed", [True, False])
def test_where_only_a_step_was_cut_short_it_is_said(listed: bool) -> None:
    one = np.ones(8, dtype=np.int64)
    columns = tuple(Attribute((np.arange(8), 0 * one), (one, 8 * one), Fraction(1)) for _ in range(2))
    problem = LocalProblem(np.stack([np.arange(8), np.arange(8)]), one, columns, 2, 0, seconds=3600)
    with pytest.MonkeyPatch.context() as patch:
        if not listed:
            patch.setattr(bound, "LISTED", 0)
            patch.setattr(bound, "_PART", 1)
        assert not partition(problem).stopped
        patch.setattr(Clock, "part", lambda *_: Clock(0.0))
        assert partition(problem).stopped


def grown(problem: LocalProblem, block: int, stale: int, seconds: float | None) -> Partition | None:
    """A release as of a lattice of too many nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "LISTED", 0)
        patch.setattr(bound, "_PART", 1)
        patch.setattr(clustering, "_BLOCK", block)
        patch.setattr(clustering, "_WORK", 0)
        patch.setattr(growing, "_STALE", stale)
        try:
            return partition(replace(problem, seconds=seconds))
        except NoSolutionError:
            return None
