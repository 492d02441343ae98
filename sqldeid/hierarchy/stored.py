"""A hierarchy with all its leaves, kept for later loads: each value is coded as it was when the hierarchy was built.

A built hierarchy has the data's distinct values for leaves (settled.md, *Hierarchies*). The kept form holds them, so it
is for the data holder. Values that it does not know are asked of the job's own hierarchy: a rule gives them the group
that it would have given them then, a file the line that was added to it, and `uncovered` decides of the rest.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column, keys
from sqldeid.hierarchy.files import FileSource
from sqldeid.hierarchy.model import Hierarchy, Labels, UncoveredValues, label_array, representatives
from sqldeid.hierarchy.sources import HierarchySource
from sqldeid.hierarchy.tree import Tree, Uncovered, assemble, find

MOST_BYTES = 2**31
"""Of a kept hierarchy, unpacked: some hundred million leaves."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredSource:
    """A kept hierarchy, and the job's own for values that it does not know.

    Parameters
    ----------
    tree
        All leaves of the earlier load and their ancestors; the leaf None is NULL.
    source
        The job's own hierarchy, of the same levels.
    """

    tree: Tree
    source: HierarchySource

    @property
    def name(self) -> str:
        """Name of the hierarchy."""
        return self.source.name

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included."""
        return len(self.tree.level_names)

    @property
    def data_derived(self) -> bool:
        """Whether the leaves are the data's distinct values."""
        return self.source.data_derived

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        return self.tree.level_names

    def recodes(self, bound: Hierarchy, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> bool:
        """Whether the job's own hierarchy codes one of the kept leaves otherwise by now.

        Of a file or a table every leaf is looked at; of a rule, which lists none, those of the data at hand.

        Parameters
        ----------
        bound
            This hierarchy, bound to the data.
        """
        if not isinstance(self.source, FileSource):
            return self._rule_recodes(bound, numeric=numeric, uncovered=uncovered)
        now, place = self.source.tree, {leaf: i for i, leaf in enumerate(self.tree.leaves)}
        both = [(i, place[leaf]) for i, leaf in enumerate(now.leaves) if leaf in place]
        new, old = np.array(both, dtype=np.int64).reshape(-1, 2).T
        levels = zip(now.labels, now.groups, self.tree.labels, self.tree.groups, strict=True)
        return any(bool((label[g[new]] != kept[k[old]]).any()) for label, g, kept, k in levels)

    def _kept(self, column: Column) -> Ints:
        """The kept leaf of each value; -1 where there is none."""
        return find(keys(column.texts, column.kind), keys(pa.array(self.tree.leaves, pa.string()), column.kind))

    def _rule_recodes(self, bound: Hierarchy, *, numeric: bool, uncovered: Uncovered) -> bool:
        column = Column.of(bound.values, numeric=numeric)
        kept = np.flatnonzero((self._kept(column) >= 0) & ~column.null)
        if not len(kept):
            return False
        try:
            now = self.source.bind(bound.values.take(pa.array(kept)), numeric=numeric, uncovered=uncovered)
        except HierarchyError:  # it does not even cover them any more
            return True
        before = bound.leaf[kept]
        return any(
            bool((now.labels[x][now.groups[x][now.leaf]] != bound.labels[x][bound.groups[x][before]]).any())
            for x in range(1, bound.height)
        )

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """Find the values among the kept leaves, the others by the job's own hierarchy.

        Raises
        ------
        UncoveredValues
            If neither covers a value and `uncovered` does not place it.
        HierarchyError
            If the job's own hierarchy has other groups than the kept one.
        """
        column = Column.of(values, numeric=numeric)
        leaf = self._kept(column)
        nulls = np.flatnonzero([text is None for text in self.tree.leaves])
        if len(nulls):
            leaf[column.null] = nulls[0]
        lost = np.flatnonzero(leaf < 0)
        if not len(lost):
            return assemble(self.tree, column, leaf, "refuse")
        try:
            found = self.source.bind(column.values.take(pa.array(lost)), numeric=numeric, uncovered=uncovered)
        except UncoveredValues as error:
            raise UncoveredValues(error.message, lost[error.indices], key=error.key) from None
        leaf[lost] = len(self.tree.leaves) + np.arange(len(lost))
        return assemble(_extended(self.tree, found), column, leaf, "refuse")


def _extended(tree: Tree, found: Hierarchy) -> Tree:
    """The tree with one leaf more for each value of `found`, under the groups of the same labels where there are."""
    groups, labels = [], []
    for x, (own, names) in enumerate(zip(tree.groups, tree.labels, strict=True), start=1):
        number = {label: i for i, label in reversed(list(enumerate(names)))}
        of = found.groups[x][found.leaf]
        here = np.zeros(len(found.labels[x]), dtype=np.int64)
        for group in np.unique(of):
            here[group] = number.setdefault(found.labels[x][group], len(number))
        new = list(number)[len({*names}) :]
        groups.append(np.concatenate([own, here[of]]))
        labels.append(np.concatenate([names, label_array(new)]))
    leaves = np.concatenate([tree.leaves, found.labels[0][found.leaf]])
    return Tree(tree.name, tree.level_names, leaves, tuple(groups), tuple(labels))


def pack(hierarchy: Hierarchy) -> dict[str, object]:
    """A hierarchy as JSON values: its levels in clear, its leaves and groups compressed (about 5 bytes a leaf)."""
    levels = [
        {
            "labels": hierarchy.labels[x].tolist(),
            "parents": representatives(
                hierarchy.groups[x], hierarchy.groups[x - 1], len(hierarchy.labels[x - 1])
            ).tolist(),
        }
        for x in range(1, hierarchy.height)
    ]
    content = json.dumps({"leaves": hierarchy.labels[0].tolist(), "levels": levels}, separators=(",", ":"))
    return {
        "name": hierarchy.name,
        "levels": list(hierarchy.level_names),
        "leaves": hierarchy.leaves,
        "tree": base64.b64encode(zlib.compress(content.encode())).decode("ascii"),
    }


def unpack(packed: Mapping[str, Any]) -> Tree:
    """The tree of a kept hierarchy.

    Raises
    ------
    HierarchyError
        If it is not one.
    """
    try:
        opened = zlib.decompressobj()
        content = opened.decompress(base64.b64decode(packed["tree"], validate=True), MOST_BYTES)
        if not opened.eof:
            raise ValueError("cut short")
        return _tree(packed, json.loads(content))
    except (KeyError, TypeError, ValueError, IndexError, binascii.Error, zlib.error, RecursionError):
        raise HierarchyError("a kept hierarchy is damaged; make the policy anew") from None


def _tree(packed: Mapping[str, Any], content: Mapping[str, Any]) -> Tree:
    leaves = _texts(content["leaves"])
    names = tuple(str(name) for name in packed["levels"])
    below: Ints = np.arange(len(leaves), dtype=np.int64)
    groups, labels = [], []
    for level in content["levels"]:
        parents = np.array(level["parents"], dtype=np.int64)
        shown = _texts(level["labels"])
        if len(parents) and (parents.min() < 0 or parents.max() >= len(shown)):
            raise ValueError("a group has no label")
        below = parents[below]
        groups.append(below)
        labels.append(shown)
    if len(labels) != len(names) - 1 or not labels or len(labels[-1]) != 1:
        raise ValueError("the levels are not those that were named")
    return Tree(str(packed["name"]), names, leaves, tuple(groups), tuple(labels))


def _texts(values: object) -> Labels:
    if not isinstance(values, list) or any(v is not None and not isinstance(v, str) for v in values):
        raise ValueError("not a list of texts")
    return label_array(values)
