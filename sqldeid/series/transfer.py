"""Move series from the engine that holds the source to the workbench, where they are measured and perturbed; and back.

Only where the two differ. What goes over the wire is a person's number, a variable's, a step and a value: no key and no
time. Once, by portions of whole persons, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.sql import identifier, render

AT_ONCE = 2_000_000
"""Values of a portion; a person is never cut."""


def to_workbench(series: exp.Table, person: str, persons: Ints, records: Ints, engine: Engine) -> exp.Table:
    """A table of series on the workbench; the table itself where the engine is the workbench.

    Parameters
    ----------
    series
        Columns `person`, variable_number, position, value.
    persons, records
        (persons,): their numbers, ascending, and about how many rows each has.

    Cost: a scan of the table for every `AT_ONCE` rows.
    """
    if engine.bench is engine:
        return series
    return engine.bench.put("carried", _reader(_portions(series, person, persons, records, engine)))


def gathering_engine(engine: Engine) -> Engine:
    """Where perturbed series are gathered, block by block: with the source, but on the workbench of Spark's.

    What blocks of classes were written to one by one is then written in the order of its numbers, which tell nothing.
    """
    return engine.bench if engine.capabilities.dialect == "spark" else engine


def to_source(series: exp.Table, person: str, persons: Ints, records: Ints, engine: Engine) -> exp.Table:
    """A table where the source is, of whole persons in their order; the table itself where it was gathered there.

    Parameters
    ----------
    series
        Columns `person`, variable_number, position, value, on the `gathering_engine`.
    persons, records
        (persons,): their numbers, ascending, and about how many rows each has.

    Cost: a scan of the table for every `AT_ONCE` rows.
    """
    if gathering_engine(engine) is engine:
        return series
    return engine.put("sent", _reader(_portions(series, person, persons, records, engine.bench)))


def _reader(parts: Iterator[pa.Table]) -> pa.RecordBatchReader:
    first = next(parts)
    batches = (batch for part in chain((first,), parts) for batch in part.to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def _portions(series: exp.Table, person: str, persons: Ints, records: Ints, engine: Engine) -> Iterator[pa.Table]:
    portion = (np.cumsum(records) - records) // AT_ONCE
    cuts = np.flatnonzero(np.diff(portion, prepend=-1))
    spans = [(int(persons[a]), int(persons[b - 1])) for a, b in pairwise([*cuts, len(persons)])] or [(0, 0)]
    for first, last in spans:
        text = render("series/read_part", series=series, person=identifier(person), first=first, last=last)
        yield engine.query(text)
