"""`search.blunt` of local recoding: classes raised by secret thresholds. Pure but for the bits that it is given.

A class of n rows is released at its cell (levels and labels) only if n is at least k plus a geometric amount, drawn for
the cell; else (unless labels of two layers are equal in it) one of its columns, drawn evenly of those below their top,
is raised by a level, and the new cell has a threshold of its own. The bits are the operating system's, and are
forgotten.

*What it proves.* Every class keeps all its rows, and classes that come to look alike are one: so k holds for each, and
a criterion that holds of two classes holds of both together (l, δ and β are of shares, t is convex, and the rows that
fit what m-concealing calls known only grow); what is written is verified as always. A class of any size may be raised,
and any number of times: so that the members of a class do not agree on a lower level, and that a class has fewer than k
rows of each finer value, are facts no more.

*What it only makes harder.* Something else may stay certain to who knows every step of the algorithm: the tests list
all sources of small tables, with every draw. There the certainty that each finer value is there is gone, and how many
rows have each is certain of at most a ninth of the classes' columns of which it was. A class of many more rows than k
is raised seldom (with probability amount^(n - k + 1)), so what is likely of it stays likely. Who has several releases,
each drawn anew, learns more; so a ledger refuses it.

Source: Cohen 2022 names thresholds that are not known as what hinders downcoding.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sqldeid.tables.local.layers import SUPPRESSED, Layers, ordered, top_of
from sqldeid.tables.model.lattice import Node


class Bits(Protocol):
    """Where draws come from: `random.SystemRandom`, or a seeded one in tests."""

    def randrange(self, stop: int, /) -> int:
        """A whole number from 0 to below `stop`, each alike."""

    def random(self) -> float:
        """A number from 0 to below 1."""


def blunted(layers: Layers, amount: float, bits: Bits) -> Layers:
    """The layers with classes raised.

    Parameters
    ----------
    amount
        Probability that a threshold is one more than it would be, again and again: 0 … 1.
    """
    problem, top = layers.problem, top_of(layers.problem)
    here = np.flatnonzero(layers.released)
    highest = np.zeros((len(top), len(layers.sizes)), dtype=np.int64)
    for j, levels in enumerate(layers.levels):
        np.maximum.at(highest[j], layers.owner[here], levels[here])
    nodes = [
        _raised(tuple(node), int(n), problem.k, top, amount, bits)
        for node, n in zip(highest.T.tolist(), layers.sizes.tolist(), strict=True)
    ]
    used = sorted({*nodes, *layers.nodes})
    place = {node: i for i, node in enumerate(used)}
    number = np.array([*(place[node] for node in nodes), SUPPRESSED], dtype=np.int64)[layers.owner]
    as_it_is = np.array([*(place[node] for node in layers.nodes), SUPPRESSED], dtype=np.int64)[layers.layer]
    mixed = np.zeros(len(nodes) + 1, dtype=np.bool_)  # labels that are equal at two levels may differ at a third
    mixed[layers.owner[here][(layers.levels[:, here] != highest[:, layers.owner[here]]).any(axis=0)]] = True
    return ordered(problem, used, np.where(mixed[layers.owner], as_it_is, number))


def _raised(node: Node, rows: int, k: int, top: Node, amount: float, bits: Bits) -> Node:
    """The node at which a class of so many rows is released."""
    while (below := [j for j, x in enumerate(node) if x < top[j]]) and rows < k + _geometric(amount, bits):
        j = below[bits.randrange(len(below))]
        node = (*node[:j], node[j] + 1, *node[j + 1 :])
    return node


def _geometric(amount: float, bits: Bits) -> int:
    """How often in a row something happens that has this probability."""
    found = 0
    while bits.random() < amount:
        found += 1
    return found
