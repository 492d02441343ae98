"""What files of Parquet cannot hold is refused while a release is planned, by the types of its columns."""

from __future__ import annotations

from sqldeid.engine.base import Column, Engine
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.events.plan import EventsPlan
from sqldeid.run.wings import Plan
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.plan.columns import OtherColumn, refuse_in_parquet, refuse_own_types_in_parquet
from sqldeid.tables.plan.plan import TablePlan


def refuse_types(planned: TablePlan | Plan, engine: Engine) -> None:
    """Refuse types that do not go into Parquet; those of a server's source when its rows come, as other types.

    Raises
    ------
    JobError
        With release and column, for the first that does not.
    """
    refuse_in_parquet(_released(planned), planned.key)
    if isinstance(engine, DuckDBEngine):
        refuse_own_types_in_parquet(_typed(planned))


def _released(planned: TablePlan | Plan) -> list[tuple[str, Column]]:
    """The columns of a table release, by name."""
    if isinstance(planned, TablePlan):
        return [(c.name, c.source) for c in planned.released]
    return [(name, source) for name, source, _ in planned.others] if isinstance(planned, PartitionPlan) else []


def _typed(planned: TablePlan | Plan) -> list[tuple[str, Column]]:
    """The columns of the source that leave with their own types, whatever is found, by their keys in the job."""
    if isinstance(planned, EventsPlan):
        return [] if planned.domain is not None else [(f"{planned.key}.state", c) for c in planned.states]
    kept = _released(planned)
    if isinstance(planned, TablePlan):
        kept = [(c.name, c.source) for c in planned.released if isinstance(c, OtherColumn) and c.typed]
    return [(f"{planned.key}.columns.{name}", source) for name, source in kept]
