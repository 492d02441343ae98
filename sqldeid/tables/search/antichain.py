"""Antichains of lattice nodes in a prefix tree: a property that generalisations, or specialisations, inherit.

Source: Prasser et al. 2016, "Efficient management of predictive properties".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqldeid.tables.model.lattice import Node


class _Branch:
    """One level of one attribute; `rank` is the least sum of levels of the members below it."""

    __slots__ = ("children", "rank")

    def __init__(self, rank: int) -> None:
        self.children: dict[int, _Branch] = {}
        self.rank = rank


class Antichain:
    """Nodes known to have a property, none of them implied by another.

    Parameters
    ----------
    upwards
        True where generalisations inherit the property (minimum rank per branch), False where specialisations do
        (maximum rank per branch: the levels are stored with their sign turned).
    """

    def __init__(self, *, upwards: bool) -> None:
        self._sign = 1 if upwards else -1
        self._root = _Branch(0)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Node]:
        return (tuple(self._sign * x for x in path) for path in _paths(self._root, ()))

    def covers(self, node: Node) -> bool:
        """Whether a member, or `node` itself as a member, implies the property for `node`."""
        turned = self._turn(node)
        return bool(self._root.children) and _reaches(self._root, turned, 0, sum(turned))

    def add(self, node: Node) -> bool:
        """Remember `node`, drop the members it implies; False where it is implied already."""
        if self.covers(node):
            return False
        turned = self._turn(node)
        self._size += 1 - _remove(self._root, turned, 0)
        branch, rank = self._root, sum(turned)
        for level in turned:
            branch = branch.children.setdefault(level, _Branch(rank))
            branch.rank = min(branch.rank, rank)
        return True

    def _turn(self, node: Node) -> Node:
        return tuple(self._sign * x for x in node)


Store = Callable[..., Antichain]
"""Makes a store of nodes with a property: `store(upwards=…)`."""


def _paths(branch: _Branch, path: Node) -> Iterator[Node]:
    if not branch.children and path:
        yield path
    for level, child in branch.children.items():
        yield from _paths(child, (*path, level))


def _reaches(branch: _Branch, node: Node, depth: int, rank: int) -> bool:
    """Whether a member below `branch` is ≼ `node` in the attributes from `depth` on."""
    if depth == len(node):
        return True
    return any(
        level <= node[depth] and child.rank <= rank and _reaches(child, node, depth + 1, rank)
        for level, child in branch.children.items()
    )


def _remove(branch: _Branch, node: Node, depth: int) -> int:
    """Drop the members below `branch` that are ≽ `node`; how many there were."""
    if depth == len(node):
        return 1
    removed = 0
    for level in [level for level in branch.children if level >= node[depth]]:
        child = branch.children[level]
        removed += _remove(child, node, depth + 1)
        if not child.children:
            del branch.children[level]
    return removed
