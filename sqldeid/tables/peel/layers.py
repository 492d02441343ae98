"""A release that uses few nodes: chosen by what each saves beside the others, then peeled anew with these alone. Pure.

What a set of nodes saves, each combination taken at the cheapest node where its class in the whole source passes, has
falling returns: so the node that saves most next is found without asking all again (Minoux 1978), and the choice saves
at least 1 - 1/e of the best choice from the same candidates (Nemhauser, Wolsey and Fisher 1978). What peeling takes
from later nodes is not in that sum.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.clustering import high_nodes
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import LISTED, Nodes, every_node
from sqldeid.tables.peel.peeling import peel
from sqldeid.tables.peel.state import State

_BESIDE = 300
"""Nodes of the lattice, evenly spread, among which layers are chosen beside those of the free release."""


def in_layers(free: State, judge: Judge, most: int, allowed: int, clock: Clock) -> State | None:
    """A release of at most `most` nodes, the better one with the top and without; None where neither is allowed.

    Parameters
    ----------
    free
        A release that uses any number of nodes.
    """
    candidates = _candidates(free)
    found = [s for s in [_of_large_rounds(free, judge, most, allowed)] if s is not None]
    for with_top in (True, False):
        chosen = _chosen(free, judge, candidates, most, with_top, clock)
        state = State(free.grid, free.rows)
        peel(state, judge, Nodes.of(free.grid, np.array(chosen), free.rows), Clock(None))
        if with_top:
            _raise_to_top(state, judge, allowed)
        if int(state.rows[state.left].sum()) <= allowed:
            found.append(state)
    return min(found, key=lambda state: state.units, default=None)


def _of_large_rounds(free: State, judge: Judge, most: int, allowed: int) -> State | None:
    """Peel where only nodes that release enough rows are used: the fewest rows that keep to the layers, by halving."""
    if free.grid.lattice.size > LISTED:
        return None
    nodes = every_node(free.grid, free.rows)
    few, many, best = 1, int(free.rows.sum()) + 1, None
    while many - few > max(few // 16, 1):
        middle = (few + many) // 2 if many < 4 * few else min(max(2 * few, judge.k), many - 1)
        state = State(free.grid, free.rows)
        peel(state, judge, nodes, Clock(None), least_rows=middle)
        _raise_to_top(state, judge, allowed)
        left = int(state.rows[state.left].sum())
        if left <= allowed and len(np.unique(state.at[state.at >= 0])) <= most:
            many = middle
            best = state if best is None or state.units <= best.units else best
        else:
            few = middle
    return best


def _candidates(free: State) -> list[Node]:
    """Nodes of the free release, some from the top down, and some from the whole lattice where that can be listed."""
    nodes = {*(free.nodes[i] for i in np.unique(free.at[free.at >= 0]).tolist())}
    nodes |= set(high_nodes(free.grid, free.rows).every())
    if free.grid.lattice.size <= LISTED:
        every = every_node(free.grid, free.rows)
        nodes |= {every.node(i) for i in range(0, len(every), max(len(every) // _BESIDE, 1))}
    return sorted(nodes - {free.grid.lattice.top})


def _chosen(free: State, judge: Judge, candidates: list[Node], most: int, with_top: bool, clock: Clock) -> list[Node]:
    """Greedily the nodes that save most."""
    grid, top = free.grid, free.grid.lattice.top
    cost = np.full(len(free.rows), grid.row, dtype=np.int64)
    if with_top:
        cost = grid.cost(top, np.arange(len(cost)))
    chosen = [top] if with_top else []
    heap = [(-(2**62), node) for node in candidates]
    heapify(heap)
    current: dict[Node, int] = {}
    while heap and len(chosen) < most and not (clock.over() and chosen):
        saved, node = heappop(heap)
        if current.get(node) == len(chosen):
            if saved == 0:
                break
            chosen.append(node)
            members = _passing(free, judge, node)
            cost[members] = np.minimum(cost[members], grid.cost(node, members))
            continue
        members = _passing(free, judge, node)
        gain = np.maximum(cost[members] - grid.cost(node, members), 0)
        current[node] = len(chosen)
        heappush(heap, (-int((gain * free.rows[members]).sum()), node))
    return chosen or [top]


def _passing(free: State, judge: Judge, node: Node) -> Ints:
    """Combinations whose class in the whole source passes at a node."""
    classes = Classes.of(free.grid.keys(node))
    return classes.part(judge.passing(classes)).members


def _raise_to_top(state: State, judge: Judge, allowed: int) -> None:
    """Join what is left with classes raised to the top, those first that this costs least, until it passes."""
    left, top = state.left, state.grid.lattice.top
    if not len(left):
        return
    kept = state.at.copy(), state.cost.copy(), state.units
    may_go = int(state.rows[left].sum()) <= allowed
    classes = state.classes()
    raised = state.grid.cost(top, classes.members[classes.first]) - state.cost[classes.members[classes.first]]
    order = np.argsort(raised * classes.total(state.rows), kind="stable").tolist()
    members = np.split(classes.members, classes.first[1:])
    group = left
    for c in [-1, *order]:
        group = group if c < 0 else np.append(group, members[c])
        if _one_passes(judge, group):
            state.release(top, group)
            break
    if may_go and (len(state.left) or state.units >= kept[2]):
        state.at, state.cost = kept[:2]


def _one_passes(judge: Judge, members: Ints) -> bool:
    passing: Flags = judge.passing(Classes(members, np.zeros(1, dtype=np.int64)))
    return bool(passing[0])
