"""Bind a tree of known leaves to a column's values, and find a place for NULL and for uncovered values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints
from sqldeid.hierarchy.column import Column, mask
from sqldeid.hierarchy.level import numbered
from sqldeid.hierarchy.model import Hierarchy, Labels, UncoveredValues, label_array, representatives

Uncovered = Literal["refuse", "prefix", "top"]
Chain = tuple[str | None, int, int]
"""A label, the level of the known node from which the ancestors are taken, and its group there."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Known leaves and their ancestors.

    Parameters
    ----------
    name
        Of the hierarchy.
    level_names
        One per level, level 0 included.
    leaves
        Text of each leaf; None is NULL.
    groups
        For levels 1 … top, the group of each leaf; at the top all 0.
    labels
        For levels 1 … top, the label of each group.
    """

    name: str
    level_names: tuple[str, ...]
    leaves: Labels
    groups: tuple[Ints, ...]
    labels: tuple[Labels, ...]


def assemble(tree: Tree, column: Column, leaf: Ints, uncovered: Uncovered) -> Hierarchy:
    """Bind the values: those without a leaf (-1) become leaves of their own.

    NULL that the tree does not know stays NULL on every level below the top. An uncovered value keeps its text at
    level 0; above it takes

    - `top`: the top's label on every level, so that all such values share one group from level 1 on;
    - `prefix`: the ancestors of the longest label, on a level between leaf and top, that begins the value's text
      (of equal labels the one on the lowest level), and that label itself on the levels below it.

    So levels nest whatever is added.

    Raises
    ------
    UncoveredValues
        For `refuse`, and for `prefix` where no label begins the text.
    """
    missing = leaf < 0
    lost = np.flatnonzero(missing & ~column.null)
    level, group = _nodes_of(tree, column, lost, uncovered)
    top = len(tree.labels)
    span = max(len(labels) for labels in tree.labels)
    which, nodes = numbered(level * span + group)
    pairs = [divmod(int(node), span) for node in nodes]
    chains: list[Chain] = [(tree.labels[x - 1][g], x, g) for x, g in pairs]
    chains = [_lowest(tree, c[0]) if c[1] == top else c for c in chains]
    added = np.flatnonzero(missing & column.null)
    if len(added):
        chains.append(_lowest(tree, None))
    members = np.concatenate([which, np.full(len(added), len(chains) - 1)]).astype(np.int64)
    grown = _grow(tree, chains, members)
    bound = leaf.copy()
    bound[np.concatenate([lost, added])] = len(tree.leaves) + np.arange(len(members))
    return _hierarchy(grown, column, bound)


def _nodes_of(tree: Tree, column: Column, lost: Ints, uncovered: Uncovered) -> tuple[Ints, Ints]:
    """Level and group under which each uncovered value goes."""
    level = np.full(len(lost), len(tree.labels), dtype=np.int64)
    group = np.zeros(len(lost), dtype=np.int64)
    if uncovered == "top" or not len(lost):
        return level, group
    if uncovered == "prefix":
        level, group = _longest_prefixes(tree, column.texts.take(pa.array(lost)))
        lost = lost[group < 0]
    if len(lost):
        them = "it" if len(lost) == 1 else "them"
        mend = "" if uncovered == "refuse" else f" and no label is a prefix of {them}"
        raise UncoveredValues(
            f"hierarchy {tree.name} does not cover {len(lost)} value{'s' * (len(lost) != 1)} of the column{mend}. "
            f'Add {them} to the hierarchy, or set uncovered = "top"',
            lost,
        )
    return level, group


def _longest_prefixes(tree: Tree, texts: pa.Array) -> tuple[Ints, Ints]:
    """Level and group of the longest label below the top that begins each text; group -1 if there is none."""
    level = np.zeros(len(texts), dtype=np.int64)
    group = np.full(len(texts), -1, dtype=np.int64)
    length = np.zeros(len(texts), dtype=np.int64)
    for x, labels in enumerate(tree.labels[:-1], start=1):
        known = pa.array(labels, pa.string())
        sizes = pc.fill_null(pc.utf8_length(known), 0).to_numpy()
        for size in np.unique(sizes[sizes > 0]):
            where = np.flatnonzero(sizes == size)
            found = find(pc.utf8_slice_codeunits(texts, 0, int(size)), known.take(pa.array(where)))
            better = (found >= 0) & (size > length)
            level[better], group[better], length[better] = x, where[found[better]], size
    return level, group


def find(needles: pa.Array, hay: pa.Array) -> Ints:
    """Position of each needle in `hay`, -1 if it is not there or NULL."""
    found = pc.index_in(needles, value_set=hay, skip_nulls=True)
    return pc.fill_null(found, -1).to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _lowest(tree: Tree, label: str | None) -> Chain:
    """Where a label that comes in at level 1 joins the tree: at its own lowest occurrence, else at the top."""
    for x, labels in enumerate(tree.labels[:-1], start=1):
        known = pa.array(labels, pa.string())
        same = mask(known.is_null() if label is None else pc.equal(known, label))
        if same.any():
            return label, x, int(np.flatnonzero(same)[0])
    return label, len(tree.labels), 0


def _grow(tree: Tree, chains: list[Chain], members: Ints) -> Tree:
    """Add one leaf per member, each with the ancestors of its chain."""
    if not len(members):
        return tree
    groups, labels = [], []
    count = np.arange(len(tree.leaves))
    leaf_of = [representatives(count, g, len(names)) for g, names in zip(tree.groups, tree.labels, strict=True)]
    top = len(tree.labels)
    for x in range(1, top + 1):
        here: list[int] = []
        new: list[str | None] = []
        for label, level, group in chains:
            if level <= x:
                here.append(0 if x == top else int(tree.groups[x - 1][leaf_of[level - 1][group]]))
            else:
                here.append(len(tree.labels[x - 1]) + len(new))
                new.append(label)
        groups.append(np.concatenate([tree.groups[x - 1], np.array(here, dtype=np.int64)[members]]))
        labels.append(np.concatenate([tree.labels[x - 1], label_array(new)]))
    leaves = np.concatenate([tree.leaves, label_array([None] * len(members))])
    return Tree(tree.name, tree.level_names, leaves, tuple(groups), tuple(labels))


def _hierarchy(tree: Tree, column: Column, leaf: Ints) -> Hierarchy:
    """Close the tree: level 0 in front, the data's own text at the leaves it has."""
    leaves = tree.leaves.copy()
    leaves[leaf] = column.texts.to_numpy(zero_copy_only=False)
    count = len(leaves)
    return Hierarchy(
        name=tree.name,
        height=len(tree.labels) + 1,
        leaves=count,
        values=column.values,
        leaf=leaf,
        groups=(np.arange(count, dtype=np.int64), *tree.groups),
        labels=(leaves, *tree.labels),
        level_names=tree.level_names,
    )
