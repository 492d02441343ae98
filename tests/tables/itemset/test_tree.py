"""Cuts of a code tree: all of them, and the cheapest, against looking at every choice."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.itemset.tree import CodeTree
from tests.support.examples import examples


@st.composite
def trees(draw: st.DrawFn) -> CodeTree:
    leaves = draw(st.integers(1, 6))
    groups = [np.arange(leaves)]
    for _ in range(draw(st.integers(0, 2))):
        below = int(groups[-1].max()) + 1
        parent = np.array(draw(st.lists(st.integers(0, below - 1), min_size=below, max_size=below)))
        groups.append(np.unique(parent, return_inverse=True)[1][groups[-1]])
    groups.append(np.zeros(leaves, dtype=np.int64))
    return CodeTree.over(groups, np.arange(leaves))


def all_cuts(tree: CodeTree) -> set[tuple[int, ...]]:
    """Every set of nodes that shows each leaf as one of them, by what each leaf is shown as."""
    found = set()
    for marks in range(1, 1 << tree.nodes):
        above = [[int(tree.at(x)[leaf]) for x in range(len(tree.groups))] for leaf in range(len(tree.leaves))]
        shown = [[n for n in dict.fromkeys(line) if marks >> n & 1] for line in above]
        if all(len(one) == 1 for one in shown):
            found.add(tuple(one[0] for one in shown))
    return found


def partition(cut: tuple[int, ...]) -> tuple[int, ...]:
    """Which leaves are shown alike."""
    return tuple(cut.index(n) for n in cut)


@given(trees())
@settings(max_examples=examples(60), deadline=None)
def test_the_cuts_are_all_that_there_are(tree: CodeTree) -> None:
    slow = all_cuts(tree)
    found = [tuple(cut.tolist()) for cut in tree.cuts()]
    assert set(found) <= slow
    assert sorted(map(partition, found)) == sorted(set(map(partition, slow)))
    assert tree.count_cuts(10**6) == len(found)
    assert tree.count_cuts(len(found) - 1) == len(found)
    for cut in slow:
        finest = tuple(tree.finest(np.array(cut)).tolist())
        assert finest in found
        assert partition(finest) == partition(cut)


@given(trees(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_the_cheapest_cut_is_that(tree: CodeTree, data: st.DataObject) -> None:
    costs = np.array(data.draw(st.lists(st.integers(0, 9), min_size=tree.nodes, max_size=tree.nodes)), dtype=float)
    cut, cost = tree.cheapest(costs)
    assert tuple(cut.tolist()) in all_cuts(tree)
    assert cost == costs[np.unique(cut)].sum() == min(costs[list(set(c))].sum() for c in all_cuts(tree))


@given(trees())
@settings(max_examples=examples(40), deadline=None)
def test_neighbours_are_cuts(tree: CodeTree) -> None:
    slow = all_cuts(tree)
    for cut in map(np.array, slow):
        for node in np.unique(cut).tolist():
            assert tuple(tree.split(cut, node).tolist()) in slow
            if node != tree.top:
                assert tuple(tree.merge(cut, int(tree.parent[node])).tolist()) in slow


def test_a_tree_of_some_leaves_counts_these_alone() -> None:
    groups = [np.arange(5), np.array([0, 0, 1, 1, 2]), np.zeros(5, dtype=np.int64)]
    tree = CodeTree.over(groups, np.array([0, 1, 4]))
    assert tree.losses.tolist() == [0, 0, 0, 0.5, 0, 1]
    assert [tree.origin(n) for n in range(tree.nodes)] == [(0, 0), (0, 1), (0, 4), (1, 0), (1, 2), (2, 0)]
