"""Sensitive columns of criteria: their values coded in order, and the classes split by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import identifier
from sqldeid.tables.criteria import others_of, terms_of
from sqldeid.tables.fold.combined import Combined, Separate
from sqldeid.tables.plan.plan import OtherColumn, TablePlan


@dataclass(frozen=True, slots=True)
class Sensitive:
    """A sensitive column, its values numbered from 0 in order; NULL is a value, the last.

    Parameters
    ----------
    table
        original → code, for values that are not NULL.
    rows
        Rows of the whole table per code; shape (values,).
    null_code
        Code of NULL where the column has NULLs.
    spread_table
        Words, s, n: the classes of the source split by this column; set by `spread`.
    joint_table
        Words, the other sensitive columns' codes (`others`), s, n: for joint criteria, else None; set by `spread`.
    reference
        s, n, q, pq: the whole table's distribution, cumulated; from s = -1.
    """

    column: OtherColumn
    table: exp.Table
    rows: Ints
    null_code: int | None
    reference: exp.Table
    spread_table: exp.Table | None = None
    joint_table: exp.Table | None = None
    others: tuple[exp.Identifier, ...] = ()

    @property
    def values(self) -> int:
        """Number of distinct values, NULL among them."""
        return len(self.rows)

    def in_fold(self, number: int) -> dict[str, object]:
        """Parameters of the fold's template."""
        return {
            "name": code_name(number),
            "alias": identifier(f"t{number}"),
            "column": self.column.column,
            "coded": self.table,
            "null_code": self.null_code,
        }

    def spread(
        self, plan: TablePlan, number: int, engine: Engine, folded: exp.Table, words: Sequence[exp.Identifier]
    ) -> Sensitive:
        """Split the folded classes by the column, and by the others where a criterion is joint; with those tables."""
        mine = [c for c in plan.criteria if c.column == self.column.name]
        others = tuple(code_name(i) for i in range(len(plan.judged)) if i != number)
        joint = any(others_of(c) for c in mine)
        return replace(
            self,
            spread_table=_spread(plan, number, engine, folded, words),
            joint_table=_spread(plan, number, engine, folded, [*words, *others]) if joint else None,
            others=others,
        )


def code_name(number: int) -> exp.Identifier:
    """A sensitive column's codes in the fold: s0, s1 and so on."""
    return identifier(f"s{number}")


def _spread(
    plan: TablePlan, number: int, engine: Engine, folded: exp.Table, groups: Sequence[exp.Identifier]
) -> exp.Table:
    return engine.make(
        "tables/fold/spread_classes",
        f"{plan.name}_spread_{number}",
        folded=folded,
        words=list(groups),
        sensitive=code_name(number),
    )


def code_sensitive(plan: TablePlan, number: int, engine: Engine, held: Separate | Combined) -> Sensitive:
    """Number the values of a sensitive column: by value, or by the order that the job states.

    Parameters
    ----------
    number
        Of the column among those that are judged.

    Raises
    ------
    JobError
        If a stated order does not name every value, or more values are asked for than there are.
    """
    column, place = plan.judged[number], len(plan.qis) + number
    values, n = held.values(place)
    _refuse_too_diverse(plan, column, len(values))
    codes, places = _ranks(plan, column, values, engine)
    rows = np.zeros(places, dtype=np.int64)
    rows[codes] = n
    null_code = int(codes[pc.index(values.is_null(), True).as_py()]) if values.null_count else None
    reference = engine.bench.put(f"{plan.name}_sensitive_{column.name}_reference", reference_of(rows))
    return Sensitive(column, held.code(place, codes), rows, null_code, reference)


def _spelled(values: pa.Array, engine: Engine) -> list[object]:
    """Dates and times as the workbench spells them: Python has none that is infinite or not of the years 1 to 9999."""
    numbers = pa.array(range(len(values)), pa.int64())
    put = engine.bench.put("spelled", pa.table({"value": values, "n": numbers, "place": numbers}))
    rows = engine.bench.ask("tables/fold/list_ranked", ranked=put).sort_by("place")
    engine.bench.drop(put)
    found: list[object] = rows.column("value").to_pylist()
    return found


def _refuse_too_diverse(plan: TablePlan, column: OtherColumn, there: int) -> None:
    """No class can have more values than the whole table: entropy and recursive l ask for l distinct ones, too."""
    for criterion in plan.criteria:
        if criterion.column == column.name and (least := terms_of(criterion).l) > max(there, 1):
            key = f"{plan.key}.privacy.{criterion.key}"
            values = "value" if there == 1 else "different values"
            raise JobError.at(
                key,
                f"l is {least}, but {column.name} has only {there} {values} (NULL is one); l can be at most {there}",
            )


def reference_of(rows: Ints) -> pa.Table:
    """Values s = -1, 0, 1 … with their rows n, rows of values up to s (q), and the sum of q up to s (pq)."""
    q = np.cumsum(rows)
    return pa.table(
        {
            "s": np.arange(-1, len(rows), dtype=np.int64),
            "n": np.concatenate([[0], rows]).astype(np.int64),
            "q": np.concatenate([[-1], q]).astype(np.int64),
            "pq": np.concatenate([[0], np.cumsum(q)]).astype(np.int64),
        }
    )


def _ranks(plan: TablePlan, column: OtherColumn, values: pa.Array, engine: Engine) -> tuple[Ints, int]:
    """Code of each value, and the number of codes: places of the stated order, also of values that are not there."""
    order = plan.demands.order_of(column.name)
    if not order:
        return np.arange(len(values), dtype=np.int64), len(values)
    found = _spelled(values, engine) if pa.types.is_temporal(values.type) else values.to_pylist()
    rank = {text: i for i, text in enumerate(order)}
    texts = [None if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in found]
    missing = sum(text not in rank for text in texts if text is not None)
    if missing:
        what = "order leaves out" if plan.demands.hierarchy_of(column.name) is None else "its hierarchy leaves out"
        many = "1 value" if missing == 1 else f"{missing} values"
        raise JobError.at(f"{plan.key}.privacy.t_closeness", f"{what} {many} of {column.name}; name all of them")
    codes = np.array([len(order) if text is None else rank[text] for text in texts], dtype=np.int64)
    return codes, len(order) + (None in found)
