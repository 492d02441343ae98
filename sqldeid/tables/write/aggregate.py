"""Put statistics of the columns that are microaggregated beside the released classes.

The cells of the public grid that a class's values lie in are counted where the source lies, and come to the bench,
where sums and ranks are taken in whole numbers; what is told of each class goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.aggregated import GREATEST, Aggregated, Shown
from sqldeid.tables.write.stage import Chosen

_ARROW = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}


def with_statistics(chosen: Chosen, kept: exp.Table, engine: Engine) -> tuple[exp.Table, dict[str, exp.Column]]:
    """The released classes with what is told of each, and where it stands, as a column of `e`, by column.

    Raises
    ------
    JobError
        If a number is too great for its grid.

    Cost: one scan of the source for each column; its distinct cells of each class travel.
    """
    plan = chosen.plan
    told = {c.name: _tell(chosen, c, kept, engine) for c in plan.aggregated}
    places = sorted(set().union(*told.values()))
    types = {c.name: _ARROW[c.leaves_as(text=plan.text)] for c in plan.aggregated}
    columns = {f"a{i}": pa.array([told[n].get(p) for p in places], types[n]) for i, n in enumerate(told)}
    statistics = engine.put(f"{plan.name}_statistics", pa.table({"place": pa.array(places, pa.int64()), **columns}))
    names = [identifier(n) for n in columns]
    made = engine.make(
        "tables/write/join_statistics", f"{plan.name}_told", kept=kept, statistics=statistics, columns=names
    )
    return made, {name: column(f"a{i}", "e") for i, name in enumerate(told)}


def _tell(chosen: Chosen, aggregated: Aggregated, kept: exp.Table, engine: Engine) -> dict[int, Shown]:
    plan, bench, k = chosen.plan, engine.bench, chosen.plan.demands.k
    cells = engine.make(
        "tables/write/list_cells",
        f"{plan.name}_cells",
        source=chosen.folded.source,
        kept=kept,
        words=chosen.words,
        cell=aggregated.cell,
    )
    brought = engine.to_bench(cells)
    rows = bench.rows("tables/write/measure_cells", cells=brought, statistic=aggregated.statistic, k=k)
    bench.drop(brought)
    for row in rows:
        if row["far"] > GREATEST:
            raise JobError.at(
                f"{plan.key}.columns.{aggregated.name}.hierarchy.grid",
                "holds numbers too great to be told apart by steps of the grid; write a coarser grid, or leave rows "
                "with such numbers out by where",
            )
    try:
        return {int(row["place"]): _shown(aggregated, row, text=plan.text) for row in rows if row["n"] >= k}
    except OverflowError:  # the 31st of December 9999 stands for "never" in many tables
        raise JobError.at(
            f"{plan.key}.columns.{aggregated.name}.hierarchy.aggregate",
            f"the {aggregated.statistic} of a class is no date of the years 1 to 9999; leave rows with dates near the "
            "ends of the calendar out by where, or make these dates NULL in a source query",
        ) from None


def _shown(aggregated: Aggregated, row: Mapping[str, Any], *, text: bool) -> Shown:
    match aggregated.statistic:
        case "mean" | "median":
            return aggregated.averaged(int(row["total"]), row["rest_on"], text=text)
        case "mode":
            return None if row["low"] is None else aggregated.at(int(row["low"]), text=text)
        case "interval":
            low = start_of(int(row["low"]), int(row["low_k"]))
            high = -start_of(-int(row["high"]) - 1, -int(row["high_k"]) - 1)  # the same, seen from above
            return aggregated.between(low, high)


def start_of(least: int, other: int) -> int:
    """Where the finest step begins that holds both cells; steps are of 1, 2, 4 … cells, and begin at multiples.

    No such step holds numbers on both sides of 0: then it goes as far below 0 as above.
    """
    if (least < 0) != (other < 0):
        width = 1
        while not -width <= least <= other < width:
            width *= 2
        return -width
    bits = (least ^ other).bit_length()
    return least >> bits << bits
