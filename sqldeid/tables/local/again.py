"""Classes of a release that follows earlier ones of the same persons: whoever was released keeps levels and class.

Classes formed anew would put nearly everybody among other people, and the ledger would hold nearly everybody back. So
each combination that persons of the last release have is released at their levels of then, where its class still meets
all criteria. The others are put into classes among themselves; whom that leaves over waits. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import NoSolutionError
from sqldeid.tables.local.layers import SUPPRESSED, Layers, holding, ordered, without_failing
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel import LocalProblem, partition
from sqldeid.tables.peel.problem import Judged


def kept_layers(problem: LocalProblem, combination: Ints, node: Ints, nodes: Sequence[Node]) -> Layers:
    """The layers of combinations as their persons were last released, of the others among themselves.

    Parameters
    ----------
    combination, node
        Of each person who was released last: the combination now, and the place in `nodes` of the levels of then.
    """
    layer = _told_most(len(problem.rows), combination, node)
    kept = without_failing(ordered(problem, nodes, layer))
    left = np.flatnonzero(~kept.released)
    if not len(left):
        return kept
    more, at = _among_themselves(_part(problem, left), kept)
    layer = kept.layer.copy()
    layer[left] = np.where(at == SUPPRESSED, SUPPRESSED, at + len(kept.nodes))
    return without_failing(ordered(problem, (*kept.nodes, *more), layer))


def _told_most(combinations: int, combination: Ints, node: Ints) -> Ints:
    """The node that most persons of each combination had, of these the first; `SUPPRESSED` where nobody had one."""
    pairs, votes = np.unique(np.stack([combination, node]), axis=1, return_counts=True)
    order = np.lexsort((-pairs[1], votes))
    found = np.full(combinations, SUPPRESSED, dtype=np.int64)
    found[pairs[0][order]] = pairs[1][order]  # the last one written has most votes
    return found


def _part(problem: LocalProblem, at: Ints) -> LocalProblem:
    """Some combinations by themselves; t is measured against the whole table all the same."""
    place = np.full(len(problem.rows), SUPPRESSED, dtype=np.int64)
    place[at] = np.arange(len(at))
    rows = problem.rows[at]
    criteria = tuple(_judged_part(judged, place) for judged in problem.criteria)
    return replace(problem, leaf=problem.leaf[:, at], rows=rows, criteria=criteria, allowed=int(rows.sum()))


def _judged_part(judged: Judged, place: Ints) -> Judged:
    own = place[judged.combination]
    there = own != SUPPRESSED
    return replace(judged, combination=own[there], value=judged.value[there], rows=judged.rows[there])


def _among_themselves(problem: LocalProblem, kept: Layers) -> tuple[tuple[Node, ...], Ints]:
    """Nodes, and the place of each combination's among them; where layers are limited, the nodes that are in use."""
    nobody = np.full(len(problem.rows), SUPPRESSED, dtype=np.int64)
    if problem.rows.sum() < problem.k:
        return (), nobody
    if problem.layers is not None and kept.nodes:
        return kept.nodes, _at_nodes(problem, kept.nodes)
    try:
        found = partition(problem)
    except NoSolutionError:
        return (), nobody
    return found.nodes, found.layer


def _at_nodes(problem: LocalProblem, nodes: Sequence[Node]) -> Ints:
    """The first of the nodes at which each combination is in a class of those left that meets all criteria."""
    layer = np.full(len(problem.rows), SUPPRESSED, dtype=np.int64)
    for place in range(len(nodes)):
        left = layer == SUPPRESSED
        tried = ordered(problem, nodes, np.where(left, place, SUPPRESSED))
        if left.any():
            layer[left & holding(tried)[tried.owner]] = place
    return layer


def split(found: Layers, admitted: Ints) -> tuple[Layers, Ints]:
    """The layers with the rows of each combination that go out, the others beside them as suppressed.

    Parameters
    ----------
    admitted
        Rows of each combination that go out.

    Returns
    -------
    The layers of these, and which combination of `found` each is of.
    """
    problem, out = found.problem, np.where(found.released, admitted, 0)
    there = np.concatenate([np.flatnonzero(out), np.flatnonzero(problem.rows - out)])
    gone: Flags = np.arange(len(there)) >= np.count_nonzero(out)
    rows = np.where(gone, (problem.rows - out)[there], out[there])
    parted = replace(problem, leaf=problem.leaf[:, there], rows=rows, criteria=())
    layer = np.where(gone, SUPPRESSED, found.layer[there])
    return ordered(parted, found.nodes, layer), there
