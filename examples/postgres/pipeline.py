"""De-identify inside a pipeline that holds an open psycopg connection: `python pipeline.py URL`.

The connection is left as it was, its settings, too; the release lies in the same database and is committed by then.
"""

import sys
from pathlib import Path

import psycopg

import sqldeid


def run(url: str) -> sqldeid.Result:
    """Replace the nightly release, and say what went over the wire."""
    job = sqldeid.Job.load(Path(__file__).with_name("job.toml"))
    with psycopg.connect(url) as connection:
        result = sqldeid.anonymize(job, connection, options=sqldeid.Options(replace=True))
    release = result.releases["patients"]
    print(f"{release.released} of {release.rows} patients in {release.written[0]}, k = {release.k}")  # noqa: T201
    print(f"over the wire: {release.moved['rows']} rows, {release.moved['bytes']:,} bytes")  # noqa: T201
    return result


if __name__ == "__main__":
    run(sys.argv[1])
