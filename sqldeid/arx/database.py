"""The data of an ARX project as a table of a new DuckDB file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from sqldeid.engine.plain import Workshop
from sqldeid.errors import EngineError
from sqldeid.sql import identifier, render, table_name


def write_database(file: Path, name: str, rows: pa.Table) -> Path:
    """Write a new DuckDB file with one table in schema main.

    Raises
    ------
    EngineError
        If it cannot be written, for example because the disk is full.
    """
    try:
        with Workshop(file) as shop:
            made = shop.path / file.name
            # The oldest storage format: whoever is handed the data may have an older DuckDB.
            with duckdb.connect(made, config={"storage_compatibility_version": "v1.0.0"}) as connection:
                connection.register("rows_of_project", rows)
                columns = [identifier(column) for column in rows.column_names]
                given = table_name("rows_of_project")
                connection.execute(
                    render("arx/create_table", table=table_name("main", name), rows=given, columns=columns)
                )
            shop.bring(made).rename(file)
    except duckdb.Error as error:
        raise EngineError(f"{file.name}: the data could not be written ({type(error).__name__})") from error
    return file
