"""The model `tonight`, de-identified, as a dbt-duckdb Python model; nothing but the released rows comes back to dbt."""

import json
import os
import tomllib
from pathlib import Path

import duckdb

import sqldeid


def model(dbt, session):
    """Release tonight's visits; dbt makes a table of what is returned."""
    dbt.config(materialized="table")
    folder = Path(dbt.config.get("release_folder"))  # models/release.yml says where
    asked = tomllib.loads((folder / "job.toml").read_text(encoding="utf-8"))
    job = sqldeid.Job.parse({"tables": asked["tables"]}, folder=folder, name="job.toml")
    policy = folder / "policy.json"
    options = sqldeid.Options(
        policy=policy if policy.exists() else None, ledger=folder / "ledger.duckdb", key_file=folder / "key"
    )
    rows = dbt.ref("tonight").to_arrow_table()
    with duckdb.connect() as private:  # dbt's own connection is within a transaction
        private.register("rows", rows)
        private.execute("CREATE TABLE visits AS SELECT * FROM rows")
        result = sqldeid.anonymize(job, private, options=options)
        if not policy.exists():
            with open(os.open(policy, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                json.dump(result.to_dict(), file)
        released = private.sql("SELECT * FROM release.visits").to_arrow_table()
    return released
