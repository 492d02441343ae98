"""Leaves of the hierarchies that come with the program: they are known to everybody, whatever the data holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sqldeid.hierarchy.files import FileSource
from sqldeid.hierarchy.numbers import Edges
from sqldeid.hierarchy.sources import RuleSource, open_source, shipped

MISSING = "no value (missing)"
"""What NULL is called among the leaves of a label."""


def shipped_leaves(name: str, level: int) -> Mapping[str, tuple[str, ...]]:
    """Label of a level → its leaves, in the order of the file; empty for hierarchies of the user's own.

    The leaf of NULL is told as `MISSING`. A rule has no leaves but the data's: of classes between edges that have
    names their bounds are told, and of any other rule nothing.

    A user's file may hold a leaf that one person of the source has; of one that is shipped nobody can tell.
    """
    if name not in shipped() or level < 1:
        return {}
    source = open_source(name, Path())
    if isinstance(source, RuleSource) and isinstance(source.rule, Edges) and level <= len(source.rule.edges):
        return {label: (bounds,) for label, bounds in source.rule.ranges(level - 1).items()}
    if not isinstance(source, FileSource) or level >= source.height:
        return {}
    tree = source.tree
    labels, groups = tree.labels[level - 1], tree.groups[level - 1]
    found: dict[str, list[str]] = {}
    for leaf, group in zip(tree.leaves, np.asarray(groups), strict=True):
        if labels[group] is not None:
            found.setdefault(str(labels[group]), []).append(MISSING if leaf is None else str(leaf))
    return {label: tuple(leaves) for label, leaves in found.items()}
