"""A hierarchy of links from each code to those above it: a vocabulary's tree, or its polyhierarchy made a tree. Pure.

The rule looks at the vocabulary alone, never at how many persons have a code:

- *parent*: of several parents of a code the one that lies least deep counts, then the smallest (as a number where the
  vocabulary's codes are numbers, else by the characters' code points). A code without parents has depth 1, every other
  code one more than its parent.
- *levels*: at the level of depth d a code is shown as its ancestor at depth d, or as itself where it is no deeper.

Both look only at what lies above a code, so that they are the same whichever codes are asked for: only links above the
column's values are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column, keys
from sqldeid.hierarchy.files import TOP
from sqldeid.hierarchy.level import numbered
from sqldeid.hierarchy.model import Hierarchy, label_array
from sqldeid.hierarchy.tree import Tree, Uncovered, assemble

DEPTHS = (4, 3, 2, 1)
"""The levels where a job names none."""

MOST_STEPS = 100
"""From a code to the beginning of the tree; real vocabularies have some twenty."""

Links = Mapping[str, Sequence[str]]
"""The parents of each code that the vocabulary has, and of all above it; none for a code where the tree begins."""

Climb = Callable[[Sequence[str]], Links]
"""From codes to the links above them; codes that the vocabulary does not have are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class ParentsSource:
    """A hierarchy by links of a vocabulary; its leaves are the distinct values of the data.

    Parameters
    ----------
    name
        For messages and column comments.
    depths
        Of the levels between the original and the top, falling.
    climb
        Reads the links above codes.
    whole
        Whether the vocabulary's codes are whole numbers, and are ordered as such.
    """

    name: str
    depths: tuple[int, ...]
    climb: Climb
    whole: bool
    data_derived: bool = True

    def __post_init__(self) -> None:
        if not self.depths or self.depths[-1] < 1 or any(a <= b for a, b in pairwise(self.depths)):
            raise HierarchyError(f"hierarchy {self.name}: depths must fall, and be at least 1")

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        return ("original", *(f"depth {d}" for d in self.depths), TOP)

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included."""
        return len(self.level_names)

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """Find the values in the vocabulary, and their ancestors.

        Raises
        ------
        UncoveredValues
            If the vocabulary does not have a value and `uncovered` does not place it.
        HierarchyError
            If links go in a circle, or the tree is deeper than any vocabulary.
        """
        column = Column.of(values, numeric=numeric)
        codes = keys(column.texts, column.kind)
        if codes.type != pa.string():
            raise HierarchyError(f"hierarchy {self.name}: the column holds {column.kind} values, which are no codes")
        named = codes.to_pylist()
        chains = _chains(self.climb([code for code in named if code is not None]), self.name, whole=self.whole)
        known = np.array([code is not None and code in chains for code in named], dtype=bool)
        covered = [chains[code] for code, there in zip(named, known, strict=True) if there]
        groups: list[Ints] = []
        labels = []
        for depth in self.depths:
            shown = [chain[min(depth, len(chain)) - 1] for chain in covered]
            ids, found = numbered(label_array(shown))
            groups.append(ids)
            labels.append(label_array(found.tolist()))
        groups.append(np.zeros(len(covered), dtype=np.int64))
        labels.append(label_array([TOP]))
        leaf = np.where(known, np.cumsum(known) - 1, -1).astype(np.int64)
        tree = Tree(self.name, self.level_names, label_array([None] * len(covered)), tuple(groups), tuple(labels))
        return assemble(tree, column, leaf, uncovered)


def _chains(links: Links, name: str, *, whole: bool) -> dict[str, tuple[str, ...]]:
    """The way from where the tree begins to each code, the code included."""

    def rank(chain: tuple[str, ...]) -> tuple[int, int, str]:
        return len(chain), int(chain[-1]) if whole else 0, chain[-1]

    waiting = {code: len(set(parents)) for code, parents in links.items()}
    children: dict[str, list[str]] = {}
    for code, parents in links.items():
        for parent in set(parents):
            children.setdefault(parent, []).append(code)
    ready = [code for code, n in waiting.items() if not n]
    chains: dict[str, tuple[str, ...]] = {}
    while ready:
        code = ready.pop()
        above = min((chains[p] for p in links[code]), key=rank, default=())
        if len(above) >= MOST_STEPS:
            raise HierarchyError(
                f"hierarchy {name}: a code lies more than {MOST_STEPS} steps deep; its links are wrong"
            )
        chains[code] = (*above, code)
        for child in children.get(code, ()):
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(chains) < len(links):
        raise HierarchyError(
            f"hierarchy {name}: its links go in a circle; {len(links) - len(chains):,} codes lie on one or below it. "
            "A code must not be above itself: where the table has a row for each code with itself, name the column of "
            "steps by separation"
        )
    return chains
