"""Peel classes off the lattice: nodes from the least loss up, each releases what is left and large enough there."""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.state import State


def peel(
    state: State, judge: Judge, nodes: Nodes, clock: Clock, share: Ints | None = None, least_rows: int = 0
) -> None:
    """Release at each node in turn every class of what is left that passes there.

    Parameters
    ----------
    share
        Only combinations that lose at most their share are released. Done first, this keeps a row from being used up
        in a class that costs it more than it must lose, where another would have taken it; what is left then is
        peeled without.
    least_rows
        Rows below which a node releases nothing.
    """
    left = state.left
    if share is not None:
        left = left[np.argsort(-share[left], kind="stable")]
    for node, masks, least in nodes:
        if not len(left) or clock.over():
            break
        some = left
        if share is not None:
            some = left[: int(np.searchsorted(-share[left], -least, side="right"))]
            some = some[share[some] >= state.grid.cost(node, some)] if len(some) else some
        if int(state.rows[some].sum()) < judge.k:
            continue
        classes = Classes.of(state.grid.masked(masks, some), some)
        passing = judge.passing(classes)
        released = classes.part(passing).members
        if len(released) and int(state.rows[released].sum()) >= least_rows:
            state.release(node, released)
            left = left[state.at[left] < 0]
