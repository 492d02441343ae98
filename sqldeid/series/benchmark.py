"""The preset `benchmark17`: the 17 variables of the in-hospital-mortality benchmark, by every rule of its own scripts.

Stays without a change of ward or unit, alone in their admission, of adults, of at least 48 hours; events of the first
48 hours from INTIME; texts read, units repaired and equal times settled as there; no plausibility ranges.

Source
------
Harutyunyan et al., Scientific Data 6:96, 2019, and their scripts.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from sqldeid.catalogue.columns import Find, finder
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job.series import Series
from sqldeid.series.plan import OwnFeature, SeriesPlan, collated, labels_of, refuse_unknown
from sqldeid.series.variables import VariableMap, load_map, refuse_names
from sqldeid.sql import column, literal, parse_table

TEXT, SYSTOLIC, DIASTOLIC, REFILL, OXYGEN_SHARE, LABORATORY, SATURATION, TEMPERATURE, WEIGHT, HEIGHT = range(1, 11)
RULES = {
    "Capillary refill rate": REFILL,
    "Diastolic blood pressure": DIASTOLIC,
    "Fraction inspired oxygen": OXYGEN_SHARE,
    "Glucose": LABORATORY,
    "Height": HEIGHT,
    "Oxygen saturation": SATURATION,
    "Systolic blood pressure": SYSTOLIC,
    "Temperature": TEMPERATURE,
    "Weight": WEIGHT,
    "pH": LABORATORY,
}
"""Variables that the benchmark turns into numbers; the others it leaves, and compares, as text."""

LABEL_UNITS = {3582: "oz", 3581: "lb", 226531: "lb", 1394: "in"}
"""Items whose label names the unit."""

EYE, MOTOR, VERBAL = (f"Glascow coma scale {part}" for part in ("eye opening", "motor response", "verbal response"))
SCORES = {
    EYE: {
        "None": 0,
        "1 No Response": 1,
        "2 To pain": 2,
        "To Pain": 2,
        "3 To speech": 3,
        "To Speech": 3,
        "4 Spontaneously": 4,
        "Spontaneously": 4,
    },
    MOTOR: {
        "1 No Response": 1,
        "No response": 1,
        "2 Abnorm extensn": 2,
        "Abnormal extension": 2,
        "3 Abnorm flexion": 3,
        "Abnormal Flexion": 3,
        "4 Flex-withdraws": 4,
        "Flex-withdraws": 4,
        "5 Localizes Pain": 5,
        "Localizes Pain": 5,
        "6 Obeys Commands": 6,
        "Obeys Commands": 6,
    },
    VERBAL: {
        "No Response-ETT": 1,
        "No Response": 1,
        "1 No Response": 1,
        "1.0 ET/Trach": 1,
        "2 Incomp sounds": 2,
        "Incomprehensible sounds": 2,
        "3 Inapprop words": 3,
        "Inappropriate Words": 3,
        "4 Confused": 4,
        "Confused": 4,
        "5 Oriented": 5,
        "Oriented": 5,
    },
}
"""Points of the words that MIMIC-III has for the parts of the Glasgow coma scale."""

NUMBER = "^ *[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})([eE][+-]?[0-9]{1,2})? *$"
"""Texts that are read as a number; every engine's DOUBLE holds it."""

EVENTS = ("subject_id", "hadm_id", "icustay_id", "charttime", "itemid", "value", "valueuom")
"""Columns of CHARTEVENTS that are read."""

SISTERS = {
    "icustays": ("icustay_id", "subject_id", "hadm_id", "intime", "los", "first_wardid", "last_wardid"),
    "admissions": ("subject_id", "hadm_id"),
    "patients": ("subject_id", "dob"),
    "labevents": ("subject_id", "hadm_id", "charttime", "itemid", "value", "valueuom"),
}
"""Tables beside CHARTEVENTS, and the columns that are read of each."""


def plan_benchmark(name: str, part: Series, engine: Engine, own: tuple[OwnFeature, ...]) -> SeriesPlan:
    """Resolve the tables of MIMIC-III that the preset reads.

    Raises
    ------
    JobError
        If one is not there, or lacks a column.
    """
    key, parts = f"series.{name}", parse_table(str(part.source), key=f"series.{name}.source")
    source = engine.resolve(parts, key=f"{key}.source")
    find = finder(engine.columns(source), str(part.source))
    _refuse_missing(find, EVENTS, str(part.source), engine, f"{key}.source")
    sisters = {}
    for table, columns in SISTERS.items():
        sisters[table] = engine.resolve((*parts[:-1], table), key=f"{key}.preset")
        _refuse_missing(finder(engine.columns(sisters[table]), table), columns, table, engine, f"{key}.preset")
    if part.person.casefold() != "icustay_id":
        raise JobError.at(f"{key}.person", 'the preset counts stays; write person = "icustay_id"')
    mapped = load_map("mimic3/vitals", part.drop, Path(), key)
    refuse_unknown(part, mapped.names, key)
    refuse_names(part.shape, mapped.names, f"{key}.drop")
    person = find(part.person, f"{key}.person")
    labels = labels_of(part, engine, f"{key}.labels")
    return SeriesPlan(
        name, key, part, source, str(part.source), person, None, mapped, own, labels=labels, sisters=sisters
    )


def _refuse_missing(find: Find, columns: tuple[str, ...], table: str, engine: Engine, key: str) -> None:
    """Refuse a table that lacks a column, or has it in capitals where these are part of a name."""
    for wanted in columns:
        found = find(wanted, key)
        if found.name != wanted and engine.capabilities.case_sensitive_names:
            raise JobError.at(
                key, f"the preset reads {wanted}, and {table} has {found.name}; rename it, or make a view"
            )


def read_benchmark(plan: SeriesPlan, engine: Engine) -> tuple[VariableMap, exp.Table, exp.Table]:
    """The variables, their measurements (one value per stay, variable and time), and the stays."""
    if plan.map is None or plan.sisters is None:
        raise JobError.at(f"{plan.key}.preset", "the tables of MIMIC-III were not found")
    sisters = dict(plan.sisters)
    labevents = sisters.pop("labevents")
    persons = engine.make("series/keep_stays", f"{plan.name}_persons", **sisters)
    instants = engine.make(
        "series/clean_benchmark",
        f"{plan.name}_instants",
        persons=persons,
        chartevents=plan.source,
        labevents=labevents,
        items=engine.put(f"{plan.name}_items", _items(plan.map)),
        scores=engine.put(f"{plan.name}_scores", _scores(plan.map)),
        step=float(plan.part.step_hours),
        number=literal(NUMBER),
        said=collated(column("word", "c"), engine),
        greatest=collated(column("word", "o"), engine),
    )
    return plan.map, instants, persons


def _items(variables: VariableMap) -> pa.Table:
    number = {name: i for i, name in enumerate(variables.names)}
    return pa.table(
        {
            "item": pa.array([int(i.code) for i in variables.items], pa.int64()),
            "variable_number": pa.array([number[i.variable] for i in variables.items], pa.int32()),
            "rule": pa.array([RULES.get(i.variable, TEXT) for i in variables.items], pa.int32()),
            "label_unit": pa.array([LABEL_UNITS.get(int(i.code), "") for i in variables.items], pa.string()),
        }
    )


def _scores(variables: VariableMap) -> pa.Table:
    rows = [
        (number, word, float(score))
        for number, name in enumerate(variables.names)
        for word, score in SCORES.get(name, {}).items()
    ]
    return pa.table(
        {
            "variable_number": pa.array([r[0] for r in rows], pa.int32()),
            "word": pa.array([r[1] for r in rows], pa.string()),
            "score": pa.array([r[2] for r in rows], pa.float64()),
        }
    )
