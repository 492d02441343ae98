"""The data of `width.py`: where they come from, what is protected, and the outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from cohorts import CHALLENGE, SEED, VARIABLES, load_challenge
from numpy.typing import NDArray

from sqldeid.demo.hospital import mimic_rows

Part = Mapping[str, object]
PROTECTED = ("Heart Rate", "Systolic blood pressure", "Diastolic blood pressure", "Oxygen saturation", "Glucose")
MEANS = ("Height", "Weight")
DROPPED = ["Mean blood pressure"]
"""As in the source (§5.1): it says nothing that the other two pressures do not."""
FOUR = ["mean", "variance", "min", "max"]

OTHERS: dict[str, dict[str, object]] = {
    "Temperature": {"items": ["Temp"], "low": 25, "high": 45, "resolution": 0.1},
    "Respiratory rate": {"items": ["RespRate"], "low": 1, "high": 100, "resolution": 1},
    "pH": {"items": ["pH"], "low": 6.5, "high": 8, "resolution": 0.01},
    "Fraction inspired oxygen": {"items": ["FiO2"], "low": 0.2, "high": 1, "resolution": 0.01},
    "Glasgow coma scale": {"items": ["GCS"], "low": 3, "high": 15, "resolution": 1},
    "Height": {"items": ["Height"], "low": 100, "high": 250, "resolution": 0.1},
    "Weight": {"items": ["Weight"], "low": 20, "high": 300, "resolution": 0.1},
}
"""Of the Challenge's parameters those that the source has, besides the protected ones."""
LABORATORY = (
    *("BUN", "Creatinine", "HCT", "Platelets", "WBC", "Na", "HCO3", "K", "Mg", "Urine", "PaCO2", "PaO2"),
    *("Lactate", "AST", "ALT", "Bilirubin", "ALP", "Albumin"),
)
"""Those that it does not have (`--full`)."""


@dataclass(frozen=True)
class Case:
    """One data set: what loads it, the part of a job that reads it, and what is asked about its persons.

    Parameters
    ----------
    variables
        Their names, but for dropped ones.
    outcomes
        By name: a query of (person, 0 or 1).
    k
        Of feature classes: 10 as in the source, less where there are few persons.
    most_iterations
        Of the genetic algorithm, unless all is asked for: of thousands of stays it takes half an hour to
        its end, so that 0 leaves it out.
    """

    name: str
    load: Callable[[], duckdb.DuckDBPyConnection]
    part: Part
    variables: tuple[str, ...]
    outcomes: Mapping[str, str]
    k: int
    most_iterations: int = 200

    def methods(self, full: bool) -> dict[str, dict[str, object]]:
        """Settings of a release by the method's name."""
        four, means = {name.casefold() for name in PROTECTED}, {name.casefold() for name in MEANS}
        split = {
            name: FOUR if name.casefold() in four else ["mean"] if name.casefold() in means else []
            for name in self.variables
        }
        aware = {"k": self.k, "nulls": "null-aware"}
        genetic = {"method": "genetic"} | ({} if full else {"most_iterations": self.most_iterations})
        evolved = {"genetic": {"perturb": genetic, "privacy": aware | {"targets": "source"}, "features": split}}
        return {
            "mazzone2020": {
                "perturb": {"method": "source"},
                "privacy": {"k": self.k, "nulls": "source", "targets": "source"},
                "features": split,
            },
            **(evolved if full or self.most_iterations else {}),
            "projection": {"perturb": {"method": "projection"}, "privacy": aware, "features": split},
            "projection, all protected": {"perturb": {"method": "projection"}, "privacy": aware},
            "shared, all protected": {"privacy": {"k": self.k}},
        }

    def outcome(self, connection: duckdb.DuckDBPyConnection, query: str, numbers: list[int]) -> NDArray[np.float64]:
        """(persons,) the outcome of these person numbers, which count the persons that have series by their key."""
        persons = self._persons(connection)
        known = dict(connection.execute(query).fetchall())
        found = (known.get(persons[number - 1]) for number in numbers)
        return np.array([math.nan if value is None else float(value) for value in found])

    def _persons(self, connection: duckdb.DuckDBPyConnection) -> list[object]:
        """Keys of all persons in the order of their numbers."""
        from sqldeid.engine.opening import open_connection
        from sqldeid.job.series import Series
        from sqldeid.series.planning import plan
        from sqldeid.series.prepare import prepare

        with open_connection(connection) as engine:
            engine.begin()
            prepared = prepare(plan("study", Series.model_validate(self.part), engine, Path()), engine)
            read = connection.execute(f"SELECT person FROM {prepared.persons} ORDER BY person_number")  # noqa: S608
            return [row[0] for row in read.fetchall()]


def challenge(folder: Path, full: bool) -> Case:
    """The Challenge 2012: first 48 hours of 4,000 stays; -1 is a missing length of stay."""
    names = {name.casefold(): name for name in PROTECTED} | {
        "systolic": "Systolic blood pressure",
        "diastolic": "Diastolic blood pressure",
    }
    variables = {names[name]: value for name, value in VARIABLES.items()} | OTHERS
    if full:
        variables |= {name: {"items": [name]} for name in LABORATORY}
    part = {name: value for name, value in CHALLENGE.items() if name not in ("variables", "labels")}
    outcomes = {
        "death": "SELECT recordid, in_hospital_death FROM outcomes",
        "long stay": "SELECT recordid, CAST(length_of_stay > 10 AS INTEGER) FROM outcomes WHERE length_of_stay >= 2",
    }
    return Case(
        "Challenge 2012, 48 hours",
        lambda: load_challenge(folder),
        part | {"variables": variables},
        tuple(variables),
        outcomes,
        10,
        0,
    )


STAYS = {
    "death": "SELECT icustay_id, CAST(deathtime IS NOT NULL AS INTEGER) FROM mimiciii.icustays "
    "JOIN mimiciii.admissions USING (hadm_id)",
    "long stay": "SELECT icustay_id, CAST(los > 4 AS INTEGER) FROM mimiciii.icustays",
}
BENCHMARK = (
    *PROTECTED,
    *MEANS,
    *("Capillary refill rate", "Fraction inspired oxygen", "Respiratory rate", "Temperature", "pH"),
    *(f"Glascow coma scale {part}" for part in ("eye opening", "motor response", "total", "verbal response")),
)


def mimic_two_days(folder: Path) -> Case:
    """The mortality benchmark's stays, first 48 hours; of the demo 57, so k is 5."""
    part = {
        "preset": "benchmark17",
        "source": "mimiciii.chartevents",
        "person": "icustay_id",
        "drop": DROPPED,
        "durations": {"k": 10},
        "privacy": {"k": 5},
    }
    return Case("MIMIC-III, 48 hours", lambda: load_mimic(folder), part, BENCHMARK, STAYS, 5, 2000)


WHOLE: dict[str, object] = {
    "source": "mimiciii.chartevents",
    "person": "icustay_id",
    "time": "charttime",
    "variable": "itemid",
    "value": "valuenum",
    "variables": "mimic3/vitals",
    "drop": DROPPED,
    "min_steps": 5,
    "durations": {"k": 10},
    "privacy": {"k": 5},
}


def mimic_stays(folder: Path) -> Case:
    """All stays, from the first to the last record."""
    return Case(
        "MIMIC-III, whole stays", lambda: load_mimic(folder), WHOLE, BENCHMARK, {"death": STAYS["death"]}, 5, 6000
    )


def generated(patients: int) -> Case:
    """A hospital of a seeded generator, up to 72 hours of each stay; seven variables."""
    absent = ("Capillary refill rate", "Fraction inspired oxygen", "Height", "Weight", "pH")
    absent += tuple(name for name in BENCHMARK if name.startswith("Glascow"))
    part = WHOLE | {"drop": [*DROPPED, *absent], "durations": {"k": 50}}
    variables = tuple(name for name in BENCHMARK if name not in absent)
    return Case("generated, 72 hours", lambda: generate(patients), part, variables, {"death": STAYS["death"]}, 10)


def generate(
    patients: int, tables: tuple[str, ...] = ("chartevents", "icustays", "admissions")
) -> duckdb.DuckDBPyConnection:
    """Some tables of the generated hospital, in the schema of mimic-code."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA mimiciii")
    for name, rows in mimic_rows(patients, SEED).items():
        if name in tables:
            connection.register("made", rows)
            connection.execute(f"CREATE TABLE mimiciii.{name} AS SELECT * FROM made")  # noqa: S608
            connection.unregister("made")
    return connection


def load_mimic(folder: Path) -> duckdb.DuckDBPyConnection:
    """The tables that the preset reads, in the schema of mimic-code; values stay text."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA mimiciii")
    for name in ("CHARTEVENTS", "LABEVENTS", "ICUSTAYS", "ADMISSIONS", "PATIENTS"):
        texts = {"value": "VARCHAR", "valueuom": "VARCHAR"} if name.endswith("EVENTS") else {}
        rows = connection.read_csv(str(next(folder.glob(f"{name}.csv*"))), dtype=texts)  # noqa: F841 - SQL reads it
        connection.execute(f"CREATE TABLE mimiciii.{name} AS SELECT * FROM rows")  # noqa: S608
    return connection
