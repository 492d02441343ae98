"""What released rows are sorted by, so that rows which differ never stand as they did in the source."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.tables.plan.columns import OtherColumn


def order_of(column: OtherColumn, engine: Engine) -> list[exp.Expr]:
    """What rows are sorted by of a column beside the quasi-identifying ones."""
    return [column.leaving] if column.disguise is not None else sorted_by(column.leaving, column.source, engine)


def sorted_by(value: exp.Expr, source: Column, engine: Engine) -> list[exp.Expr]:
    """What a column that leaves as it stands is sorted by: no two values of it that differ are equal in all of these.

    DuckDB holds x and X equal under a collation, as it does 30 days and a month, and 0 and -0 within a list: a sort
    leaves them in the order in which they came, which is the source's. So texts are sorted by their bytes, and what
    has no bytes of its own by its text as well. Postgres sorts by the bytes of texts anyway; of Spark no order is told.
    A bare -0 leaves as 0, so that there is nothing to tell apart.

    Parameters
    ----------
    value
        The column, or what stands in its place, in the type of the source.
    """
    if engine.capabilities.dialect != "duckdb" or source.is_enum:
        return [value]
    if source.type == "VARCHAR":
        return [by_bytes(value)]
    if source.kind == "other":
        return [value, exp.cast(value.copy(), exp.DataType.build("varchar", dialect="duckdb"))]
    return [value]


def by_bytes(text: exp.Expr) -> exp.Expr:
    """Text that sorts by its bytes in DuckDB, whatever collation its column has."""
    return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))
