"""The generalisation lattice: nodes and their order. Pure; no structure of the lattice's size is ever built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

Node = tuple[int, ...]
"""One generalisation level per quasi-identifier, 0 = original, in the order of the job file."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """All nodes between the original table and full generalisation.

    Parameters
    ----------
    heights
        Number of levels of each quasi-identifier's hierarchy, each at least 1; level `heights[j] - 1` is the top.

    Source
        Samarati 2001; El Emam et al. 2009, §3.
    """

    heights: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return prod(self.heights)

    @property
    def bottom(self) -> Node:
        """The original table."""
        return (0,) * len(self.heights)

    @property
    def top(self) -> Node:
        """Every quasi-identifier at its most general level."""
        return tuple(h - 1 for h in self.heights)

    def specialisations(self, node: Node) -> list[Node]:
        """The nodes one level below `node` in one quasi-identifier."""
        return [(*node[:j], x - 1, *node[j + 1 :]) for j, x in enumerate(node) if x > 0]

    def generalisations(self, node: Node) -> list[Node]:
        """The nodes one level above `node` in one quasi-identifier."""
        return [(*node[:j], x + 1, *node[j + 1 :]) for j, x in enumerate(node) if x + 1 < self.heights[j]]

    def __iter__(self) -> Iterator[Node]:
        """Every node in lexicographic order; for small lattices and tests."""
        return product(*(range(h) for h in self.heights))


def below(x: Node, y: Node) -> bool:
    """Whether `y` generalises `x` or equals it (x ≼ y)."""
    return all(a <= b for a, b in zip(x, y, strict=True))
