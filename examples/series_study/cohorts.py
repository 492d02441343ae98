"""From files to series, classes and releases: what the study's tables and figures are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqldeid.engine.base import Engine
from sqldeid.engine.opening import open_connection
from sqldeid.job.series import STATISTICS, Series
from sqldeid.series.attack_sample import AttackSample
from sqldeid.series.blocks import Block, release_blocks
from sqldeid.series.features import classify
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.planning import plan
from sqldeid.series.shape import Shaped, shape

HERE = Path(__file__).parent
SEED = 2020
"""For figures that can be repeated; a real release leaves the seed out."""

VARIABLES = {
    "heart rate": {"items": ["HR"], "low": 20, "high": 300, "resolution": 1},
    "systolic": {"items": ["SysABP", "NISysABP"], "low": 30, "high": 300, "resolution": 1},
    "diastolic": {"items": ["DiasABP", "NIDiasABP"], "low": 10, "high": 200, "resolution": 1},
    "oxygen saturation": {"items": ["SaO2"], "low": 40, "high": 100, "resolution": 1},
    "glucose": {"items": ["Glucose"], "low": 10, "high": 2000, "resolution": 1},
}
"""The source's high-risk dimensions (§5.1) by the names of the Challenge 2012; plausible ranges, device resolutions."""

CHALLENGE: dict[str, object] = {
    "source": {"query": "SELECT recordid, minute, parameter, value FROM measurements WHERE value >= 0"},
    "person": "recordid",
    "time": "minute",
    "time_unit": "minutes",
    "variable": "parameter",
    "value": "value",
    "variables": VARIABLES,
    "min_steps": 12,
    "durations": {"k": 50},
    "privacy": {"k": 5},
    "labels": {"source": "outcomes", "person": "recordid", "column": "in_hospital_death"},
}
MIMIC: dict[str, object] = {
    "source": "mimiciii.chartevents",
    "person": "icustay_id",
    "time": "charttime",
    "variable": "itemid",
    "value": "valuenum",
    "variables": "mimic3/vitals",
    "min_steps": 12,
    "durations": {"k": 10},
    "privacy": {"k": 5},
}
MIMIC_DROP = (
    *("Capillary refill rate", "Fraction inspired oxygen", "Height", "Mean blood pressure", "Respiratory rate"),
    *("Temperature", "Weight", "pH"),
)

LOAD_MEASUREMENTS = (
    "CREATE TABLE measurements AS SELECT * FROM read_parquet(?) "
    "WHERE recordid IN (SELECT recordid FROM outcomes ORDER BY recordid LIMIT ?)"
)
LOAD_MIMIC = {
    "CHARTEVENTS": "CREATE TABLE mimiciii.chartevents AS SELECT * FROM read_csv(?, types = {'value': 'VARCHAR'}, "
    "auto_type_candidates = ['BIGINT', 'DOUBLE', 'TIMESTAMP', 'VARCHAR'])",
    "ICUSTAYS": "CREATE TABLE mimiciii.icustays AS SELECT * FROM read_csv(?)",
}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cohort:
    """Persons of one released length.

    Parameters
    ----------
    original, released
        (persons, variables, length), NaN where there is no record.
    feature_class, person_number
        (persons,).
    """

    original: Array
    released: Array
    feature_class: NDArray[np.int64]
    person_number: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Steps."""
        return self.original.shape[2]


def load_challenge(folder: Path, most: int | None = None) -> duckdb.DuckDBPyConnection:
    """Tables `measurements` and `outcomes` of the Challenge 2012 (set-a.parquet, outcomes-a.parquet)."""
    connection = duckdb.connect()
    outcomes, measurements = (str(folder / f"{name}-a.parquet") for name in ("outcomes", "set"))
    connection.execute("CREATE TABLE outcomes AS SELECT * FROM read_parquet(?)", [outcomes])
    connection.execute(LOAD_MEASUREMENTS, [measurements, 10**9 if most is None else most])
    return connection


def load_mimic(folder: Path) -> duckdb.DuckDBPyConnection:
    """Tables chartevents and icustays of MIMIC-III (or its demo) from CSV files, in the schema mimiciii."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA mimiciii")
    for name, statement in LOAD_MIMIC.items():
        connection.execute(statement, [str(next(folder.glob(f"{name}.csv*")))])
    return connection


def release(
    connection: duckdb.DuckDBPyConnection, part: Mapping[str, object], *, left_out: str = "", **more: object
) -> tuple[Shaped, list[Block], list[Cohort]]:
    """Prepare, shorten, classify and perturb as `sqldeid anonymize` does, and keep originals and releases side by side.

    Nothing is written: this is what only the holder of the data can do.

    Parameters
    ----------
    left_out
        ``classes``: the variance forms no classes, though it is made common. ``targets``: nor is it made common.
    """
    asked = Series.model_validate({**part, **more})
    with open_connection(connection) as engine:
        engine.begin()
        planned = plan("study", asked, engine, HERE)
        shaped = shape(planned, engine, lambda step, text: None)
        names = shaped.prepared.variables
        if left_out:
            shaped = _without_variance(planned, shaped, engine, kept=left_out == "targets")
        blocks = list(release_blocks(planned, names, shaped.cut, shaped.measured, shaped.classes, SEED, engine))
    sample = AttackSample(len(names.names))
    for block in blocks:
        sample.add(block, shaped.measured, shaped.classes)
    cohorts = [
        Cohort(*(np.concatenate([piece[i] for piece in pieces]) for i in range(4)))
        for _, pieces in sorted(sample.kept.items())
    ]
    return shaped, blocks, cohorts


def _without_variance(planned: SeriesPlan, shaped: Shaped, engine: Engine, *, kept: bool) -> Shaped:
    """The same with classes formed of mean, minimum and maximum; with `kept` each series keeps its own variance."""
    by = [name for name in STATISTICS if name != "variance"]
    classes = classify(planned, shaped.prepared.variables, shaped.measured, engine.bench, by=by)
    if kept:
        values = classes.targets.values.copy()
        values[:, 1] = np.where(np.isnan(values[:, 1]), np.nan, shaped.measured.features.variance)
        classes = replace(classes, targets=replace(classes.targets, values=values))
    return replace(shaped, classes=classes)


def complete(cohorts: list[Cohort], length: int) -> Array:
    """(persons, variables, length): stays with all variables, ends carried, their last `length` steps."""
    whole = [
        np.apply_along_axis(_carried, 2, c.original[(~np.isnan(c.original)).any(axis=2).all(axis=1)])[:, :, -length:]
        for c in cohorts
        if c.length >= length
    ]
    return np.concatenate([part for part in whole if len(part)])


def _carried(series: Array) -> Array:
    there = np.flatnonzero(~np.isnan(series))
    return np.interp(np.arange(len(series)), there, series[there])


def store_complete(connection: duckdb.DuckDBPyConnection, values: Array) -> dict[str, object]:
    """Write complete series to a table and give the part of a job that reads it."""
    person, variable, step = (axis.reshape(-1) for axis in np.indices(values.shape))
    rows = pa.table({"person": person, "variable": variable, "step": step, "value": values.reshape(-1)})
    name = f"complete_{values.shape[2]}"
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.from_arrow(rows).create(name)
    columns = {"person": "person", "time": "step", "time_unit": "hours", "variable": "variable", "value": "value"}
    return {"source": name, **columns, "durations": {"k": 5}}
