"""Released values that link the rows of one person, where a person may have many rows (`rows = "many"`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import render
from sqldeid.sql.steps import step
from sqldeid.stages import Step
from sqldeid.tables.plan.plan import OtherColumn, TablePlan
from sqldeid.tables.rows.shape import comparable


def count_linking(
    person: exp.Column, columns: Sequence[exp.Expr], source: exp.Expr, engine: Engine
) -> list[tuple[int, int]]:
    """Of each column: values that only one person has, in several rows, and these rows. Cost: a grouping a column."""
    if not columns:
        return []
    statement = render("tables/release/count_linking", source=source, person=person, columns=list(columns))
    return [(int(r["different"]), int(r["rows"])) for r in engine.query(statement).to_pylist()]


def linking_values(plan: TablePlan, engine: Engine, source: exp.Expr) -> list[str]:
    """Refuse insensitive columns that link a person's rows; warnings about sensitive ones that do.

    Raises
    ------
    JobError
        If a value of an insensitive column is one person's alone, in several rows.
    """
    if not plan.many or plan.person_column is None:
        return []
    others = list(plan.others)
    columns = [comparable(c.leaving, c.source.kind, engine) for c in others]
    found = count_linking(plan.person_column, columns, source, engine)
    told = [(c, values, rows) for c, (values, rows) in zip(others, found, strict=True) if values]
    for c, values, rows in told:
        if c.role != "sensitive":
            key = f"{plan.key}.columns.{c.name}"
            raise JobError.at(
                key,
                f"it has values that are one person's alone, in several rows ({values:,}, in {rows:,} rows), "
                'which tells that these are of one person; with rows = "many" make it quasi-identifying, or '
                "leave it out",
            )
    return [_warning(plan, c, values, rows) for c, values, rows in told]


def linking(plan: TablePlan) -> Iterator[Step]:
    """What `linking_values` runs."""
    if plan.many and plan.others:
        yield step("tables/release/count_linking")


def _warning(plan: TablePlan, c: OtherColumn, values: int, rows: int) -> str:
    return (
        f"{plan.key}.columns.{c.name}: values that are one person's alone, in several rows: {values:,}. Who sees such "
        "a value twice knows that the rows are one person's, and may seek who is in both classes"
    )
