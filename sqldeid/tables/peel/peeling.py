"""Peel classes off the lattice: nodes from the least loss up, each releases what is left and large enough there.

Nodes are looked at in batches (`scan`): where no class of a batch was large enough before any of its nodes released
something, none is afterwards, for what is left only shrinks. So only the others are looked at one by one, and what is
released is what it would be without batches.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.bins import Least
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.scan import Found, Scan
from sqldeid.tables.peel.state import State

_FEWER = 0.9
"""Share of the combinations of a scan that are left, below which another begins with these."""


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
    most = np.full(len(state.at), 2 * state.grid.row) if share is None else share
    at, left = 0, state.left
    while at < len(nodes) and int(state.rows[left].sum()) >= judge.k and not clock.over():
        least, size = Least(state.rows, judge.k), len(left)
        scan = Scan(state.grid, nodes, left, most[left] + 1, least)
        while at < len(nodes) and len(left) > _FEWER * size and not clock.over():
            at, found = scan.batch(at)
            if _release(state, judge, nodes, scan, found, least_rows):
                left = left[state.at[left] < 0]


def _release(state: State, judge: Judge, nodes: Nodes, scan: Scan, found: Found, least_rows: int) -> bool:
    """Release what passes at each node of a batch in turn; whether there was any."""
    rows = np.where(state.at[scan.at] < 0, state.rows[scan.at], 0)
    any_ = False
    for i, classes in found.part(found.classes.total(rows) >= judge.k).by_node():
        members = scan.at[classes.members]
        open_ = state.at[members] < 0
        classes = Classes.of(classes.owner()[open_], members[open_])
        released = classes.part(judge.passing(classes)).members
        if len(released) and int(state.rows[released].sum()) >= least_rows:
            state.release(nodes.node(i), released)
            any_ = True
    return any_
