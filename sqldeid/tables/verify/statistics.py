"""The re-check of statistics of classes: each is computed anew from the values that the source gives, class by class.

Classes are told by their labels, as the release shows them, and statistics come from the values in order, counted one
by one in Python; the run's come from ranks and sums, in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.aggregated import Aggregated, Shown
from sqldeid.tables.plan.plan import TablePlan


def check_statistics(
    plan: TablePlan, source: exp.Expr, labelled: Sequence[Mapping[str, object]], written: exp.Expr, engine: Engine
) -> None:
    """Compare what each released class shows of its aggregated columns with what its rows in the source give.

    Raises
    ------
    VerificationError
        If a class shows another statistic, or several.

    Cost: of each column one scan of source and release; its distinct values of each class travel.
    """
    for c in plan.aggregated:
        shown, cells = _numbered(plan, c, source, labelled, written, engine)
        k, text = plan.demands.k, plan.text
        wrong = sum(not _is(c, value, cells.get(number, {}), k, text=text) for number, value in shown)
        if wrong:
            raise VerificationError.at(
                plan.key,
                f"the release failed its re-check: {wrong} classes do not show the {c.statistic} of {c.name} that "
                "their rows in the source give",
            )


def _numbered(
    plan: TablePlan,
    c: Aggregated,
    source: exp.Expr,
    labelled: Sequence[Mapping[str, object]],
    written: exp.Expr,
    engine: Engine,
) -> tuple[list[tuple[int, Shown]], dict[int, dict[int, int]]]:
    """What released classes show, and the cells that their rows in the source lie in with how many do, by number."""
    names, bench = [identifier(f"q{i}") for i in range(len(plan.qis))], engine.bench
    split = engine.make(
        "tables/verify/split_cells", f"{plan.name}_verify_cells", source=source, columns=list(labelled), cell=c.cell
    )
    columns = [{"name": n, "column": column(q.name, "r")} for n, q in zip(names, plan.qis, strict=True)]
    grouped = engine.make(
        "tables/verify/group_statistics",
        f"{plan.name}_verify_told",
        release=written,
        columns=columns,
        statistic=column(c.name, "r"),
        type=exp.DataType.build(c.leaves_as(text=plan.text), dialect="duckdb"),
    )
    numbered = bench.make(
        "tables/verify/number_statistics", f"{plan.name}_verify_numbered", grouped=engine.to_bench(grouped)
    )
    cells: dict[int, dict[int, int]] = {}
    there = bench.ask(
        "tables/verify/list_cells", numbered=numbered, cells=engine.to_bench(split), columns=names
    ).to_pydict()
    for number, cell, n in zip(there["number"], there["cell"], there["n"], strict=True):
        cells.setdefault(number, {})[int(cell)] = n
    told = bench.ask("tables/verify/list_statistics", numbered=numbered).to_pydict()
    return list(zip(told["number"], told["shown"], strict=True)), cells


def _is(c: Aggregated, shown: Shown, cells: Mapping[int, int], k: int, *, text: bool) -> bool:
    try:
        return shown == expected(c, cells, k, text=text)
    except OverflowError:  # no date of the calendar, so no release shows it
        return False


def expected(c: Aggregated, cells: Mapping[int, int], k: int, *, text: bool) -> Shown:
    """What a class shows whose rows lie in these cells, so many in each."""
    n = sum(cells.values())
    if n < k:
        return None
    match c.statistic:
        case "mean":
            return c.averaged(sum(cell * times for cell, times in cells.items()), n, text=text)
        case "median":
            inner = _in_order(cells)
            while len(inner) > k + 1:
                inner = inner[1:-1]
            return c.averaged(sum(inner.tolist()), len(inner), text=text)
        case "mode":
            most = max(cells.values())
            return c.at(min(x for x, times in cells.items() if times == most), text=text) if most >= k else None
        case "interval":
            least, greatest = min(cells), max(cells)
            low = next(a for a, b in _steps(least) if _within(cells, a, b) >= k)
            high = next(b for a, b in _steps(greatest) if _within(cells, a, b) >= k)
            return c.between(low, high)


def _in_order(cells: Mapping[int, int]) -> Ints:
    """The cells of all rows, as long as they are no more than the middle needs at most."""
    found: Ints = np.repeat(np.array(sorted(cells), dtype=np.int64), [cells[x] for x in sorted(cells)])
    return found


def _steps(cell: int) -> Iterator[tuple[int, int]]:
    """The steps that hold a cell, finest first, from where to where: of 1, 2, 4 … cells, then those across 0."""
    width = 1
    while width < 2**60:
        yield cell // width * width, cell // width * width + width
        width *= 2
    width = 1
    while True:
        if -width <= cell < width:
            yield -width, width
        width *= 2


def _within(cells: Mapping[int, int], low: int, high: int) -> int:
    return sum(n for cell, n in cells.items() if low <= cell < high)
