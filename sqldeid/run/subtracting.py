"""Whether the classes of two releases can be added and subtracted down to fewer than k persons. Pure.

The classes of both are the nodes of a graph, and persons its edges: one who is in a class of each lies between the two,
and one who is in one release alone between his class and one more node, which no sum counts. A sum of classes, each
added or subtracted as often as one likes, is about the persons whose two ends do not cancel: a cut of this graph. So
the fewest persons that such a sum can be about are the lightest cut of any of its connected parts.

Source
------
Nagamochi and Ibaraki 1992 (`_contract_light`): where edges are scanned in the order of greatest adjacency, the ends of
one up to which the weight reached k cannot be parted by less than k, and are taken for one node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush

Graph = dict[int, dict[int, int]]
"""Neighbours of each node, with the persons between them; symmetric."""


def can_be_subtracted(cells: Iterable[tuple[int | None, int | None, int]], k: int) -> bool:
    """Whether some sum and difference of classes is about 1 to k - 1 persons.

    Parameters
    ----------
    cells
        A class of the one release, a class of the other, and their common persons; None where these are in no class.
    """
    graph = _graph_of(cells)
    while graph:
        graph = _contract_heavy(graph, k)
        if any(0 < sum(beside.values()) < k for beside in graph.values()):
            return True
        graph = _contract_light(graph, k)
    return False


def _graph_of(cells: Iterable[tuple[int | None, int | None, int]]) -> Graph:
    nodes: dict[tuple[str, int | None], int] = {("nobody", None): 0}
    graph: Graph = defaultdict(lambda: defaultdict(int))
    for here, there, n in cells:
        ends = [
            nodes.setdefault((side, number) if number is not None else ("nobody", None), len(nodes))
            for side, number in (("here", here), ("there", there))
        ]
        if ends[0] != ends[1] and n > 0:
            graph[ends[0]][ends[1]] += n
            graph[ends[1]][ends[0]] += n
    return graph


def _contract_heavy(graph: Graph, k: int) -> Graph:
    """The graph with nodes taken for one where k persons and more lie between them, until none are."""
    while True:
        heavy = [(a, b) for a, beside in graph.items() for b, n in beside.items() if n >= k and a < b]
        if not heavy:
            return graph
        graph = _merged(graph, heavy)


def _contract_light(graph: Graph, k: int) -> Graph:
    """The graph with nodes taken for one that less than k cannot part; at least two of each connected part are."""
    together: list[tuple[int, int]] = []
    reached: dict[int, int] = dict.fromkeys(graph, 0)
    scanned: set[int] = set()
    for start in graph:
        heap = [(0, start)]
        while heap:
            _, node = heappop(heap)
            if node in scanned:
                continue
            scanned.add(node)
            for other, n in graph[node].items():
                if other not in scanned:
                    reached[other] += n
                    if reached[other] >= k:
                        together.append((node, other))
                    heappush(heap, (-reached[other], other))
    return _merged(graph, together)


def _merged(graph: Graph, pairs: Iterable[tuple[int, int]]) -> Graph:
    """The graph with the nodes of each pair taken for one; nodes without edges are left out."""
    root = {node: node for node in graph}

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for a, b in pairs:
        root[find(a)] = find(b)
    merged: Graph = defaultdict(lambda: defaultdict(int))
    for a, beside in graph.items():
        for b, n in beside.items():
            if find(a) != find(b):
                merged[find(a)][find(b)] += n
    return merged
