"""What is certain of a class one level finer, from facts about how its levels were chosen. Pure.

A reader knows of a class its label in each column, its rows, and the hierarchy. A label's *children* are the groups one
level below it. Without further facts any rows of the class may be of any child.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.tables.attacks.base import Recoded

DRAWS = 200
"""Draws of a column from all that its labels allow."""

_CELLS = 4_000_000
"""Classes times children that all draws of a column may look at."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One column of the released classes, as a reader sees it.

    Parameters
    ----------
    level, group
        Level of each class, and its group there; level 0 where nothing is below it or the levels of its members differ;
        shape (classes,).
    children
        Groups one level below, 0 at level 0; shape (classes,).
    widest
        Leaves of the child that has most, and of the label; shape (2, classes).
    shares
        Per level and group, the share of the label's leaves that each child has, largest first.
    public
        Whether a reader knows the children.
    """

    level: Ints
    group: Ints
    children: Ints
    widest: Ints
    shares: tuple[tuple[Floats, ...], ...]
    public: bool


@dataclass(frozen=True, slots=True)
class Sharpened:
    """What is certain of one column.

    Parameters
    ----------
    exact
        Whether the rows of each child are certain; shape (classes,).
    present
        Whether it is certain that each child is there; shape (classes,).
    """

    exact: Flags
    present: Flags


def heads_of(recoded: Recoded) -> Ints:
    """One combination of each class; shape (classes,)."""
    found = np.zeros(int(recoded.owner.max(initial=-1)) + 1, dtype=np.int64)
    here = np.flatnonzero(recoded.released)
    found[recoded.owner[here]] = here
    return found


def shown_of(recoded: Recoded) -> list[Shown]:
    """The columns of the released classes."""
    return [_shown(recoded, j, heads_of(recoded)) for j in range(len(recoded.groups))]


def _shown(recoded: Recoded, j: int, heads: Ints) -> Shown:
    groups, here = recoded.groups[j], recoded.released
    level = recoded.level[j][heads].copy()
    mixed = recoded.level[j][here] != level[recoded.owner[here]]
    level[recoded.owner[here][mixed]] = 0
    leaf = recoded.leaf[j][heads]
    shares = tuple(tuple(_shares(groups, x)) for x in range(len(groups)))
    group = np.stack(groups)[level, leaf]
    children = np.array([len(shares[x][g]) for x, g in zip(level.tolist(), group.tolist(), strict=True)], np.int64)
    leaves = [np.bincount(g) for g in groups]
    whole = np.array([leaves[x][g] for x, g in zip(level.tolist(), group.tolist(), strict=True)], np.int64)
    first = [tuple(of[0] if len(of) else 1.0 for of in by_group) for by_group in shares]  # the largest
    most = [first[x][g] for x, g in zip(level.tolist(), group.tolist(), strict=True)]
    widest = np.stack([np.rint(np.array(most) * whole).astype(np.int64), whole])
    return Shown(level, group, np.where(level > 0, children, 0), widest, shares, recoded.public[j])


def _shares(groups: Sequence[Ints], level: int) -> Iterator[Floats]:
    """Of each group of a level, the share of its leaves in each child, largest first; none at level 0."""
    count = int(groups[level].max(initial=-1)) + 1
    if level == 0:
        yield from (np.zeros(0) for _ in range(count))
        return
    below = np.bincount(groups[level - 1])
    parent = np.zeros(len(below), dtype=np.int64)
    parent[groups[level - 1]] = groups[level]
    order = np.lexsort((-below, parent))
    first = np.searchsorted(parent[order], np.arange(count + 1))
    for g in range(count):
        of = below[order[first[g] : first[g + 1]]].astype(np.float64)
        yield of / of.sum()


def disagreeing(shown: Shown, sizes: Ints, told: Flags) -> Sharpened:
    """What follows where the rows of a class are known not to be all of one child.

    With two children both are there; and where the class has two rows, each has one of them.

    Parameters
    ----------
    told
        Of which classes a reader knows the level by the labels, and that it is the lowest; shape (classes,).
    """
    present = np.asarray(told & (shown.children == 2) & shown.public)
    return Sharpened(present & (sizes == 2), present)


def failing(shown: Shown, sizes: Ints, k: int, need: int) -> Sharpened:
    """What follows where at least `need` rows of all classes are known to be of children with fewer than k rows.

    Proof. Of n rows with m children at most `_most(n, m)` are of children below k: all, where they fit into m children
    of k - 1 rows, else k - 1 in each but one. So a class has at least `need` less the most of all others; call it d.
    All children are there where m - 1 of them could not have d failing rows. Children are alike to the fact, so counts
    are certain only where one distribution is left, and all are equal in it: n = m·(k - 1), and d is more than n - k,
    which is the most that fails where any child has k rows or more.
    """
    m = np.where(shown.public, shown.children, np.maximum(sizes, 2))
    m = np.where(shown.level > 0, m, 0)
    most = _most(sizes, m, k)
    least = need - (int(most.sum()) - most)
    open_ = np.asarray((m >= 2) & shown.public & (least > 0))
    present = open_ & (least > _most(sizes, m - 1, k))
    exact = open_ & (sizes == m * (k - 1)) & (least > sizes - k)
    return Sharpened(exact, present | exact)


def _most(sizes: Ints, children: Ints, k: int) -> Ints:
    """The most rows of each class that can be of children with fewer than k rows; a class has k rows or more."""
    fits = sizes <= children * (k - 1)
    return np.where(children < 1, 0, np.where(fits, sizes, np.maximum(children - 1, 0) * (k - 1)))


def disagreeing_bits(shown: Shown, sizes: Ints, told: Flags) -> float:
    """Bits that it tells of all classes that their rows are not all of one child.

    Before it, each row is of a child with the share of the label's leaves that this has, whatever the others are; so a
    class of n rows is of one child with probability Σ p^n. Exact.
    """
    bits = 0.0
    at = np.flatnonzero(told & (shown.children > 1) & shown.public)
    found = np.stack([shown.level[at], shown.group[at], sizes[at]])
    pairs, classes = np.unique(found, axis=1, return_counts=True)
    for (level, group, n), times in zip(pairs.T.tolist(), classes.tolist(), strict=True):
        alike = float((shown.shares[level][group] ** n).sum())
        bits -= times * float(np.log1p(-alike) / np.log(2))
    return bits


def failing_draws(shown: Shown, sizes: Ints, k: int, need: int, random: np.random.Generator) -> tuple[int, int]:
    """How many of some draws from all that labels allow have `need` rows of children below k, and how many were drawn.

    Where there are more classes and children than draws may look at, those that come first are taken: fewer rows fail
    in these, so that the bits that are reckoned from it are no less than those of all.
    """
    at = np.flatnonzero((shown.children > 1) & shown.public)
    at = at[np.cumsum(shown.children[at]) <= _CELLS // 20]
    draws = int(max(20, min(DRAWS, _CELLS // max(int(shown.children[at].sum()), 1))))
    failed = np.zeros(draws, dtype=np.int64)
    key = shown.level[at] * (int(shown.group.max(initial=0)) + 1) + shown.group[at]
    for own in np.unique(key):
        of = at[key == own]
        shares = shown.shares[int(shown.level[of[0]])][int(shown.group[of[0]])]
        for i in range(draws):
            if failed[i] < need:
                counts = random.multinomial(sizes[of], shares)
                failed[i] += int(np.where(counts < k, counts, 0).sum())
        if (failed >= need).all():
            break
    return int((failed >= need).sum()), draws
