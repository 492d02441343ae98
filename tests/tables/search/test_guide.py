"""The order of nodes by bits is that by levels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.tables.search.guide import _hull, _steps, _within


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=12).map(tuple),
    count=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_node_is_within_another_if_no_level_is_higher(shape, count, seed):
    rng = np.random.default_rng(seed)
    opens, nodes = (np.stack([rng.integers(0, height, n) for height in shape], axis=1) for n in count)
    taken, own = _steps(opens, shape), _steps(nodes, shape)
    assert (_within(taken, own) == (opens[None, :] <= nodes[:, None]).all(axis=2)).all()
    assert (_within(~taken, ~own) == (opens[None, :] >= nodes[:, None]).all(axis=2)).all()


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=6).map(tuple),
    count=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_box_around_open_nodes_is_the_smallest(shape, count, seed):
    rng = np.random.default_rng(seed)
    nodes = np.stack([rng.integers(0, height, count) for height in shape])
    flags = np.zeros(shape, dtype=np.bool_)
    flags[tuple(nodes)] = True
    assert [(s.start, s.stop) for s in _hull(flags)] == [(axis.min(), axis.max() + 1) for axis in nodes]
