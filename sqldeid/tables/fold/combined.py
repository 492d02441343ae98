"""Read the distinct values of the columns and code them: one by one in DuckDB, in one statement elsewhere.

A server keeps the distinct combinations first, so that its rows are read once, for the values of every column and for
the fold. Remote round trips are expensive, so all columns share their statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import naming_unread
from sqldeid.sql import column, identifier
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan


@dataclass(frozen=True, slots=True)
class Separate:
    """The source itself; a scan of it for every column.

    Parameters
    ----------
    table, n
        What the fold reads, and the column that counts its rows: none, each is one.
    every
        The values of the columns that were asked for, by place.
    """

    plan: TablePlan
    engine: Engine
    table: exp.Expr
    n: None = None
    every: dict[int, exp.Table] = field(default_factory=dict)

    def values(self, place: int) -> tuple[pa.Array, Ints]:
        """The distinct values of the column at a place, in order, and the rows of each; those judged are last."""
        values = self.every[place] = self.engine.workbench(f"{self.plan.name}_values_{place}")
        asked = _coded(self.plan)[place]
        self.engine.run(
            "tables/rows/count_values", values=values, column=asked.column, type=asked.travel_type, source=self.table
        )
        read = self.engine.ask("tables/rows/read_values", values=values)
        return read.column("value").combine_chunks(), read.column("n").to_numpy().astype(np.int64)

    def code(self, place: int, codes: Ints) -> exp.Table:
        """The table of the column's values with these codes, one per value in order."""
        ids = np.arange(1, len(codes) + 1, dtype=np.int64)
        staged = self.engine.put(f"{self.plan.name}_codes_{place}", pa.table({"id": ids, "code": codes}))
        return self.engine.make(
            "tables/fold/code_values", f"{self.plan.name}_coded_{place}", values=self.every[place], codes=staged
        )

    def send(self) -> None:
        """Every table is there already."""


@dataclass(frozen=True, slots=True)
class Combined:
    """The distinct combinations of a source's values, and the distinct values of every column in them.

    Parameters
    ----------
    table, n
        The combinations, and the column of `s` that counts their rows.
    every, read
        The values of all columns, in the engine and here; the quasi-identifying columns first, then those judged.
    coded
        Tables that were promised by `code`, with their columns' places; `send` makes them.
    """

    plan: TablePlan
    engine: Engine
    table: exp.Table
    n: exp.Column
    every: exp.Table
    read: pa.Table
    coded: list[tuple[exp.Table, int, Ints]] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine, source: exp.Expr) -> Combined:
        """Count the combinations, and what every column holds. Cost: one scan of the source."""
        table, every = (engine.workbench(f"{plan.name}_{name}") for name in ("combined", "values"))
        columns, n = combined_columns(plan)
        engine.run("tables/fold/combine_rows", combined=table, source=source, columns=columns, n=identifier(n.name))
        counted = counted_columns(plan)
        engine.run("tables/fold/count_every", values=every, columns=counted, source=table, n=n)
        with naming_unread(lambda v: f"{plan.key}.columns.{_coded(plan)[int(v.removeprefix('v'))].name}"):
            read = engine.ask("tables/fold/read_every", values=every, columns=[c["value"] for c in counted])
        return cls(plan, engine, table, n, every, read)

    def values(self, place: int) -> tuple[pa.Array, Ints]:
        """The distinct values of the column at a place, in order, and the rows of each."""
        mine = self.read.filter(pc.equal(self.read.column("c"), place))
        return mine.column(f"v{place}").combine_chunks(), mine.column("n").to_numpy().astype(np.int64)

    def code(self, place: int, codes: Ints) -> exp.Table:
        """The table of the column's values with these codes, one per value in order; it is there after `send`."""
        table = self.engine.workbench(f"{self.plan.name}_coded_{place}")
        self.coded.append((table, place, codes))
        return table

    def send(self) -> None:
        """Make the tables that were promised."""
        places = [np.full(len(codes), place, dtype=np.int64) for _, place, codes in self.coded]
        ids = [np.arange(1, len(codes) + 1, dtype=np.int64) for _, _, codes in self.coded]
        codes = [codes for _, _, codes in self.coded]
        rows = pa.table({"c": np.concatenate(places), "id": np.concatenate(ids), "code": np.concatenate(codes)})
        sent = self.engine.put(f"{self.plan.name}_codes", rows)
        names = [_original(place) for place in range(len(_coded(self.plan)))]
        every = self.engine.make(
            "tables/fold/code_every", f"{self.plan.name}_coded", values=self.every, codes=sent, columns=names
        )
        for table, place, _ in self.coded:
            self.engine.run("tables/fold/pick_coded", coded=table, every=every, place=place, column=_original(place))


def held(plan: TablePlan, engine: Engine, source: exp.Expr) -> Separate | Combined:
    """What the columns of a source hold."""
    return Separate(plan, engine, source) if engine.bench is engine else Combined.of(plan, engine, source)


def combined_columns(plan: TablePlan) -> tuple[list[exp.Column], exp.Column]:
    """The columns whose combinations are counted before the fold, and what counts them: n, where none is called so."""
    names = list(dict.fromkeys([*(c.source.name for c in _coded(plan)), *([plan.person or ""] if plan.many else [])]))
    taken, n = {name.casefold() for name in names}, "n"
    while n in taken:
        n += "_"
    return [column(name, "s") for name in names], column(n, "s")


def counted_columns(plan: TablePlan) -> list[dict[str, object]]:
    """Parameters of the template that counts the values of every column."""
    return [
        {
            "column": c.column,
            "original": _original(place),
            "value": identifier(f"v{place}"),
            "type": c.travel_type,
        }
        for place, c in enumerate(_coded(plan))
    ]


def _coded(plan: TablePlan) -> Sequence[QuasiIdentifier | OtherColumn]:
    return (*plan.qis, *plan.judged)


def _original(place: int) -> exp.Identifier:
    return identifier(f"o{place}")
