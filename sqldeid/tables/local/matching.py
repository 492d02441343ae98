"""Whether every released row can be given a row of the source, each to one, that its labels are true of. Pure.

Nothing tells which row of the source a released one was. So the question is whether there is *any* way to tell: a flow
from the source's combinations to the released classes that their labels may stand for, at the levels of one layer. Rows
go together only where all else that is released of them agrees (their *mark*). A flow that serves every released row is
such a way; where there is none, some row is not of the source, or stands for somebody twice.

Source
------
Hall 1935; Ford and Fulkerson 1956; `scipy.sparse.csgraph.maximum_flow` (Dinic 1970).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.lattice import Node


@dataclass(frozen=True, slots=True)
class Shown:
    """What one quasi-identifying column shows of its leaves.

    Parameters
    ----------
    label
        By level in use, the number of each leaf's label; shape (leaves,). Equal labels have one number.
    """

    label: dict[int, Ints]

    def at(self, level: int, numbers: Ints) -> Flags:
        """Which labels are some leaf's at a level."""
        return np.asarray(np.isin(numbers, self.label[level]))


@dataclass(frozen=True, slots=True)
class Marked:
    """Rows that agree in what classes are told apart by and in their mark.

    Parameters
    ----------
    number
        Number of leaf (source) or label (release) in each column; shape (columns, groups).
    mark, rows
        Shape (groups,).
    """

    number: Ints
    mark: Ints
    rows: Ints

    def folded(self) -> tuple[Ints, Ints]:
        """The distinct tuples of numbers, of shape (columns, tuples), and which one each group has."""
        found, owner = np.unique(self.number, axis=1, return_inverse=True)
        return found, owner.reshape(-1).astype(np.int64)


class TooManyError(Exception):
    """More classes may stand for the source's combinations than can be looked at."""


def unmatched(source: Marked, release: Marked, shown: Sequence[Shown], nodes: Sequence[Node], most: int) -> int:
    """Released rows that are left over where as many as possible are given a row of the source; 0 proves them.

    Parameters
    ----------
    most
        Pairs of combination and class that memory has room for.

    Raises
    ------
    TooManyError
        If there are more.
    """
    combinations, of_source = source.folded()
    classes, of_release = release.folded()
    pairs: list[Ints] = []
    for found in _standing(combinations, classes, shown, nodes):
        pairs.append(found)
        if sum(p.shape[1] for p in pairs) > most:
            raise TooManyError
    joined = np.unique(np.concatenate([np.empty((2, 0), dtype=np.int64), *pairs], axis=1), axis=1)
    left, right = _by_mark(joined, source.mark, of_source, release.mark, of_release, most)
    return int(release.rows.sum()) - _flow(source.rows, release.rows, left, right)


def consistent(classes: Ints, shown: Sequence[Shown], node: Node) -> Flags:
    """Which classes show labels of a layer's levels in every column."""
    found = np.ones(classes.shape[1], dtype=np.bool_)
    for column, labels, level in zip(shown, classes, node, strict=True):
        found &= column.at(level, labels)
    return found


def _standing(combinations: Ints, classes: Ints, shown: Sequence[Shown], nodes: Sequence[Node]) -> Iterator[Ints]:
    """Combination and class, pair by pair, of each layer; shape (2, pairs).

    Cost: for each layer a look at every combination in its finest column, and at those that are left in the others.
    """
    for node in nodes:
        mine = np.flatnonzero(consistent(classes, shown, node))
        if not len(mine):
            continue
        left = np.arange(combinations.shape[1])
        number, asked = np.zeros(len(left), dtype=np.int64), np.zeros(len(mine), dtype=np.int64)
        for j in sorted(range(len(node)), key=lambda j: node[j]):
            labels = shown[j].label[node[j]][combinations[j][left]]
            number, asked, kept = _narrowed(number, labels, asked, classes[j][mine])
            left, number = left[kept], number[kept]
        order = np.argsort(asked, kind="stable")
        yield np.stack([left, mine[order[np.searchsorted(asked[order], number)]]])


def _narrowed(number: Ints, labels: Ints, asked: Ints, wanted: Ints) -> tuple[Ints, Ints, Flags]:
    """Tuples of one more column, numbered by those that are asked for; which of the others are among these."""
    width = int(max(labels.max(initial=0), wanted.max(initial=0))) + 1
    key, given = asked * width + wanted, number * width + labels
    found, again = np.unique(key, return_inverse=True)
    place = np.minimum(np.searchsorted(found, given), len(found) - 1)
    return place, again.reshape(-1).astype(np.int64), np.asarray(found[place] == given)


def _by_mark(
    pairs: Ints, mark: Ints, of_source: Ints, shown_mark: Ints, of_release: Ints, most: int
) -> tuple[Ints, Ints]:
    """Groups of the source and of the release with one mark, of which the combination may be shown by the class."""
    marks = np.unique(np.concatenate([mark, shown_mark]))
    own, theirs = np.searchsorted(marks, mark), np.searchsorted(marks, shown_mark)
    of_mark = int((np.bincount(own, minlength=len(marks)) * np.bincount(theirs, minlength=len(marks))).sum())
    split = np.bincount(of_source, minlength=1)
    of_pair = int(split[pairs[0]].sum()) if pairs.shape[1] else 0
    if min(of_mark, of_pair) > most:
        raise TooManyError
    if of_mark <= of_pair:
        left, right = _joined(own, theirs)
        width = int(of_release.max(initial=0)) + 1
        there = np.isin(of_source[left] * width + of_release[right], pairs[0] * width + pairs[1])
        return left[there], right[there]
    at, left = _joined(pairs[0], of_source)
    width = len(marks)
    keys = of_release * width + theirs  # one group of the release has them
    order = np.argsort(keys, kind="stable")
    wanted = pairs[1][at] * width + own[left]
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    there = keys[order][place] == wanted
    return left[there], order[place[there]]


def _joined(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Positions in both of equal numbers, each pair once."""
    order = np.argsort(second, kind="stable")
    begin = np.searchsorted(second[order], first, side="left")
    count = np.searchsorted(second[order], first, side="right") - begin
    left = np.repeat(np.arange(len(first)), count)
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return left, order[np.repeat(begin, count) + within]


def _flow(given: Ints, taken: Ints, left: Ints, right: Ints) -> int:
    """Most rows that go from groups of the source to groups of the release."""
    if not len(left):
        return 0
    n, m = len(given), len(taken)
    start, end = n + m, n + m + 1
    tail = np.concatenate([np.full(n, start), left, n + np.arange(m)])
    head = np.concatenate([np.arange(n), n + right, np.full(m, end)])
    room = np.concatenate([given, np.minimum(given[left], taken[right]), taken]).astype(np.int32)
    places = (tail.astype(np.int32), head.astype(np.int32))  # of SciPy's flow, as the rows are
    graph = csr_array((room, places), shape=(n + m + 2, n + m + 2))
    return int(maximum_flow(graph, start, end).flow_value)
