"""De-identify inside a pipeline that holds an open DuckDB connection: `python etl.py [FOLDER]`.

The release lands in the same database, in a schema of its own; the connection stays usable, its settings as they were.
"""

import sys
from pathlib import Path

import duckdb

import sqldeid

JOB = {
    "tables": {
        "visits": {
            "source": "staging.visits",
            "person": "patient",
            "columns": {
                "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
                "zip": {"role": "quasi-identifying", "hierarchy": {"mask": [1, 2, 3]}},
                "admitted": {"role": "quasi-identifying", "hierarchy": {"dates": ["month", "quarter", "year"]}},
                "ward": {"role": "insensitive"},
            },
            "privacy": {"k": 5, "suppression_limit": 0.02},
        }
    }
}


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """What the pipeline did before: two thousand visits of nobody."""
    connection.execute("CREATE SCHEMA staging")
    connection.execute(
        """
        CREATE TABLE staging.visits AS
        SELECT i AS patient, 18 + (i * 7919) % 70 AS age, CAST(10000 + (i * 104729) % 400 AS VARCHAR) AS zip,
               DATE '2024-01-01' + CAST((i * 31) % 366 AS INTEGER) AS admitted, 'ward ' || (i % 5) AS ward
        FROM range(2000) AS r(i)
        """
    )


def main(folder: Path) -> None:
    """Load, de-identify, and hand on a Parquet file."""
    with duckdb.connect() as connection:
        load(connection)
        try:
            result = sqldeid.anonymize(sqldeid.Job.parse(JOB, name="nightly visits"), connection)
        except sqldeid.SqldeidError as error:
            sys.exit(f"visits were not released: {error}")
        release = result.releases["visits"]
        connection.execute("COPY release.visits TO ? (FORMAT parquet)", [str(folder / "visits.parquet")])
        print(f"{release.released} of {release.rows} visits released at {dict(release.node)}, k = {release.k}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
