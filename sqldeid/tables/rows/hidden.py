"""Warn of columns of which `uncovered = "top"` hides a good part, where a rule should have read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from sqldeid.hierarchy import Hierarchy
from sqldeid.hierarchy.mending import MOST_HIDDEN, hidden_rows, mend
from sqldeid.tables.model.evaluation import Marginal
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan


class Bound(Protocol):
    """A quasi-identifier with its hierarchy and the rows of each leaf."""

    @property
    def qi(self) -> QuasiIdentifier:
        """As planned."""
        ...

    @property
    def hierarchy(self) -> Hierarchy:
        """With all its leaves."""
        ...

    @property
    def marginal(self) -> Marginal:
        """Rows per group, level by level."""
        ...


def hidden(plan: TablePlan, columns: Iterable[Bound]) -> Iterator[str]:
    """A warning for each column of which a rule does not read more than `MOST_HIDDEN` of the rows; no value in it.

    A count of rows is told to whoever holds the source, as every warning is. A sampled plan is left out: the source's
    rows are not the release's there, and nothing of them may be told.
    """
    if plan.sampled:
        return
    for column in columns:
        qi, bound = column.qi, column.hierarchy
        if qi.uncovered != "top":
            continue
        leaves = column.marginal.rows[0]
        numeric = qi.source.kind == "number"
        lost, rows = hidden_rows(qi.hierarchy, bound.values, leaves[bound.leaf], numeric=numeric), int(leaves.sum())
        if lost > MOST_HIDDEN * rows:
            first = mend(qi.hierarchy, lost, qi.source.name, text=qi.source.kind == "text")
            yield (
                f'{plan.key}.columns.{qi.name}.uncovered: "top" hides {lost:,} of {rows:,} rows '
                f'({100 * lost / rows:.1f} %) as "*", which {qi.hierarchy.name} does not read. {first}'
            )
