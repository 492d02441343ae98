"""The made hospital and seeded jobs of the mortality benchmark's series."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from sqldeid.job import Job
from sqldeid.series.variables import load_map

TEXT = {"value": "VARCHAR", "valueuom": "VARCHAR"}


PRESET = {
    "preset": "benchmark17",
    "source": "mimiciii.chartevents",
    "person": "icustay_id",
    "durations": {"k": 10},
    "privacy": {"k": 5},
}


def seeded(**changes: object) -> Job:
    """The preset's release of the tables of `demo`, the same each time."""
    part = {**PRESET, "source": "chartevents", "perturb": {"seed": 5}, **changes}
    return Job.parse({"release": {"schema": "preset"}, "series": {"vitals": part}})


def demo(folder: Path) -> dict[str, pa.Table]:
    """The demo's tables as mimic-code calls them; of the events those of the preset's items in the first two days."""
    items = tuple(int(item.code) for item in load_map("mimic3/vitals", (), folder, "v").items)
    stays = f"SELECT DISTINCT subject_id, hadm_id, intime FROM read_csv('{folder / 'ICUSTAYS.csv'}')"
    tables = {}
    with duckdb.connect() as c:
        for name in ("icustays", "admissions", "patients"):
            read = c.sql(f"SELECT * EXCLUDE row_id FROM read_csv('{folder / name.upper()}.csv')")
            tables[name] = read.to_arrow_table()
        for name in ("chartevents", "labevents"):
            columns = ("icustay_id, " if name == "chartevents" else "") + "charttime, itemid, value, valueuom"
            read = c.sql(
                f"SELECT subject_id, hadm_id, {columns} "
                f"FROM read_csv('{folder / name.upper()}.csv.gz', types = {TEXT}) "
                f"JOIN ({stays}) USING (subject_id, hadm_id) WHERE itemid IN {items} "
                "AND charttime BETWEEN intime - INTERVAL 1 HOUR AND intime + INTERVAL 49 HOUR"
            )
            tables[name] = read.to_arrow_table()
    return {name: table.rename_columns([c.lower() for c in table.column_names]) for name, table in tables.items()}
