"""Combinations as codes and costs: which agree at a node, what a row loses there, where two first agree. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.tables.model.coding import Coding, pack
from sqldeid.tables.model.lattice import Lattice, Node
from sqldeid.tables.peel.problem import Attribute, LocalProblem

_MOST = 2**62
"""Sums of units stay below it, so that 64 bits hold them."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What every step reads of a problem, computed once.

    Parameters
    ----------
    lattice
        All nodes.
    coding
        Where each column's path from the root lies in the words; a node is a mask.
    words
        Codes of the combinations, one array of shape (combinations,) per word.
    groups
        Per column, the group of each combination at each level; shape (levels, combinations).
    units
        Per column, units that a row of each combination loses at each level; shape (levels, combinations).
    row
        Units that a suppressed row loses.
    unit
        What one unit is worth in the published scale.
    exact
        Whether units are whole by themselves. Else they are rounded, each by less than one unit.
    """

    lattice: Lattice
    coding: Coding
    words: tuple[Ints, ...]
    groups: tuple[Ints, ...]
    units: tuple[Ints, ...]
    row: int
    unit: Fraction
    exact: bool

    def keys(self, node: Node, at: Ints | None = None) -> Ints:
        """Numbers that are equal where combinations agree at a node; of some combinations or all."""
        return self.masked(self.coding.masks(node), at)

    def masked(self, masks: Sequence[int], at: Ints | slice | None = None) -> Ints:
        """The same, of a node as masks; what is found for one `at` cannot be compared with another unless one word."""
        return reduce(paired, [(w if at is None else w[at]) & m for w, m in zip(self.words, masks, strict=True)])

    def cost(self, node: Node, at: Ints) -> Ints:
        """Units that one row of some combinations loses at a node."""
        parts = (units[x][at] for units, x in zip(self.units, node, strict=True))
        return np.asarray(sum(parts, np.zeros(len(at), dtype=np.int64)))


@dataclass(frozen=True, slots=True)
class Classes:
    """Combinations put together where a key agrees.

    Parameters
    ----------
    members
        Combinations, those of a class side by side; shape (members,).
    first
        Where each class begins there; shape (classes,).
    """

    members: Ints
    first: Ints

    @classmethod
    def of(cls, keys: Ints, at: Ints | None = None) -> Classes:
        """Classes in the order of keys, members in their own order; `at` names them, else they are numbered."""
        order, ordered = in_order(keys)
        first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(keys) else order
        return cls(order if at is None else at[order], first)

    def total(self, amount: Ints) -> Ints:
        """Sum of an amount per combination, by class."""
        return self.summed(amount[self.members])

    def summed(self, amount: Ints) -> Ints:
        """Sum of an amount per member, by class."""
        return np.add.reduceat(amount, self.first) if len(self.first) else self.first

    @property
    def sizes(self) -> Ints:
        """Members of each class."""
        return np.diff(np.append(self.first, len(self.members)))

    def owner(self) -> Ints:
        """The class of each member."""
        return np.repeat(np.arange(len(self.first)), self.sizes)

    def part(self, chosen: Flags) -> Classes:
        """Some of the classes."""
        if chosen.all():
            return self
        sizes = self.sizes
        kept = self.members[np.repeat(chosen, sizes)]
        return Classes(kept, np.concatenate(([0], np.cumsum(sizes[chosen])))[:-1].astype(np.int64))


def in_order(keys: Ints) -> tuple[Ints, Ints]:
    """Stable order of keys that are not negative, and the keys in it.

    Sorting values is several times faster than sorting their places, so both are put into one number where they fit.
    """
    bits = len(keys).bit_length()
    if len(keys) and int(keys.max()) >> (62 - bits) == 0:
        both = (keys << bits) | np.arange(len(keys))
        both.sort()
        return both & ((1 << bits) - 1), both >> bits
    order = np.argsort(keys, kind="stable")
    return order, keys[order]


def make_grid(problem: LocalProblem) -> Grid:
    """Code the combinations and price their levels."""
    paths = [_paths(a) for a in problem.attributes]
    coding = pack([bits for _, bits in paths])
    words = [np.zeros(problem.leaf.shape[1], dtype=np.int64) for _ in range(coding.words)]
    for field, (code, _), leaf in zip(coding.fields, paths, problem.leaf, strict=True):
        words[field.word] |= code[leaf] << field.shift
    groups = tuple(
        np.stack([code[leaf] >> b for b in bits]) for (code, bits), leaf in zip(paths, problem.leaf, strict=True)
    )
    common, scale = _scale(problem)
    units = tuple(
        np.stack([_rounded(price, scale)[leaf] for price in _prices(a, problem.loss)])
        for a, leaf in zip(problem.attributes, problem.leaf, strict=True)
    )
    weight = sum((a.weight for a in problem.attributes), Fraction(0))
    rows = max(int(problem.rows.sum()), 1)
    return Grid(
        Lattice(tuple(a.height for a in problem.attributes)),
        coding,
        tuple(words),
        groups,
        units,
        int(weight * scale),
        1 / (scale * rows * weight),
        scale == common,
    )


def _paths(attribute: Attribute) -> tuple[Ints, tuple[int, ...]]:
    """Code of each leaf, its path from the root, and the low bits that each level clears."""
    place = np.zeros(len(attribute.label[0]), dtype=np.int64)
    children: list[Ints] = []
    for label in reversed(attribute.label):
        parent = place
        pairs, place = np.unique(np.stack([parent, label]), axis=1, return_inverse=True)
        place = place.reshape(-1).astype(np.int64)
        children.append(place - np.searchsorted(pairs[0], parent))
    widths = [int(c.max(initial=0)).bit_length() for c in reversed(children)]
    bits = tuple(sum(widths[:x]) for x in range(len(widths)))
    code = sum((c << b for c, b in zip(reversed(children), bits, strict=True)), np.zeros_like(place))
    return np.asarray(code), (*bits[:-1], sum(widths))


def _prices(attribute: Attribute, loss: str) -> list[list[Fraction]]:
    """What a row of each leaf loses at each level, from 0 to the column's weight."""
    if loss == "prec":
        most = max(attribute.height - 1, 1)
        return [[attribute.weight * x / most] * len(attribute.label[0]) for x in range(attribute.height)]
    domain = max(int(attribute.leaves[-1].max(initial=1)) - 1, 1)
    by_size = {int(n): attribute.weight * (int(n) - 1) / domain for n in np.unique(np.stack(attribute.leaves))}
    return [[by_size[n] for n in leaves.tolist()] for leaves in attribute.leaves]


def _scale(problem: LocalProblem) -> tuple[int, int]:
    """The common denominator of all prices, and the units of a whole: the same, or what 64 bits can sum up."""
    common = 1
    for a in problem.attributes:
        domain = a.height if problem.loss == "prec" else int(a.leaves[-1].max(initial=1))
        common = lcm(common, a.weight.denominator * max(domain - 1, 1))
    weight = sum((a.weight for a in problem.attributes), Fraction(0))
    fits = _MOST // (max(int(problem.rows.sum()), 1) * (int(weight) + 1))
    lowest = lcm(*(a.weight.denominator for a in problem.attributes))
    return common, common if common <= fits else max(fits // lowest, 1) * lowest


def _rounded(prices: list[Fraction], scale: int) -> Ints:
    return np.array([int(price * scale) for price in prices], dtype=np.int64)


def paired(a: Ints, b: Ints) -> Ints:
    """One number for two: ranks of the first, then of the second."""
    _, first = np.unique(a, return_inverse=True)
    values, second = np.unique(b, return_inverse=True)
    return np.asarray(first.astype(np.int64) * len(values) + second)
