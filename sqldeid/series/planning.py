"""Resolve a job's release of series against the catalogue: its own columns, or the tables of a preset."""

from __future__ import annotations

from pathlib import Path

from sqldeid.catalogue.columns import columns_of, finder, refuse_two_spellings
from sqldeid.catalogue.relations import filtered, resolve
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.job.series import Series
from sqldeid.series.benchmark import plan_benchmark
from sqldeid.series.plan import (
    CLOCKS,
    FINER,
    NUMERIC,
    Joined,
    Measurements,
    OwnFeature,
    SeriesPlan,
    by_bytes,
    labels_of,
    refuse_unknown,
)
from sqldeid.series.variables import VariableMap, load_map, refuse_names
from sqldeid.sql.aggregates import parse_aggregate


def plan(name: str, part: Series, engine: Engine, folder: Path) -> SeriesPlan:
    """Resolve one release of series against the catalogue; no data is read.

    Raises
    ------
    JobError
        If a table, column or file is not there or not fit.
    """
    key = f"series.{name}"
    if part.preset is not None:
        return plan_benchmark(name, part, engine, _own(part, key))
    relation, label = resolve(part.source, engine, f"{key}.source", query="the query")
    find = finder(columns_of(relation, engine, f"{key}.source"), label)
    if part.where is not None:
        relation = filtered(relation, part.where, engine, f"{key}.where")
    person, time = find(part.person, f"{key}.person"), find(str(part.time), f"{key}.time")
    refuse_two_spellings(relation, person, engine, f"{key}.person")
    if part.wide is not None:
        from sqldeid.series.wide import unpivoted

        relation, variable, value = unpivoted(relation, part.wide, person, time, engine, key)
    else:
        variable, value = (find(str(getattr(part, of)), f"{key}.{of}") for of in ("variable", "value"))
    columns = Measurements(time, variable, value)
    _refuse_kinds(person, columns, part, key)
    mapped = _map(part, folder, key)
    if mapped is not None:
        refuse_unknown(part, mapped.names, key)
        refuse_names(part.shape, mapped.names, f"{key}.variables")
    return SeriesPlan(
        name,
        key,
        part,
        relation,
        label,
        person,
        columns,
        mapped,
        _own(part, key),
        cohort=_cohort(part, engine, f"{key}.cohort"),
        labels=labels_of(part, engine, f"{key}.labels"),
    )


def _map(part: Series, folder: Path, key: str) -> VariableMap | None:
    """The items and variables; None where the values of the variable column are the variables."""
    if part.variables is not None:
        found = load_map(part.variables, part.drop, folder, key)
        lost = {str(item) for item in (part.wide or {}).values()} - {str(i.code) for i in found.items}
        if part.wide is not None and lost and not part.drop:
            name = next(c for c, item in part.wide.items() if item in lost)
            raise JobError.at(
                f"{key}.wide.{name}", "is an item that no variable of variables has; remove it, or add it"
            )
        return found
    if part.wide is None:
        return None
    from sqldeid.series.wide import named

    return named({c: name for c, name in part.wide.items() if name not in part.drop})


def _refuse_kinds(person: Column, columns: Measurements, part: Series, key: str) -> None:
    time, variable, value = columns.time, columns.variable, columns.value
    if time.kind not in (*CLOCKS, *NUMERIC) and time.type not in FINER:
        raise JobError.at(
            f"{key}.time", f"{time.name} is of type {time.shown_type}; cast it to TIMESTAMP in a source query"
        )
    if time.kind in NUMERIC and part.time_unit is None:
        raise JobError.at(f"{key}.time_unit", f'missing; {time.name} is a number: say "seconds", "minutes" or "hours"')
    if time.kind not in NUMERIC and part.time_unit is not None:
        raise JobError.at(f"{key}.time_unit", f"{time.name} is a timestamp; remove time_unit")
    if value.kind not in NUMERIC:
        raise JobError.at(
            f"{key}.value",
            f"{value.name} is of type {value.shown_type}, not a number; name the numeric column "
            "(valuenum), or cast it in a source query",
        )
    for of, found in (("person", person), ("variable", variable)):
        if found.kind not in ("integer", "text", "number"):
            raise JobError.at(
                f"{key}.{of}", f"a column of type {found.shown_type} cannot be used; cast it to text in a source query"
            )


def _own(part: Series, key: str) -> tuple[OwnFeature, ...]:
    features = part.features if isinstance(part.features, dict) else {}
    return tuple(
        OwnFeature(name, parse_aggregate(text, ("value", "position"), order="position", key=f"{key}.features.{name}"))
        for name, text in features.items()
        if isinstance(text, str)
    )


def _cohort(part: Series, engine: Engine, key: str) -> Joined | None:
    if part.cohort is None:
        return None
    relation, label = resolve(part.cohort.source, engine, f"{key}.source", query="the query")
    find = finder(columns_of(relation, engine, f"{key}.source"), label)
    if part.cohort.where is not None:
        relation = filtered(relation, part.cohort.where, engine, f"{key}.where")
    person = find(part.cohort.person, f"{key}.person")
    refuse_two_spellings(relation, person, engine, f"{key}.person")
    first, order = (
        by_bytes(find(name, f"{key}.{of}"), "c", engine) if name is not None else None
        for of, name in (("first_of", part.cohort.first_of), ("order", part.cohort.order))
    )
    return Joined(relation, by_bytes(person, "c", engine), first, order)
