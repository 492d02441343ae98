"""The source as one row per person: what statements read, and the check that nobody is in it twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import identifier, render
from sqldeid.tables.plan import TablePlan


def keep(plan: TablePlan, engine: Engine) -> exp.Expr:
    """The relation that statements read; a query's rows are kept first, so that its joins run once."""
    if not plan.joined:
        return plan.source
    kept = engine.workbench(f"{plan.name}_source")
    names = dict.fromkeys(c.source.name for c in plan.released)
    if plan.person is not None:
        names.setdefault(plan.person)
    columns = [identifier(n) for n in names]
    with _naming(plan):
        engine.execute(render("tables/keep_source", kept=kept, columns=columns, source=plan.source))
    return kept


def count_persons(plan: TablePlan, engine: Engine, source: exp.Expr) -> int:
    """Rows of the source; the person key must be there on each, and on no two."""
    with _naming(plan):
        row = engine.query(render("tables/check_person", source=source, person=plan.person_column)).to_pylist()[0]
    rows, keyed, persons = int(row["rows"]), int(row["keyed"]), int(row["persons"])
    key = f"{plan.key}.person"
    if rows == 0:
        raise JobError(f"{plan.key}: {plan.source_label} has no rows (after `where`); there is nothing to release")
    if keyed < rows:
        raise JobError(f"{key}: {plan.person} is NULL in {rows - keyed} rows of {plan.source_label}", key=key)
    if plan.person is not None and persons < rows:
        raise JobError(
            f"{key}: {plan.source_label} has {rows} rows but {persons} values of {plan.person}; "
            "k counts persons, so give one row per person (a query that picks one)",
            key=key,
        )
    return rows


@contextmanager
def _naming(plan: TablePlan) -> Iterator[None]:
    """Name the job's SQL in what its first run meets, such as a division by zero."""
    try:
        yield
    except JobError as error:
        if error.key:
            raise
        source = "source.query" if plan.joined else "source"
        key = f"{plan.key}.{source if plan.part.where is None else 'where'}"
        also = f" or {source}" if plan.joined and plan.part.where is not None else ""
        raise JobError(f"{key}{also}: {error.message}", key=key) from None
