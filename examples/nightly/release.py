"""Tonight's release as a function, for whatever runs your pipeline: `python release.py DATABASE FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import sqldeid


def release(database: Path | str, folder: Path) -> dict[str, object]:
    """De-identify tonight's load by last night's policy; the numbers that a pipeline shows.

    Parameters
    ----------
    database
        A DuckDB file, or a server as ``postgresql:///?service=hospital``, whose password stands in ``~/.pgpass``.
    folder
        Holds ``job.toml`` and ``key``; policy, ledger and release are kept there.

    Raises
    ------
    sqldeid.SqldeidError
        With `code` 4 where the criteria no longer hold; the last release stays.
    """
    policy = folder / "policy.json"
    options = sqldeid.Options(
        replace=True,
        policy=policy if policy.exists() else None,
        ledger=folder / "ledger.duckdb",
        key_file=folder / "key",
    )
    result = sqldeid.anonymize(sqldeid.Job.load(folder / "job.toml"), database, options=options)
    if not policy.exists():
        with open(os.open(policy, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            json.dump(result.to_dict(), file)
    made = result.releases["visits"]
    return {"rows": made.rows, "released": made.released, "held_back": (made.ledger or {})["held_back"], "k": made.k}


if __name__ == "__main__":
    print(json.dumps(release(sys.argv[1], Path(sys.argv[2]))))  # noqa: T201
