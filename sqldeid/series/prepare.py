"""Turn measurements into regular series in SQL: map items, repair units, drop the implausible, resample.

records    measurements that count, in their variable's unit      a query, read twice
persons    numbered, with the time of their first record
instants   one value per person, variable and time
bins       the mean of each step (`resample = "mean"`)
series     linear between them; nothing outside a variable's own first and last
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.job.series import MAX_ITEMS
from sqldeid.series.plan import Measurements, SeriesPlan, by_bytes, collated
from sqldeid.series.variables import Item, VariableMap, refuse_names
from sqldeid.sql import column, literal, render

HOUR_UNITS = {"seconds": 3600.0, "minutes": 60.0, "hours": 1.0}
MICROSECONDS = 3_600_000_000.0

AT_ONCE = 8_000_000
"""Records prepared at once: what is kept between their reading and their steps then stays below a gigabyte."""

MOST_STEPS = 1_000_000
"""Steps between a person's first and last record at most: every hour of a century. More are times gone wrong, which
interpolation would fill."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Regular series, before any is shortened.

    Parameters
    ----------
    series
        Temporary table: person_number BIGINT, variable_number INTEGER, position BIGINT from 0, value DOUBLE.
    persons
        Temporary table: person, origin, person_number BIGINT (from 1, in the order of the key).
    person_number, length
        Who has series of at least `min_steps`, and their steps.
    too_short
        Persons left out for that.
    records_of
        (persons,): values of all variables of those who are not.
    unowned
        Rows of the source that are nobody's, for their person key is NULL.
    untimed
        Rows of somebody whose time is NULL or infinite.
    """

    series: exp.Table
    persons: exp.Table
    variables: VariableMap
    person_number: Ints
    length: Ints
    too_short: int
    records_of: Ints
    unowned: int = 0
    untimed: int = 0

    @property
    def records(self) -> int:
        """Values of all persons together."""
        return int(self.records_of.sum())


def prepare(plan: SeriesPlan, engine: Engine) -> Prepared:
    """Read the source and make regular series of it.

    Raises
    ------
    JobError
        If no measurement of a mapped item is plausible, or no series long enough.

    Cost: two scans of the source, one of its keys and times, and one more for every `AT_ONCE` records beyond the first.
    """
    series, left = engine.workbench(f"{plan.name}_series"), _NONE
    if plan.columns is None:
        from sqldeid.series.benchmark import read_benchmark

        variables, instants, persons = read_benchmark(plan, engine)
        _fill(plan, series, instants, engine)
    else:
        variables = plan.map if plan.map is not None else _found_variables(plan, plan.columns.variable, engine)
        persons, left = _read(plan, plan.columns, variables, series, engine)
    return replace(_measured(plan, variables, series, persons, engine), unowned=left.unowned, untimed=left.untimed)


class _Left(NamedTuple):
    """Rows of the source that are in nobody's series: of nobody, and of no time."""

    unowned: int
    untimed: int


_NONE = _Left(0, 0)


def _fill(plan: SeriesPlan, series: exp.Table, instants: exp.Table, engine: Engine, *, append: bool = False) -> _Left:
    """Make regular series of instants, which are dropped; what is left out, counted with the first of them."""
    left = _refuse_spans(plan, instants, engine, None if append else plan.columns)
    if plan.part.resample == "mean":
        bins = engine.make("series/bin_instants", f"{plan.name}_bins", instants=instants)
        engine.drop(instants)
        engine.run("series/fill_steps", series=series, bins=bins, append=append)
        engine.drop(bins)
    else:
        engine.run("series/fill_points", series=series, instants=instants, append=append)
        engine.drop(instants)
    return left


def _refuse_spans(plan: SeriesPlan, instants: exp.Table, engine: Engine, columns: Measurements | None) -> _Left:
    """Refuse times that lie too far apart, before steps between them are filled; what is left out, where counted."""
    row = engine.row(
        "series/measure_span",
        instants=instants,
        most=MOST_STEPS,
        source=None if columns is None else plan.source,
        person=column(plan.person.name, "s"),
        time=None if columns is None else _time(columns.time, engine),
    )
    if row["persons"]:
        key = f"{plan.key}.time"
        who = "1 person has" if row["persons"] == 1 else f"{row['persons']:,} persons have"
        raise JobError.at(
            key,
            f"{who} records more than {MOST_STEPS:,} steps after the first; leave out times that are wrong by "
            "where, or choose a greater step_hours",
        )
    each = len(plan.part.wide or "1")  # a row of a wide table is read as one of each of its variables
    return _Left(int(row["unowned"]) // each, int(row["untimed"]) // each)


def _measured(
    plan: SeriesPlan, variables: VariableMap, series: exp.Table, persons: exp.Table, engine: Engine
) -> Prepared:
    read = engine.ask("series/measure_lengths", series=series)
    person, length, records = (read.column(i).to_numpy().astype(np.int64) for i in range(3))
    if len(person) == 0:
        asked = [key for key in ("where", "cohort") if getattr(plan.part, key, None)]
        after = f" (after {' and '.join(asked)})" if asked else ""
        raise JobError(
            f"{plan.key}: {plan.source_label} has no plausible measurement of the variables asked for{after}; check "
            "variables, low and high",
            key=f"{plan.key}.variables",
        )
    enough = length >= plan.part.min_steps
    if not enough.any():
        raise JobError.at(f"{plan.key}.min_steps", f"no person has series of {plan.part.min_steps} steps")
    left_out = int((~enough).sum())
    return Prepared(series, persons, variables, person[enough], length[enough], left_out, records[enough])


def _read(
    plan: SeriesPlan, columns: Measurements, variables: VariableMap, series: exp.Table, engine: Engine
) -> tuple[exp.Table, _Left]:
    """Fill the series of all persons, some at a time; the persons, and what is left out."""
    records = _query(
        render(
            "series/read_records",
            source=plan.source,
            items=put_items(plan, variables, columns.variable, engine),
            person=by_bytes(plan.person, "s", engine),
            time=_time(columns.time, engine),
            variable=_code(columns.variable, engine),
            value=column(columns.value.name, "s"),
            members=_members(plan, engine),
        )
    )
    persons = engine.make("series/find_persons", f"{plan.name}_persons", records=records)
    unit = MICROSECONDS if columns.clock else HOUR_UNITS[str(plan.part.time_unit)]
    left = _NONE
    for number, (first, last) in enumerate(_portions(persons, engine)):
        instants = engine.make(
            "series/keep_instants",
            f"{plan.name}_instants",
            records=records,
            persons=persons,
            clock=columns.clock,
            step=unit * float(plan.part.step_hours),
            first=first,
            last=last,
        )
        found = _fill(plan, series, instants, engine, append=number > 0)
        left = found if number == 0 else left
    return persons, left


def _portions(persons: exp.Table, engine: Engine) -> list[tuple[int | None, int | None]]:
    """First and last person number of each portion of the work; of a single one none, which takes everybody.

    Spark cuts the work by itself, and would read the source once for each of ours.
    """
    if engine.capabilities.dialect == "spark":
        return [(None, None)]
    rows = engine.rows("series/cut_persons", persons=persons, limit=AT_ONCE)
    return [(row["first_number"], row["last_number"]) for row in rows] if len(rows) > 1 else [(None, None)]


def _query(text: str) -> exp.Subquery:
    """A rendered SELECT, to be read by other statements."""
    return exp.Subquery(this=sqlglot.parse_one(text, read="duckdb"))


def _time(time: Column, engine: Engine) -> exp.Expr:
    """Dates, moments and finer timestamps as TIMESTAMP; NULL where infinite, which no series can begin or end with."""
    found, on_spark = column(time.name, "s"), engine.capabilities.dialect == "spark"
    if time.kind == "integer":
        return found
    plain: exp.Expr = found if time.kind == "float" else exp.cast(found, _type(time))
    if time.type == "TIMESTAMP WITH TIME ZONE" and not on_spark:  # whose session has the zone UTC
        plain = exp.AtTimeZone(this=found, zone=literal("UTC"))
    if time.kind in ("float", "number"):  # Postgres asks isfinite of dates and times alone
        finite: exp.Expr = exp.Between(this=plain, low=literal(-sys.float_info.max), high=literal(sys.float_info.max))
    elif on_spark:
        return plain  # its dates and times end
    else:
        finite = exp.func("isfinite", plain)
    return exp.Case().when(finite, plain.copy())


def _type(time: Column) -> exp.DataType:
    return exp.DataType.build("double" if time.kind == "number" else "timestamp", dialect="duckdb")


def _code(variable: Column, engine: Engine) -> exp.Expr:
    """The variable column as its items are spelled."""
    if variable.kind != "text":
        return exp.cast(column(variable.name, "s"), exp.DataType.build("bigint", dialect="duckdb"))
    return collated(exp.cast(column(variable.name, "s"), exp.DataType.build("varchar", dialect="duckdb")), engine)


def put_items(plan: SeriesPlan, variables: VariableMap, variable: Column, engine: Engine) -> exp.Table:
    """The map of items as a temporary table; `variable_number` counts variables from 0 in their order."""
    number = {name: i for i, name in enumerate(variables.names)}
    items = variables.items
    if variable.kind == "text":
        codes = pa.array([str(i.code) for i in items], pa.string())
    elif all(isinstance(i.code, int) for i in items):
        codes = pa.array([i.code for i in items], pa.int64())
    else:
        raise JobError.at(
            f"{plan.key}.variables",
            f"{variable.name} is of type {variable.shown_type}, and an item is text; write items as whole numbers",
        )
    rows = pa.table(
        {
            "item": codes,
            "variable_number": pa.array([number[i.variable] for i in items], pa.int32()),
            "place": pa.array([i.place for i in items], pa.int64()),
            "factor": pa.array([i.factor for i in items], pa.float64()),
            "repair": pa.array([i.repair for i in items], pa.int32()),
            "low": pa.array([i.low for i in items], pa.float64()),
            "high": pa.array([i.high for i in items], pa.float64()),
        }
    )
    return engine.put(f"{plan.name}_items", rows)


def _members(plan: SeriesPlan, engine: Engine) -> exp.Table | None:
    if plan.cohort is None:
        return None
    return engine.make(
        "series/keep_members",
        f"{plan.name}_members",
        cohort=plan.cohort.source,
        person=plan.cohort.person,
        first_of=plan.cohort.first_of,
        order=plan.cohort.order,
    )


def _found_variables(plan: SeriesPlan, variable: Column, engine: Engine) -> VariableMap:
    """The values of the variable column as variables, where the job names none."""
    read = engine.ask(
        "series/list_variables", source=plan.source, variable=_code(variable, engine), limit=MAX_ITEMS + 1
    )
    codes = [row["variable"] for row in read.to_pylist()]
    key = f"{plan.key}.variables"
    if len(codes) > MAX_ITEMS:
        raise JobError.at(key, f"{variable.name} has more than {MAX_ITEMS} values; name those wanted")
    names = [str(code) for code in codes if str(code) not in plan.part.drop]
    if len({n.casefold() for n in names}) < len(names):
        raise JobError.at(key, f"{variable.name} has values that differ only in case; name those wanted")
    if not names:
        raise JobError.at(key, f"{plan.source_label} has no value of {variable.name}")
    items = tuple(Item(code, str(code), 0) for code in codes if str(code) in names)
    try:
        refuse_names(plan.part.shape, tuple(names), key)
    except JobError:  # whose message names a value of the data
        raise JobError.at(
            key,
            f"a value of {variable.name} is empty, holds a NUL character, or is that of a column that a wide "
            'release has of its own (person_number, step); name the variables wanted, or take shape = "long"',
        ) from None
    return VariableMap(tuple(names), items, {}, {})
