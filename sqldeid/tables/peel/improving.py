"""Improve a release by moves between classes, block by block, as long as the sum falls.

A block is some hundred combinations whose classes are alike; blocks of a round are cut along another order of columns
each time, so that all neighbours meet. Orders are drawn with a fixed seed: the release stays a function of
quasi-identifying values and the job (and of sensitive values where a criterion reads them).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.block import Block, Room
from sqldeid.tables.peel.clock import Clock
from sqldeid.tables.peel.grid import Classes, Grid
from sqldeid.tables.peel.judge import Judge
from sqldeid.tables.peel.moves import Move, chosen_moves
from sqldeid.tables.peel.state import State

_BLOCK = 500
"""Combinations of a block; the work per combination grows with it."""

_EFFORT = 140
"""Blocks that are looked at where no time is set, beside one more for each two blocks of the table."""

_OPEN = 0.1
"""Share of the mean cost of a row above which a class is looked at."""

_LEAST_GAIN = 0.0003
"""Share of the loss that a round must save, else it is the last."""


@dataclass(frozen=True, slots=True)
class _Moving:
    """What moves change and are judged by.

    Parameters
    ----------
    owner
        Class of each combination, -1 where it is released by no class; shape (combinations,). Moves write it.
    room
        Memory that every block uses again.
    """

    state: State
    judge: Judge
    owner: Ints
    room: Room


def improve(state: State, judge: Judge, clock: Clock) -> None:
    """Move combinations between classes while it pays."""
    classes = state.classes()
    owner = np.full(len(state.at), -1, dtype=np.int64)
    owner[classes.members] = classes.owner()
    random = np.random.default_rng(20020501)
    moving = _Moving(state, judge, owner, Room())
    effort, before = _EFFORT + len(state.at) // (2 * _BLOCK), state.units
    while (effort > 0 or clock.end is not None) and not clock.over():
        most = effort if clock.end is None else len(state.at)
        effort -= _round(moving, random, clock, most)
        settle(state, owner)
        if before - state.units < _LEAST_GAIN * before:
            break
        before = state.units


def settle(state: State, owner: Ints) -> None:
    """Release each class at the lowest node at which its members agree."""
    released = np.flatnonzero(owner >= 0)
    classes = Classes.of(owner[released], released)
    levels = meeting_levels(state.grid, classes)
    state.clear()
    nodes, number = np.unique(levels, axis=1, return_inverse=True)
    by_node = Classes.of(np.repeat(number.reshape(-1), classes.sizes), classes.members)
    for i, start in enumerate(by_node.first.tolist()):
        stop = by_node.first[i + 1] if i + 1 < len(by_node.first) else len(by_node.members)
        node: Node = tuple(nodes[:, i].tolist())
        state.release(node, by_node.members[start:stop])


def meeting_levels(grid: Grid, classes: Classes) -> Ints:
    """The lowest level of each column at which each class agrees; shape (columns, classes)."""
    head = classes.members[classes.first][classes.owner()]
    levels = np.zeros((len(grid.groups), len(classes.first)), dtype=np.int64)
    for j, groups in enumerate(grid.groups):
        for group in groups[:-1]:
            levels[j] += np.logical_or.reduceat(group[classes.members] != group[head], classes.first)
    return levels


def _round(moving: _Moving, random: np.random.Generator, clock: Clock, effort: int) -> int:
    """Look at every block once; how many were looked at."""
    state, owner = moving.state, moving.owner
    open_ = np.flatnonzero((owner >= 0) & (state.cost > _OPEN * state.units / max(int(state.rows.sum()), 1)))
    if not len(open_):
        return effort
    classes = Classes.of(owner[open_], open_)
    blocks = _blocks(state, classes, random)
    for block in blocks[:effort]:
        if clock.over():
            break
        _improve_block(moving, block)
    return len(blocks)


def _blocks(state: State, classes: Classes, random: np.random.Generator) -> list[Classes]:
    """Classes in blocks of those that are alike in the first columns of a drawn order; those that lose most first."""
    heads = classes.members[classes.first]
    order = [groups[random.integers(max(len(groups) - 1, 1)), heads] for groups in state.grid.groups]
    place = np.lexsort([order[j] for j in random.permutation(len(order))])
    sizes = classes.sizes[place]
    number = np.empty(len(heads), dtype=np.int64)
    number[place] = (np.cumsum(sizes) - 1) // _BLOCK
    lost = np.bincount(number, weights=classes.total(state.rows * state.cost))
    return [classes.part(number == b) for b in np.argsort(-lost, kind="stable").tolist() if lost[b] > 0]


def _improve_block(moving: _Moving, classes: Classes) -> None:
    """Make the moves of a block that keep every criterion."""
    state, judge, owner = moving.state, moving.judge, moving.owner
    block = Block(state.grid, state.rows, judge.k, classes.members, classes.owner(), moving.room)
    number = owner[classes.members[classes.first]]
    for move in chosen_moves(block):
        if judge.columns and not _allowed(judge, block, move):
            continue
        for i, target in move.to:
            owner[classes.members[i]] = number[target]


def _allowed(judge: Judge, block: Block, move: Move) -> bool:
    """Whether every class that a move touches still passes."""
    after = block.owner.copy()
    for i, target in move.to:
        after[i] = target
    touched: Flags = np.isin(after, list(move.classes(block.owner)))
    return bool(judge.passing(Classes.of(after[touched], block.members[touched])).all())
