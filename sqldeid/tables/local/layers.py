"""A partition as it is released: its layers in a public order, the layer of each combination, and its classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.tables.criteria.knowledge import Cells, decide
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel.problem import Attribute, LocalProblem, Partition

if TYPE_CHECKING:
    from sqldeid.engine.base import Engine
    from sqldeid.tables.fold.fold import Folded
    from sqldeid.tables.local.combinations import Combinations
    from sqldeid.tables.local.plan import LocalPlan

SUPPRESSED = -1

_Lost = Callable[[Attribute, int], Floats]
"""What a column loses of each leaf at a level, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Which layer each combination is released by.

    Parameters
    ----------
    nodes
        The layers in use, by the sum of their levels, then by levels: an order that tells nothing of how they were
        found. The layer that readers see is its place from 1 on.
    layer
        Place of each combination's layer in `nodes`, `SUPPRESSED` where it has none; shape (combinations,).
    owner
        Class of each combination, by equal labels, `SUPPRESSED` where it has none; shape (combinations,).
    """

    problem: LocalProblem
    nodes: tuple[Node, ...]
    layer: Ints
    owner: Ints

    @property
    def released(self) -> Flags:
        """Whether each combination is released."""
        return np.asarray(self.layer != SUPPRESSED)

    @property
    def recoding(self) -> Ints:
        """The layer that a released row tells, from 1 on: the last that any row with equal labels comes from."""
        last = np.zeros(int(self.owner.max(initial=-1)) + 2, dtype=np.int64)  # the last place is that of `SUPPRESSED`
        here = self.released
        np.maximum.at(last, self.owner[here], self.layer[here] + 1)
        return np.where(here, last[self.owner], 0)

    @property
    def levels(self) -> Ints:
        """Level of each combination in each column, the top where it is suppressed; shape (columns, combinations)."""
        nodes = np.array([*self.nodes, top_of(self.problem)], dtype=np.int64)
        return nodes[self.layer].T

    @property
    def sizes(self) -> Ints:
        """Rows of each class."""
        here = self.released
        return np.bincount(self.owner[here], weights=self.problem.rows[here]).astype(np.int64)

    def losses(self) -> dict[str, Floats]:
        """By loss, what each column loses, from 0 to 1; a suppressed row loses all."""
        return {"loss": self._mean(_leaves_lost), "prec": self._mean(_levels_lost)}

    def _mean(self, lost: _Lost) -> Floats:
        rows, gone = self.problem.rows, ~self.released
        found = []
        for attribute, leaf, level in zip(self.problem.attributes, self.problem.leaf, self.levels, strict=True):
            of_level = np.stack([lost(attribute, x) for x in range(attribute.height)])
            found.append(float((np.where(gone, 1.0, of_level[level, leaf]) * rows).sum() / rows.sum()))
        return np.array(found)

    def rows_by_level(self) -> list[Ints]:
        """Per column, released rows at each level."""
        rows = np.where(self.released, self.problem.rows, 0)
        return [
            np.bincount(level, weights=rows, minlength=attribute.height).astype(np.int64)
            for attribute, level in zip(self.problem.attributes, self.levels, strict=True)
        ]

    def rows_by_layer(self) -> Ints:
        """Released rows of each layer."""
        here = self.released
        counted = np.bincount(self.layer[here], weights=self.problem.rows[here], minlength=len(self.nodes))
        return counted.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Layered:
    """A source in the layers that were found for it: what is written, attacked and entered in a ledger.

    Parameters
    ----------
    folded
        The source as it was folded; as it leaves (disguised, without held back rows) where it is written.
    found
        Its combinations, in the order of `layers.layer`.
    """

    planned: LocalPlan
    folded: Folded
    found: Combinations
    layers: Layers
    engine: Engine


def layers_of(problem: LocalProblem, partition: Partition, *, blank: bool) -> Layers:
    """The layers of a partition.

    Parameters
    ----------
    blank
        Whether suppressed rows stay, with every column at its top, where they meet all criteria with the rows that are
        there anyway.
    """
    layers = ordered(problem, partition.nodes, partition.layer)
    return topped(layers) if blank else layers


def without_failing(layers: Layers) -> Layers:
    """The layers without the classes that do not meet all criteria: their rows are suppressed."""
    here = layers.released
    if not here.any():
        return layers
    good = here & holding(layers)[layers.owner]
    return ordered(layers.problem, layers.nodes, np.where(good, layers.layer, SUPPRESSED))


def topped(layers: Layers) -> Layers:
    """The layers with suppressed rows at the top, where they meet all criteria with the rows that are there anyway."""
    problem = layers.problem
    if layers.released.all():
        return layers
    top = top_of(problem)
    nodes = (*layers.nodes, top)
    if problem.layers is not None and len(set(nodes)) > problem.layers:
        return layers
    kept = ordered(problem, nodes, np.where(layers.released, layers.layer, len(layers.nodes)))
    place = kept.owner[~layers.released][0]
    return kept if _holds(problem, kept.owner == place) else layers


def ordered(problem: LocalProblem, nodes: Sequence[Node], layer: Ints) -> Layers:
    """The layers in use, each node once, in their public order; `layer` tells each combination's place in `nodes`."""
    used = sorted({tuple(nodes[i]) for i in np.unique(layer[layer >= 0]).tolist()}, key=lambda n: (sum(n), n))
    place = {node: i for i, node in enumerate(used)}
    moved = np.array([*(place.get(tuple(node), SUPPRESSED) for node in nodes), SUPPRESSED], dtype=np.int64)
    layers = Layers(problem, tuple(used), moved[layer], np.zeros_like(layer))
    return replace(layers, owner=_classes(problem, layers))


def top_of(problem: LocalProblem) -> Node:
    """Every column at its most general level."""
    return tuple(a.height - 1 for a in problem.attributes)


def label_numbers(problem: LocalProblem, levels: Ints) -> Ints:
    """Number of the label that each combination shows in each column; shape (columns, combinations)."""
    shown = [
        np.stack(attribute.label)[level, leaf]
        for attribute, leaf, level in zip(problem.attributes, problem.leaf, levels, strict=True)
    ]
    return np.stack(shown)


def holding(layers: Layers) -> Flags:
    """Whether each class meets all criteria; shape (classes,)."""
    problem, owner = layers.problem, layers.owner
    sizes = layers.sizes
    found = sizes >= problem.k
    for judged in problem.criteria:
        mine = owner[judged.combination]
        here = mine != SUPPRESSED
        key = mine[here] * len(judged.whole) + judged.value[here]
        cells, at = np.unique(key, return_inverse=True)
        rows = np.bincount(at.reshape(-1), weights=judged.rows[here], minlength=len(cells)).astype(np.int64)
        counted: list[dict[int, int]] = [{} for _ in sizes]
        for cell, n in zip(cells.tolist(), rows.tolist(), strict=True):
            counted[cell // len(judged.whole)][cell % len(judged.whole)] = n
        for i in np.flatnonzero(found).tolist():
            found[i] = judged.criterion.holds(counted[i], int(sizes[i]), judged.whole)
    return found & ~_risky(layers)


def _risky(layers: Layers) -> Flags:
    """Whether each class has a row above the m of m-concealing; shape (classes,)."""
    concealed, found = layers.problem.concealed, np.zeros(len(layers.sizes), dtype=np.bool_)
    if concealed is None:
        return found
    mine = layers.owner[concealed.combination]
    here = mine != SUPPRESSED
    values = len(concealed.tuples)
    keys, at = np.unique(mine[here] * values + concealed.value[here], return_inverse=True)
    rows = np.bincount(at.reshape(-1), weights=concealed.rows[here], minlength=len(keys)).astype(np.int64)
    owner, value = np.divmod(keys, max(values, 1))
    criterion = concealed.criterion
    above = decide(Cells(owner, concealed.tuples[value], rows), [p for _, p in criterion.known], criterion.most)
    found[owner[above]] = True
    return found


def _classes(problem: LocalProblem, layers: Layers) -> Ints:
    """Number combinations of equal labels alike, from 0 on."""
    owner = np.full(len(problem.rows), SUPPRESSED, dtype=np.int64)
    here = layers.released
    if here.any():
        shown = label_numbers(problem, layers.levels)[:, here]
        number = np.zeros(shown.shape[1], dtype=np.int64)
        for column in shown:  # two at a time: their product stays below 2**63
            number = np.unique(number * (int(column.max()) + 1) + column, return_inverse=True)[1].reshape(-1)
        owner[here] = number
    return owner


def _holds(problem: LocalProblem, members: Flags) -> bool:
    """Whether some combinations, as one class, meet all criteria."""
    owner = np.where(members, 0, SUPPRESSED)
    return bool(holding(Layers(problem, (), owner, owner))[0])


def _leaves_lost(attribute: Attribute, level: int) -> Floats:
    """Share of the other leaves of the domain that a leaf's label at a level may be, too."""
    domain = int(attribute.leaves[-1].max(initial=1))
    return np.asarray((attribute.leaves[level] - 1) / max(domain - 1, 1))


def _levels_lost(attribute: Attribute, level: int) -> Floats:
    """Share of the levels that were climbed."""
    return np.full(len(attribute.leaves[level]), level / max(attribute.height - 1, 1))
