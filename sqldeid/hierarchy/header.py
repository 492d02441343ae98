"""Refuse a header line in a hierarchy file: the file has none, and the line would become a leaf.

Such a leaf adds a group to every level, and often a level above the file's own top: losses shift, and a column is
starred out where a file without that line would have kept it. Leaves that no row has shift losses, too, but may be
meant: they are counted.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column, keys, mask
from sqldeid.hierarchy.files import FileSource
from sqldeid.hierarchy.model import Hierarchy
from sqldeid.hierarchy.sources import HierarchySource, shipped
from sqldeid.hierarchy.tree import Tree, find

_TITLES = re.compile(
    r"(level|lvl|stufe|ebene|niveau|nivel|livello|group|gruppe|generali[sz]ation|parent|hierarchy)[ _.-]*\d+"
    r"|original|value|leaf|top|root|parent|level|stufe|ebene|wert|valeur|valor|code|id|key|name"
)
"""What columns of a hierarchy are called in header lines."""

_TITLED = "it is titled like one, and shares no label with any other line"


def refuse_header(
    source: HierarchySource, values: pa.Array | None, *, numeric: bool = False, called: str | None = None
) -> None:
    """Refuse a file whose first line is a header.

    Parameters
    ----------
    values
        Distinct values of the column; None where no refusal may depend on them, or there are none.
    numeric
        Whether text holds exact numbers.
    called
        The column's name.

    Raises
    ------
    HierarchyError
        If the first line has the column's name, is the only one whose value the column has not or cannot have, or is
        titled like a header and shares no label with any other line.
    """
    file = file_of(source)
    if file is None or file.name in shipped():
        return
    reason = _reason(file.tree, None if values is None else Column.of(values, numeric=numeric), called)
    if reason and file.lines is not None:
        raise HierarchyError(
            f"hierarchy {file.name}: line {file.lines[0]} looks like a header: {reason}. A hierarchy file has none, "
            "for it would be a value like any other: remove the line; or move it below the next one, if it is a value"
        )


def file_of(source: HierarchySource) -> FileSource | None:
    """The file that a source reads, as it is or with its top coded; None for rules, rows and kept hierarchies."""
    within = getattr(source, "within", source)
    return within if isinstance(within, FileSource) and within.lines is not None else None


def unused(source: HierarchySource, hierarchy: Hierarchy) -> int:
    """How many leaves of the user's own file no value has; 0 for shipped ones, rules, and kept hierarchies."""
    file = file_of(source)
    if file is None or file.name in shipped():
        return 0
    return hierarchy.leaves - len(np.unique(hierarchy.leaf))


def _reason(tree: Tree, column: Column | None, called: str | None) -> str:
    """Why the first line is a header; empty where it is none."""
    first, others = tree.leaves[0], len(tree.leaves) - 1
    if not others:
        return ""
    there = _there(tree, column)
    if there is not None and there[0]:
        return ""
    alone = _alone(tree)
    titled = alone and (there is not None or column is None) and _titled(tree)
    if first is None:  # the line of missing values, also where no row lacks one today; tools may write a header so
        return _TITLED if titled else ""
    if called is not None and first.strip().casefold() == called.strip().casefold():
        return "it begins with the column's name"
    known = None if column is None or column.kind == "text" else _of_kind(tree, column)
    if known is not None and known[0]:
        return ""
    if column is not None and known is not None and _all_but_first(tree, known):
        return f"it is the only one that does not begin with a value of the column's type ({column.kind})"
    if there is not None and there[1:].all() and (alone or (others > 1 and _alone_below(tree))):
        return "its value is the only one that no row has"
    if titled:
        return _TITLED
    if there is not None and alone and others > 1 and _one_top(tree):
        return "no row has its value, and it alone has another top than all other lines"
    return ""


def _of_kind(tree: Tree, column: Column) -> Flags:
    """Which leaves can be values of the column's type."""
    return mask(keys(pa.array(tree.leaves, pa.string()), column.kind).is_valid())


def _all_but_first(tree: Tree, known: Flags) -> bool:
    """Whether all lines but the first begin with a value of the type, or with none."""
    rest = known | np.array([leaf is None for leaf in tree.leaves])
    return bool(rest[1:].all() and known.any())


def _there(tree: Tree, column: Column | None) -> Flags | None:
    """Which leaves the column has; None where no values are known."""
    if column is None or not len(column.values):
        return None
    leaves = keys(pa.array(tree.leaves, pa.string()), column.kind)
    there = find(leaves, keys(column.texts, column.kind)) >= 0
    there[[leaf is None for leaf in tree.leaves]] = bool(column.null.any())
    return there


def _alone(tree: Tree) -> bool:
    """Whether the first line shares no label with any other, on any level that the file has."""
    written = _written(tree)
    return bool(written) and all((g[1:] != g[0]).all() for g in written)


def _alone_below(tree: Tree) -> bool:
    """Whether the first line shares no label with any other but the top: a header may say `*` there."""
    return all((g[1:] != g[0]).all() for g in tree.groups[:-1])


def _written(tree: Tree) -> list[Ints]:
    """The levels' groups, without a top that all lines share."""
    return [g for g in tree.groups if (g != g[0]).any()]


def _one_top(tree: Tree) -> bool:
    """Whether all other lines have one top, and the first another."""
    written = _written(tree)
    return bool(written) and len(np.unique(written[-1][1:])) == 1


def _titled(tree: Tree) -> bool:
    """Whether two fields of the first line or more are what columns of a hierarchy are called."""
    fields = [tree.leaves[0], *(tree.labels[x][g[0]] for x, g in enumerate(tree.groups))]
    return sum(f is not None and _TITLES.fullmatch(f.strip().casefold()) is not None for f in fields) > 1
