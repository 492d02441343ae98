"""What labels stand for, where that says nothing of the data: leaves that come with the program, and stated bounds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from sqldeid.hierarchy.files import FileSource
from sqldeid.hierarchy.numbers import Edges
from sqldeid.hierarchy.sources import HierarchySource, open_source, shipped
from sqldeid.hierarchy.stored import StoredSource
from sqldeid.hierarchy.topcoded import TopCoded, rule_of
from sqldeid.hierarchy.tree import Tree

MISSING = "no value (missing)"
"""What NULL is called among the leaves of a label."""


def named_ranges(source: HierarchySource, level: int) -> Mapping[str, str]:
    """Label of a level → the bounds of its class, where a rule gives classes between edges names; else empty.

    The bounds are the rule's, not the data's: without names they are the labels. Of a policy they are told where they
    are true of all that it keeps.
    """
    own = source.source if isinstance(source, StoredSource) else source
    rule = rule_of(own)
    if not isinstance(rule, Edges) or not rule.labels or not 1 <= level <= len(rule.edges):
        return {}
    if isinstance(source, StoredSource) and own.name not in shipped() and not _holds(source.tree, rule, level):
        return {}
    return rule.ranges(level - 1, Decimal(own.shown) if isinstance(own, TopCoded) else None)


def _holds(tree: Tree, rule: Edges, level: int) -> bool:
    """Whether each kept number has the name that the rule gives it: a user's file may have been edited since."""
    names, edges = rule.labels[level - 1], rule.edges[level - 1]
    for leaf, group in zip(tree.leaves, tree.groups[level - 1], strict=True):
        label = tree.labels[level - 1][group]
        if label not in names or leaf is None:
            continue
        try:
            place = bisect_right(edges, Decimal(str(leaf))) - (0 if rule.tails else 1)
        except InvalidOperation:  # a date, of which the rule takes the year
            return False
        if not 0 <= place < len(names) or names[place] != label:
            return False
    return True


def shipped_leaves(name: str, level: int) -> Mapping[str, tuple[str, ...]]:
    """Label of a level → its leaves, in the order of the file; empty for hierarchies of the user's own.

    The leaf of NULL is told as `MISSING`. A rule has no leaves but the data's.

    A user's file may hold a leaf that one person of the source has; of one that is shipped nobody can tell.
    """
    if name not in shipped() or level < 1:
        return {}
    source = open_source(name, Path())
    if not isinstance(source, FileSource) or level >= source.height:
        return {}
    tree = source.tree
    labels, groups = tree.labels[level - 1], tree.groups[level - 1]
    found: dict[str, list[str]] = {}
    for leaf, group in zip(tree.leaves, np.asarray(groups), strict=True):
        if labels[group] is not None:
            found.setdefault(str(labels[group]), []).append(MISSING if leaf is None else str(leaf))
    return {label: tuple(leaves) for label, leaves in found.items()}
