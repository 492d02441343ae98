"""Label the top groups of a hierarchy over numbers that were cut at the top as open: `≥ 90`.

With `top_code = 89` a person of 91 is an 89 before anything else, and a band called `[85, 90)` would be false. Groups
stay as they are, and so do losses and the choice of a node; the label of the group that holds the top is `≥` and its
lower bound, on every level. What holds the top is asked of the hierarchy, not of the rows: labels do not tell whether
anybody was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column, keys
from sqldeid.hierarchy.model import Hierarchy, Labels, UncoveredValues, label_array
from sqldeid.hierarchy.sources import HierarchySource, Rule, RuleSource
from sqldeid.hierarchy.tree import Tree, Uncovered, find

_NUMBER = r"([+-]?[0-9]+(?:\.[0-9]+)?)"
_CLOSED = re.compile(
    rf"\[?\s*{_NUMBER}\s*(?:,|;|:|\.\.\.?|…|-|–|—|to|bis|à|and|until)\s*{_NUMBER}\s*[\])]?", re.IGNORECASE
)
_LEFT_OPEN = re.compile(rf"[(\]]\s*{_NUMBER}\s*[,;]\s*{_NUMBER}\s*[\])\[]")
_ONE = re.compile(_NUMBER)
_FROM = re.compile(rf"(?:>=|≥|=>)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|(?:and|or) (?:more|over|older|above))", re.IGNORECASE)
_ABOVE = re.compile(rf"(?:>|over|above|more than)\s*{_NUMBER}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TopCoded:
    """A hierarchy whose column was cut at the top.

    Parameters
    ----------
    within
        The hierarchy of the numbers.
    top
        What greater numbers became: a value of the column, as it reaches Python.
    shown
        The same as the job writes it.
    renamed
        For levels 1 and up, the new label of the group that holds the top, by its own.
    """

    within: HierarchySource
    top: int | float | str
    shown: str
    renamed: tuple[Mapping[str, str], ...]

    @property
    def name(self) -> str:
        """Name of the hierarchy."""
        return self.within.name

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included."""
        return self.within.height

    @property
    def data_derived(self) -> bool:
        """Whether the leaves are the data's distinct values."""
        return self.within.data_derived

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        return self.within.level_names

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """The hierarchy over the cut values. At level 0 the top stays a value; `labelled` says how it is shown.

        Raises
        ------
        UncoveredValues, HierarchyError
            As the hierarchy within.
        """
        found = self.within.bind(values, numeric=numeric, uncovered=uncovered)
        above = (_renamed(labels, new) for labels, new in zip(found.labels[1:], self.renamed, strict=True))
        return replace(found, labels=(found.labels[0], *above))

    def kept(self, tree: Tree) -> Tree:
        """A kept tree of this hierarchy with the same labels, whenever it was kept."""
        return replace(tree, labels=tuple(_renamed(g, new) for g, new in zip(tree.labels, self.renamed, strict=True)))

    def labelled(self, hierarchy: Hierarchy, *, numeric: bool) -> Labels:
        """The labels of level 0, all of them text: the top says that greater values are among them."""
        labels = hierarchy.labels[0].copy()
        column = Column.of(hierarchy.values, numeric=numeric)
        at = find(keys(pa.array(labels, pa.string()), column.kind), _key(self.top, column))
        labels[at >= 0] = f"≥ {self.shown}"
        return labels


def top_coded(
    source: HierarchySource, values: pa.Array, shown: str, *, numeric: bool, uncovered: Uncovered
) -> HierarchySource:
    """The hierarchy of a column that was cut.

    Parameters
    ----------
    values
        The top alone, as the column's values reach Python.
    shown
        The top as the job writes it.

    Raises
    ------
    HierarchyError
        If a label of the group that holds the top is no range that can be opened, and names numbers.
    """
    try:
        bound = source.bind(values, numeric=numeric, uncovered=uncovered)
    except UncoveredValues:  # the run says so, if there is such a row
        return TopCoded(source, values[0].as_py(), shown, tuple({} for _ in range(source.height - 1)))
    found: list[Mapping[str, str]] = []
    for level in range(1, bound.height):
        label = bound.labels[level][bound.groups[level][bound.leaf[0]]]
        new = None if label is None else _opened(label, Decimal(shown))
        if new is None and label is not None:
            raise HierarchyError(
                f"hierarchy {source.name}: level {level} has a label for the numbers at {shown} that does not say that "
                'greater ones are among them; write it as a range ("85-89"), or as "≥ 85", or use bands or edges'
            )
        found.append({} if label is None or new is None else {label: new})
    return TopCoded(source, values[0].as_py(), shown, tuple(found))


def _renamed(labels: Labels, new: Mapping[str, str]) -> Labels:
    return label_array([label if label is None else new.get(label, label) for label in labels])


def _key(top: object, column: Column) -> pa.Array:
    return keys(pa.array([str(top)], pa.string()), column.kind)


def _opened(label: str, top: Decimal) -> str | None:
    """The label that is true of greater numbers, too; None where it names numbers in a way that cannot be read."""
    text = label.strip()
    if found := _CLOSED.fullmatch(text):
        low, high = (Decimal(n) for n in found.groups())
        return f"≥ {_plain(low)}" if low <= top <= high else None
    if found := _LEFT_OPEN.fullmatch(text):
        return f"> {_plain(Decimal(found.group(1)))}"
    if found := _ONE.fullmatch(text):
        return f"≥ {_plain(top)}" if Decimal(text) == top else None
    if found := _FROM.fullmatch(text):
        low = Decimal(found.group(1) or found.group(2))
        return f"≥ {_plain(low)}" if low <= top else None
    if found := _ABOVE.fullmatch(text):
        return label if Decimal(found.group(1)) <= top else None
    return None if any(c.isdecimal() for c in text) else label


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rule_of(source: HierarchySource) -> Rule | None:
    """The rule by which levels are computed; None for a hierarchy that lists its values."""
    within = source.within if isinstance(source, TopCoded) else source
    return within.rule if isinstance(within, RuleSource) else None
