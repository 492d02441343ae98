"""What moves between the classes of a block cost, against classes that are priced anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.tables.peel import LocalProblem
from sqldeid.tables.peel.block import NEVER, Block, Room
from sqldeid.tables.peel.grid import Grid, make_grid
from tests.support.local_problems import problems


def lost(grid: Grid, rows: list[int], members: list[int]) -> int:
    """Units of all rows of a class, at the lowest levels at which its members agree."""
    units = 0
    for groups, price in zip(grid.groups, grid.units, strict=True):
        level = next(x for x, group in enumerate(groups) if len({group[m] for m in members}) == 1)
        units += int(price[level, members[0]])
    return units * sum(rows[m] for m in members)


@settings(deadline=None)
@given(problems(most_combinations=9), st.data())
def test_moves_cost_what_the_classes_cost_afterwards(problem: LocalProblem, data: st.DataObject) -> None:
    grid, rows, room = make_grid(problem), problem.rows.tolist(), Room()
    for _ in range(2):  # the second block finds what the first one left in the room
        size = data.draw(st.integers(1, len(rows)))
        order = np.array(data.draw(st.permutations(range(len(rows)))))[:size]
        starts = data.draw(st.lists(st.booleans(), min_size=size - 1, max_size=size - 1))
        owner = np.cumsum([0, *starts])
        classes = [order[owner == c].tolist() for c in range(int(owner[-1]) + 1)]
        block = Block(grid, problem.rows, problem.k, order, owner, room)
        joining = block.joining().tolist()
        for i, m in enumerate(order.tolist()):
            for c, mine in enumerate(classes):
                more = NEVER if c == owner[i] else lost(grid, rows, [*mine, m]) - lost(grid, rows, mine)
                assert joining[i][c] == more
        replacing, leaving = block.replacing().tolist(), block.leaving().tolist()
        for j, gone in enumerate(order.tolist()):
            mine = classes[owner[j]]
            others = [x for x in mine if x != gone]
            enough = len(others) > 0 and sum(rows[x] for x in others) >= problem.k
            assert leaving[j] == (lost(grid, rows, others) - lost(grid, rows, mine) if enough else NEVER)
            for i, m in enumerate(order.tolist()):
                new = [*others, m]
                possible = owner[i] != owner[j] and others and sum(rows[x] for x in new) >= problem.k
                assert replacing[i][j] == (lost(grid, rows, new) - lost(grid, rows, mine) if possible else NEVER)
        within = [(i, c) for c, of in enumerate(owner.tolist()) for i in np.flatnonzero(owner == of).tolist()]
        assert list(zip(*(x.tolist() for x in block.inside(owner)), strict=True)) == within
