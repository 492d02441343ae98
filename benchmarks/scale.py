"""Adult at any size: rows resampled with replacement, a tenth of all cells redrawn from their column (seeded)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

CHUNK = 1_000_000


def scale_adult(data: Path, database: Path, rows: int, *, seed: int = 1, redrawn: float = 0.1) -> None:
    """Write table `adult` (id and the nine attributes of `data/adult/adult.csv`) with `rows` rows."""
    source = csv.read_csv(
        data / "adult" / "adult.csv",
        parse_options=csv.ParseOptions(delimiter=";"),
    )
    random = np.random.Generator(np.random.PCG64(seed))
    connection = duckdb.connect(str(database))
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        picked = random.integers(0, source.num_rows, size)
        columns = {"id": pa.array(np.arange(start, start + size))}
        for name in source.column_names:
            redraw = random.random(size) < redrawn
            index = np.where(redraw, random.integers(0, source.num_rows, size), picked)
            columns[name] = source.column(name).take(pa.array(index)).combine_chunks()
        chunk = pa.table(columns)
        connection.register("chunk", chunk)
        verb = "CREATE TABLE adult AS" if start == 0 else "INSERT INTO adult"
        connection.execute(f"{verb} SELECT * FROM chunk").fetchall()
        connection.unregister("chunk")
    connection.close()
