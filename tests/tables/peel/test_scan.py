"""Nodes looked at in batches against one node after the other."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.peel import Attribute, LocalProblem, scan
from sqldeid.tables.peel.bins import Least
from sqldeid.tables.peel.grid import make_grid
from sqldeid.tables.peel.nodes import every_node
from sqldeid.tables.peel.scan import Scan
from tests.support.local_problems import problems


@pytest.mark.parametrize("beyond", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@settings(deadline=None)
@given(problem=problems(), data=st.data())
def test_a_batch_finds_the_classes_of_each_node_that_come_to_enough(
    problem: LocalProblem, packed: bool, beyond: bool, data: st.DataObject
) -> None:
    grid = make_grid(problem)
    nodes = every_node(grid, problem.rows)
    size = len(problem.rows)
    at = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1))), dtype=np.int64)
    limit = np.array([data.draw(st.integers(0, 2 * grid.row)) for _ in at], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_CELLS", data.draw(st.integers(1, 200)))
        if not packed:
            patch.setattr(scan, "_compact", lambda *_: None)
        least = Least(problem.rows, problem.k, beyond)
        looked, start, found = Scan(grid, nodes, at, limit, least), 0, {}
        while start < len(nodes):
            start, batch = looked.batch(start)
            heads = looked.at[batch.classes.members[batch.classes.first]]
            for i, head, units in zip(batch.node.tolist(), heads, batch.cost.tolist(), strict=True):
                assert units == int(grid.cost(nodes.node(i), np.array([head]))[0])
            for i, classes in batch.by_node():
                found[i] = {frozenset(looked.at[m].tolist()) for m in np.split(classes.members, classes.first[1:])}
    most = dict(zip(at.tolist(), limit.tolist(), strict=True))
    for i, node in enumerate(nodes.every()):
        keys, cost = grid.keys(node, at), grid.cost(node, at)
        every: dict[int, set[int]] = defaultdict(set)
        for member, key, lost in zip(at.tolist(), keys.tolist(), cost.tolist(), strict=True):
            if lost < most[member]:
                every[key].add(member)
        units = dict(zip(at.tolist(), cost.tolist(), strict=True))
        expected = {frozenset(m) for m in every.values() if enough(problem, m, most, units, beyond)}
        assert expected <= found.get(i, set()) <= {frozenset(m) for m in every.values()}


def enough(problem: LocalProblem, members: set[int], most: dict[int, int], units: dict[int, int], beyond: bool) -> bool:
    """What a scan must not leave out."""
    rows = {m: min(int(problem.rows[m]), problem.k) for m in members}
    if not beyond:
        return sum(rows.values()) >= problem.k
    cost = units[min(members)]
    return sum(n * (most[m] - cost) for m, n in rows.items()) > problem.k * cost


def test_most_classes_that_are_too_small_are_left_out() -> None:
    leaves = 1000
    one = np.ones(leaves, dtype=np.int64)
    column = Attribute((np.arange(leaves), 0 * one), (one, leaves * one), Fraction(1))
    problem = LocalProblem(np.arange(leaves)[None], one, (column,), 2, 0)
    grid = make_grid(problem)
    nodes = every_node(grid, problem.rows)
    end, batch = Scan(grid, nodes, np.arange(leaves), leaves * (grid.row + one), Least(one, 2)).batch(0)
    assert end == len(nodes) == 2
    assert batch.classes.sizes.max() == leaves
    assert len(batch.classes.first) < leaves // 10
