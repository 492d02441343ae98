"""The antichain store equals a plain list of nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqldeid.tables.model.lattice import below
from sqldeid.tables.search.antichain import Antichain

nodes = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=25)


@given(nodes, st.tuples(*[st.integers(0, 3)] * 3), st.booleans())
def test_equals_a_list(added: list[tuple[int, ...]], query: tuple[int, ...], upwards: bool) -> None:
    store = Antichain(upwards=upwards)

    def implies(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return below(a, b) if upwards else below(b, a)

    for i, node in enumerate(added):
        assert store.add(node) == (not any(implies(a, node) for a in added[:i]))
    minimal = {a for a in added if not any(b != a and implies(b, a) for b in added)}
    assert set(store) == minimal
    assert len(store) == len(minimal)
    assert store.covers(query) == any(implies(a, query) for a in added)


def test_the_example_of_the_paper() -> None:
    store = Antichain(upwards=True)
    for node in [(1, 1, 1), (1, 3, 0), (3, 2, 0)]:
        store.add(node)
    assert store.covers((1, 2, 2))
    assert not store.covers((2, 2, 0))
