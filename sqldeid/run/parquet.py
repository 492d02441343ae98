"""What files of Parquet cannot hold is refused while a release is planned, by the types of its columns."""

from __future__ import annotations

from sqldeid import tables
from sqldeid.engine.base import Engine
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.making import Nature


def refuse_types(nature: Nature, engine: Engine) -> None:
    """Refuse types that do not go into Parquet; those of a server's source when its rows come, as other types.

    Raises
    ------
    JobError
        With release and column, for the first that does not.
    """
    for key, name, source in nature.released:
        tables.refuse_in_parquet([(name, source)], key)
    if isinstance(engine, DuckDBEngine):
        tables.refuse_own_types_in_parquet(nature.typed)
