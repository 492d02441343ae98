"""Open classes among rows that their own classes can spare: what peeling took early may do better together. Pure.

A class that has more than k rows can let some of them go. At each node, those that would lose less there than they do
form classes; one that has k rows is opened, the most saving one first, as long as those that it takes them from keep k
rows and every criterion.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.nodes import Nodes
from sqldeid.tables.peel.scan import Scan
from sqldeid.tables.peel.state import State


def open_classes(state: State, judge: Judge, owner: Ints, nodes: Nodes, clock: Clock) -> int:
    """Open classes, as numbers in `owner` beyond those that are there; how many were opened.

    Parameters
    ----------
    owner
        The class of each combination, -1 for those that are suppressed; shape (combinations,).
    """
    size = np.bincount(owner[owner >= 0], weights=state.rows[owner >= 0]).astype(np.int64)
    room = size - judge.k
    spare = np.flatnonzero((owner >= 0) & (room[owner] >= state.rows) & (state.cost > 0))
    opened, first = 0, len(size)
    for _, members in _candidates(state, judge, spare, nodes, clock):
        taken = _taken(state, judge, owner, room, members)
        if len(taken):
            np.subtract.at(room, owner[taken], state.rows[taken])
            owner[taken] = first + opened
            opened += 1
            room = np.append(room, 0)
    return opened


def _candidates(state: State, judge: Judge, spare: Ints, nodes: Nodes, clock: Clock) -> list[tuple[int, Ints]]:
    """Classes that could be opened, each with the one that it saves most for first; the most saving class first."""
    if not len(spare):
        return []
    scan, at, saving = Scan(state.grid, nodes, spare, state.cost[spare]), 0, []
    while at < len(nodes) and not clock.over():
        at, found = scan.batch(at)
        rows = state.rows[scan.at]
        found = found.part(found.classes.total(rows) >= judge.k)
        saved = found.classes.total(rows * scan.limit) - found.cost * found.classes.total(rows)
        ends = np.append(found.classes.first, len(found.classes.members))
        for i, units in enumerate(saved.tolist()):
            saving.append((-units, scan.at[found.classes.members[ends[i] : ends[i + 1]]]))
    return sorted(saving, key=lambda one: (one[0], one[1].tolist()))


def _taken(state: State, judge: Judge, owner: Ints, room: Ints, members: Ints) -> Ints:
    """Those of some combinations that their classes can spare together; none where they are too few."""
    taken, used = [], dict[int, int]()
    for i, own, rows in zip(members.tolist(), owner[members].tolist(), state.rows[members].tolist(), strict=True):
        if used.get(own, 0) + rows <= room[own]:
            used[own] = used.get(own, 0) + rows
            taken.append(i)
    found = np.array(taken, dtype=np.int64)
    if int(state.rows[found].sum()) < judge.k or (judge.columns and not _allowed(judge, owner, found)):
        return found[:0]
    return found


def _allowed(judge: Judge, owner: Ints, taken: Ints) -> bool:
    """Whether the new class and those that it takes its rows from pass."""
    touched = np.flatnonzero(np.isin(owner, owner[taken]))
    after = np.where(np.isin(touched, taken), -1, owner[touched]) + 1
    return bool(judge.passing(Classes.of(after, touched)).all())
