"""Nodes looked at in batches against one node after the other."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.peel import LocalProblem, scan
from sqldeid.tables.peel.grid import make_grid
from sqldeid.tables.peel.nodes import every_node
from sqldeid.tables.peel.scan import Scan
from tests.support.local_problems import problems


@pytest.mark.parametrize("packed", [True, False])
@settings(deadline=None)
@given(problem=problems(), data=st.data())
def test_a_batch_finds_the_classes_of_each_node(problem: LocalProblem, packed: bool, data: st.DataObject) -> None:
    grid = make_grid(problem)
    nodes = every_node(grid, problem.rows)
    size = len(problem.rows)
    at = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1))), dtype=np.int64)
    limit = np.array([data.draw(st.integers(0, 2 * grid.row)) for _ in at], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_CELLS", data.draw(st.integers(1, 200)))
        if not packed:
            patch.setattr(scan, "_compact", lambda *_: None)
        looked, start, found = Scan(grid, nodes, at, limit), 0, {}
        while start < len(nodes):
            start, batch = looked.batch(start)
            heads = looked.at[batch.classes.members[batch.classes.first]]
            for i, head, units in zip(batch.node.tolist(), heads, batch.cost.tolist(), strict=True):
                assert units == int(grid.cost(nodes.node(i), np.array([head]))[0])
            for i, classes in batch.by_node():
                found[i] = {frozenset(looked.at[m].tolist()) for m in np.split(classes.members, classes.first[1:])}
    for i, node in enumerate(nodes.every()):
        keys, cost = grid.keys(node, at), grid.cost(node, at)
        expected: dict[int, set[int]] = defaultdict(set)
        for member, key, lost, most in zip(at.tolist(), keys.tolist(), cost.tolist(), limit.tolist(), strict=True):
            if lost < most:
                expected[key].add(member)
        assert found.get(i, set()) == {frozenset(members) for members in expected.values()}
