"""The job's own features of series: one statement each, so that an error is that of one feature."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.series.plan import OwnFeature, SeriesPlan
from sqldeid.sql import identifier, render

Measurement: TypeAlias = tuple[Ints, Ints, Floats]
"""Person, variable and value (NaN for NULL): one entry a person and variable with a record, in that order."""


def read_own(plan: SeriesPlan, feature: OwnFeature, series: exp.Table, person: str, engine: Engine) -> Measurement:
    """Measure one feature on a table of series (`person` names its column of persons).

    Raises
    ------
    JobError
        If the data break the job's SQL, as by a cast that fails; the message names the feature.
    """
    text = render("series/measure_own", series=series, person=identifier(person), own=feature.value)
    key = f"{plan.key}.features.{feature.name}"
    try:
        read = engine.query(text)
    except JobError as error:
        raise JobError.at(key, error.message) from None
    person_number, variable, value = (column.to_numpy(zero_copy_only=False) for column in read.columns)
    return person_number.astype(np.int64), variable.astype(np.int64), value.astype(np.float64)
