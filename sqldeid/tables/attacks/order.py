"""Row order: whether the order in which a reader gets the rows tells more than the rows themselves.

Rows that stand in the source's order tell who was beside whom in it: by admission, by family, by a number that was left
out. A release is written in the order of its own columns, so that its order is a function of the set of its rows. What
is counted is how often that is not so: rows that their own columns would put before the one that they follow.

*What follows*. Where there are none, nobody learns anything from the order that the rows do not tell in any order:
that is exact, and needs no comparison with the source. Where there are some, the order may tell of the source's; rows
in random order have nearly half.

A reader of a DuckDB table or a Parquet file gets rows as they were written. What Postgres or Spark give them in depends
on the server, and is left out by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqldeid.attacked import Achieved, Estimate, counted, percent
from sqldeid.sql import column
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Step
from sqldeid.tables.attacks.base import MOST_ROWS, Attack, Attacked
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.write.ordering import by_bytes


@dataclass(frozen=True, slots=True)
class RowOrder:
    """What the order of rows tells.

    Parameters
    ----------
    unordered
        Share of the rows, but the first, that their own columns would put before the one that they follow; of the first
        million rows.
    """

    unordered: Estimate

    @property
    def said(self) -> str:
        """In a few words, for the summary; none where the order tells nothing."""
        if not self.unordered.value:
            return ""
        return f"{percent(self.unordered.value)} % of the rows are in an order that may be the source's"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {"unordered": self.unordered.to_dict()}


def _left_out(attacked: Attacked) -> str:
    if attacked.engine.capabilities.dialect != "duckdb":
        return "in what order a server gives rows is not the release's"
    if any(c.source.kind == "other" or c.source.is_enum for c in attacked.plan.released):
        return "a column's own order is not that of its values once they are written"
    return "a computed view has no rows of its own" if attacked.plan.computed else ""


def _make(attacked: Attacked) -> Achieved:
    plan = attacked.plan
    columns = [
        *(column(q.name, "w") for q in plan.qis),
        *(by_bytes(column(c.name, "w")) if c.source.type == "VARCHAR" else column(c.name, "w") for c in plan.others),
    ]
    row = attacked.engine.row(
        "tables/attacks/count_unordered", written=attacked.written, columns=columns, most=MOST_ROWS
    )
    return RowOrder(counted(int(row["unordered"]), max(int(row["rows"]) - 1, 0)))


def _steps(plan: TablePlan) -> Iterator[Step]:
    return as_needed("tables/attacks/count_unordered")


ATTACK = Attack("order", _left_out, _make, _steps)
