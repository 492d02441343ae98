"""A private database file of the holder's, in an instance of its own: no file but it, no network."""

from __future__ import annotations

from pathlib import Path

from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import close_access, own_instance
from sqldeid.engine.settings import Settings

CATALOG = "sqldeid_private"


def open_private(path: Path, spill: Path, settings: Settings) -> DuckDBEngine:
    """Attach a database file for writing, in the storage version that DuckDB 1.4 reads; it is made where there is none.

    Parameters
    ----------
    path
        In `spill`, a private folder: nothing else can be opened afterwards.

    Raises
    ------
    EngineError
        If the file is no database.
    """
    connection = own_instance(spill, settings)
    engine = DuckDBEngine(connection, CATALOG, "main", own=True)
    try:
        engine.create_database(path, CATALOG)
        close_access(engine, spill)
    except BaseException:
        engine.close()
        raise
    return engine
