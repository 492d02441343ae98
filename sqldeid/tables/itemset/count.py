"""Count who has which items together in SQL, and judge a cut: what fails is suppressed in whole cells.

A cell is an item, as the cut shows it, within a class of the parent. Suppressing a cell takes its item from every
person of the class, so it changes the count of no set without that item: sets that fail are broken one size after the
other, single items first, then pairs among the cells that are left, and so on. No set that was counted has to be
counted again.

Source: Terrovitis et al. 2008, §4 (apriori: a set holds no set that fails, for its cell is gone by then).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.sql import identifier
from sqldeid.tables.itemset.cover import cover
from sqldeid.tables.itemset.search import Judged, Totals
from sqldeid.tables.itemset.tree import CodeTree

BEFORE = 1_000_000_000
"""Cells from this number on are of child tables that were written before: what they show is settled."""

MOST_SETS = 4_000_000
"""Failing sets that come to Python; a cut with more of them is given up."""


@dataclass(frozen=True, slots=True)
class Counter:
    """What cuts are judged by.

    Parameters
    ----------
    engine
        The workbench: cuts are tried on numbers.
    pairs
        Temporary table (class, person, leaf).
    total
        Its rows.
    before
        Temporary table (person, cell), if other child tables were written before: the items that they show of persons.
    """

    engine: Engine
    name: str
    pairs: exp.Table
    total: int
    tree: CodeTree
    k: int
    known: int
    before: exp.Table | None = None

    def totals(self) -> Totals:
        """Of each node, how many pairs k persons of a class share, and how many not. Cost: one pass for each level."""
        kept, failing = np.zeros(self.tree.nodes), np.zeros(self.tree.nodes)
        for level in range(len(self.tree.groups)):
            nodes = self._put_nodes(self.tree.at(level))
            found = self.engine.ask("tables/itemset/count_nodes", pairs=self.pairs, nodes=nodes, k=self.k)
            self.engine.drop(nodes)
            node = found.column("node").to_numpy()
            kept[node] = found.column("kept").to_numpy()
            failing[node] = found.column("failing").to_numpy()
        there = self.engine.row("tables/itemset/measure_pairs", pairs=self.pairs)
        return Totals(kept, failing, sqrt(self.k * int(there["persons"]) * int(there["classes"])))

    def nodes_of(self, cut: Ints) -> pa.Table:
        """What each leaf is shown as: leaf, node."""
        return pa.table({"leaf": pa.array(self.tree.leaves, pa.int32()), "node": pa.array(cut, pa.int32())})

    def _put_nodes(self, cut: Ints) -> exp.Table:
        return self.engine.put(f"{self.name}_nodes", self.nodes_of(cut))

    def place(self, cut: Ints) -> tuple[exp.Table, exp.Table]:
        """The persons' items as the cut shows them, and the cells that k persons have."""
        nodes = self._put_nodes(cut)
        placed = self.engine.make("tables/itemset/place_items", f"{self.name}_placed", pairs=self.pairs, nodes=nodes)
        cells = self.engine.make("tables/itemset/number_cells", f"{self.name}_cells", placed=placed, k=self.k)
        self.engine.drop(nodes)
        return placed, cells

    def released(self, best: Judged) -> tuple[exp.Table, exp.Table]:
        """The persons' items as the cut shows them, and the cells that are shown: class, node."""
        placed, cells = self.place(best.cut)
        dropped = self.engine.put(f"{self.name}_dropped", dropped_rows(best.dropped))
        shown = self.engine.make("tables/itemset/keep_cells", f"{self.name}_shown", cells=cells, dropped=dropped)
        for table in (cells, dropped):
            self.engine.drop(table)
        return placed, shown

    def judge(self, cut: Ints, *, by_count: bool = False) -> Judged | None:
        """What a cut costs with the cells that must be suppressed; None where too many sets fail to tell.

        Parameters
        ----------
        by_count
            Whether as few pairs as can be are suppressed, where that is not what loses least.
        """
        placed, cells = self.place(cut)
        read = self.engine.ask("tables/itemset/read_cells", cells=cells)
        node, pairs = read.column("node").to_numpy(), read.column("pairs").to_numpy().astype(np.float64)
        spared = pairs * (1 - self.tree.losses[node])
        found = self._break(placed, cells, pairs if by_count else spared)
        self.engine.drop(placed)
        self.engine.drop(cells)
        if found is None:
            return None
        dropped, least = found
        kept = np.ones(len(node), dtype=np.bool_)
        kept[dropped] = False
        released = float(pairs[kept].sum())
        shown = float((pairs * self.tree.losses[node])[kept].sum())
        whole = float((pairs * self.tree.losses[node]).sum()) + self.total - float(pairs.sum())
        beyond = np.bincount(node[dropped], weights=pairs[dropped], minlength=self.tree.nodes).astype(np.float64)
        suppressed = self.total - int(released)
        fewest = self.total - float(pairs.sum()) + (least if by_count else 0.0)
        return Judged(
            cut,
            loss=(shown + suppressed) / self.total,
            bound=whole / self.total if by_count else (whole + least) / self.total,
            suppressed=suppressed,
            fewest=fewest,
            dropped=dropped,
            beyond=beyond,
            released=np.bincount(node[kept], weights=pairs[kept], minlength=self.tree.nodes).astype(np.float64),
        )

    def _break(self, placed: exp.Table, cells: exp.Table, weights: Floats) -> tuple[Ints, float] | None:
        """Cells to suppress, and what the least of them weigh: of pairs; what larger sets ask for is not bounded."""
        dropped, least = np.zeros(0, dtype=np.int64), 0.0
        for size in range(2, self.known + 1):
            held = self._hold(placed, cells, dropped)
            sets = self._failing(held, size)
            self.engine.drop(held)
            if len(sets) > MOST_SETS:
                return None
            chosen, bound = _cover_own(sets, weights)
            dropped = np.union1d(dropped, chosen)
            if size == 2:
                least = bound
        return dropped, least

    def _hold(self, placed: exp.Table, cells: exp.Table, dropped: Ints) -> exp.Table:
        gone = self.engine.put(f"{self.name}_dropped", dropped_rows(dropped)) if len(dropped) else None
        held = self.engine.make(
            "tables/itemset/hold_cells",
            f"{self.name}_held",
            placed=placed,
            cells=cells,
            dropped=gone,
            before=self.before,
        )
        if gone is not None:
            self.engine.drop(gone)
        return held

    def _failing(self, held: exp.Table, size: int) -> Ints:
        """The cells of each set of a size that fails; shape (sets, size)."""
        items = numbered(size)
        below = None if self.before is None else BEFORE
        asked = {"held": held, "items": items, "k": self.k, "most": MOST_SETS + 1, "below": below}
        read = self.engine.ask("tables/itemset/list_sets", **asked)
        cells = [read.column(f"c{i}").to_numpy() for i in range(size)]
        return np.stack(cells, axis=1)[np.lexsort(cells)].astype(np.int64)  # rows come in any order


def _cover_own(sets: Ints, weights: Floats) -> tuple[Ints, float]:
    """Choose cells of this child table that break all sets; of pairs also what any choice weighs at least.

    Cells of tables before it cannot be chosen, so a set is broken by one of its others; sets of the fewest come first.
    Of pairs the weights add up: a cell that is alone in its set must be chosen, and the pairs that it leaves do not
    hold it.
    """
    own = (sets < BEFORE).sum(axis=1)  # cells ascend, so these are the first ones
    chosen, bound = np.zeros(0, dtype=np.int64), 0.0
    for cells in range(1, sets.shape[1] + 1):
        there = sets[own == cells][:, :cells]
        there = np.unique(there[~np.isin(there, chosen).any(axis=1)], axis=0)
        found = cover(there, weights)
        chosen = np.union1d(chosen, found.chosen)
        bound += found.bound
    return chosen, bound


def numbered(size: int) -> list[Mapping[str, object]]:
    """The aliases of a self join of so many items."""
    return [
        {
            "alias": identifier(f"i{at}"),
            "earlier": identifier(f"i{at - 1}") if at else None,
            "first": identifier("i0"),
            "name": identifier(f"c{at}"),
        }
        for at in range(size)
    ]


def dropped_rows(dropped: Ints) -> pa.Table:
    """Cells that are suppressed, as a table."""
    return pa.table({"cell": pa.array(dropped, pa.int32())})
