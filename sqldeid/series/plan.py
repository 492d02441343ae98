"""What a release of series will do, from the job and the catalogue alone; no data is read, all of it can be printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.job.parts import Query, Source
from sqldeid.job.series import STATISTICS, Series
from sqldeid.series.variables import VariableMap, load_map, refuse_names, unknown
from sqldeid.sql import bind, column, parse_expression, parse_query, parse_table
from sqldeid.sql.aggregates import parse_aggregate
from sqldeid.sql.names import refuse_same_names

Kept = Literal["all", "mean", "none"]
"""Which features of a variable are made common."""

LINKED = "tables.{}: lengths and classes are formed within its classes; every k is the greater of both"

NUMERIC = ("integer", "float", "number")
CLOCKS = ("date", "timestamp")
FINER = ("TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
"""Times that travel as text; the hours between them are those of timestamps."""


@dataclass(frozen=True, slots=True)
class OwnFeature:
    """A feature of the job's own: its name, and the checked aggregate over value and position."""

    name: str
    value: exp.Expr


@dataclass(frozen=True, slots=True)
class Joined:
    """A table of persons beside the measurements: the cohort, or the labels."""

    source: exp.Expr
    person: exp.Expr
    first_of: exp.Expr | None = None
    order: exp.Expr | None = None
    outcome: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Measurements:
    """The columns of a long table of measurements."""

    time: Column
    variable: Column
    value: Column

    @property
    def clock(self) -> bool:
        """Whether times are timestamps."""
        return self.time.kind not in NUMERIC


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """One release of series, resolved against the catalogue.

    Parameters
    ----------
    name, key
        The release and its place in the job file (``series.vitals``).
    source
        What the statements read: a table, or a subquery with the job's filter.
    person, columns
        Columns of the source; a preset knows the others itself.
    map
        Items and variables; None where the values of the variable column are the variables, found when the run starts.
    own
        Features of the job's own.
    sisters
        With a preset: the tables beside the source, by name.
    """

    name: str
    key: str
    part: Series
    source: exp.Expr
    source_label: str
    person: Column
    columns: Measurements | None
    map: VariableMap | None
    own: tuple[OwnFeature, ...]
    cohort: Joined | None = None
    labels: Joined | None = None
    sisters: Mapping[str, exp.Table] | None = None

    def kept(self, variable: str) -> Kept:
        """Which of the four features of a variable are made common."""
        features = self.part.features
        listed = features.get(variable, list(STATISTICS)) if isinstance(features, dict) else features
        return "all" if len(listed) == len(STATISTICS) else "mean" if listed == ["mean"] else "none"

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for `--plan`."""
        part = self.part
        names = ", ".join(self.map.names) if self.map is not None else "the values of the variable column"
        unit = f", in {part.time_unit}" if part.time_unit else ""
        time = "48 h from INTIME (preset)" if self.columns is None else f"{self.columns.time.name}{unit}"
        return [
            ("Source", self.source_label),
            ("Person", f"{self.person.name}, never released"),
            ("Time", time),
            ("Variables", names),
            ("Step", f"{float(part.step_hours):g} h, {part.resample}"),
            ("Durations", f"k = {part.durations.k}, {part.durations.method}"),
            ("Features", ", ".join([*self._features(), *(f.name for f in self.own)])),
            ("Classes", f"k = {part.privacy.k}, {part.privacy.heuristic}, NULLs {part.privacy.nulls}"),
            ("Targets", part.privacy.targets),
            ("Perturbation", part.perturb.method),
            *([("Linked", LINKED.format(part.link))] if part.link else []),
        ]

    def _features(self) -> list[str]:
        if not isinstance(self.part.features, dict):
            return list(self.part.features)
        listed = [f"{name}: {', '.join(f) or 'none'}" for name, f in self.part.features.items() if isinstance(f, list)]
        return [*listed, f"others: {', '.join(STATISTICS)}"]

    def to_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return {"kind": "series", "name": self.name, **{k.lower(): v for k, v in self.facts()}}


def plan(name: str, part: Series, engine: Engine, folder: Path) -> SeriesPlan:
    """Resolve one release of series against the catalogue; no data is read.

    Raises
    ------
    JobError
        If a table, column or file is not there or not fit.
    """
    key = f"series.{name}"
    if part.preset is not None:
        from sqldeid.series.benchmark import plan_benchmark

        return plan_benchmark(name, part, engine, _own(part, key))
    relation, label = resolve(part.source, engine, f"{key}.source")
    there = _columns(relation, engine, f"{key}.source")
    find = finder(there, label)
    if part.where is not None:
        relation = _filtered(relation, part.where, engine, f"{key}.where")
    person, time, variable, value = (
        find(str(asked), f"{key}.{of}")
        for of, asked in (
            ("person", part.person),
            ("time", part.time),
            ("variable", part.variable),
            ("value", part.value),
        )
    )
    columns = Measurements(time, variable, value)
    _refuse_kinds(person, columns, part, key)
    mapped = load_map(part.variables, part.drop, folder, key) if part.variables is not None else None
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


def resolve(source: Source, engine: Engine, key: str) -> tuple[exp.Expr, str]:
    """A table or query of the job as a relation, and what messages call it."""
    if isinstance(source, Query):
        key = f"{key}.query"
        bound = bind(parse_query(source.query, key=key), lambda parts: engine.resolve(parts, key=key))
        if not isinstance(bound, exp.Query):
            raise JobError(f"{key}: only a query is allowed here; write one SELECT", key=key)
        refuse_same_names(engine.output_names(bound, key=key), what=key, key=key)
        return exp.Subquery(this=bound), "the query"
    return engine.resolve(parse_table(source, key=key), key=key), source


def finder(there: tuple[Column, ...], label: str) -> Callable[[str, str], Column]:
    """Finds a column by its name, whatever its case."""
    by_name = {c.name.casefold(): c for c in there}

    def find(name: str, key: str) -> Column:
        found = by_name.get(name.casefold())
        if found is None:
            shown = ", ".join(c.name for c in there[:12]) + (" …" if len(there) > 12 else "")
            raise JobError(f'{key}: {label} has no column "{name}"; it has {shown}', key=key)
        return found

    return find


def _columns(relation: exp.Expr, engine: Engine, key: str) -> tuple[Column, ...]:
    there = engine.columns(relation, key=key)
    refuse_same_names((c.name for c in there), what=key, key=key)
    return there


def _filtered(relation: exp.Expr, where: str, engine: Engine, key: str) -> exp.Subquery:
    condition = bind(parse_expression(where, key=key), lambda parts: engine.resolve(parts, key=key))
    named = relation.copy()
    named.set("alias", exp.TableAlias(this=exp.to_identifier(relation.name or "source", quoted=True)))
    found = exp.Subquery(this=exp.select("*").from_(named).where(condition))
    engine.columns(found, key=key)
    return found


def _refuse_kinds(person: Column, columns: Measurements, part: Series, key: str) -> None:
    time, variable, value = columns.time, columns.variable, columns.value
    if time.kind not in (*CLOCKS, *NUMERIC) and time.type not in FINER:
        raise JobError(
            f"{key}.time: {time.name} is of type {time.shown_type}; cast it to TIMESTAMP in a source query",
            key=f"{key}.time",
        )
    if time.kind in NUMERIC and part.time_unit is None:
        raise JobError(
            f'{key}.time_unit: missing; {time.name} is a number: say "seconds", "minutes" or "hours"',
            key=f"{key}.time_unit",
        )
    if time.kind not in NUMERIC and part.time_unit is not None:
        raise JobError(f"{key}.time_unit: {time.name} is a timestamp; remove time_unit", key=f"{key}.time_unit")
    if value.kind not in NUMERIC:
        raise JobError(
            f"{key}.value: {value.name} is of type {value.shown_type}, not a number; name the numeric column "
            "(valuenum), or cast it in a source query",
            key=f"{key}.value",
        )
    for of, found in (("person", person), ("variable", variable)):
        if found.kind not in ("integer", "text", "number"):
            raise JobError(
                f"{key}.{of}: a column of type {found.shown_type} cannot be used; cast it to text in a source query",
                key=f"{key}.{of}",
            )


def refuse_unknown(part: Series, names: tuple[str, ...], key: str) -> None:
    """Refuse features and steps of variables that are not there, with the nearest.

    Raises
    ------
    JobError
        If one is not.
    """
    for name, asked in part.features.items() if isinstance(part.features, dict) else ():
        if isinstance(asked, list) and name not in names:
            raise JobError(f"{key}.features: {unknown(name, names)}", key=f"{key}.features")
    for name in part.round if isinstance(part.round, dict) else ():
        if name not in names:
            raise JobError(f"{key}.round: {unknown(name, names)}", key=f"{key}.round")


def _own(part: Series, key: str) -> tuple[OwnFeature, ...]:
    features = part.features if isinstance(part.features, dict) else {}
    return tuple(
        OwnFeature(name, parse_aggregate(text, ("value", "position"), order="position", key=f"{key}.features.{name}"))
        for name, text in features.items()
        if isinstance(text, str)
    )


def collated(text: exp.Expr, engine: Engine) -> exp.Expr:
    """Text that sorts by its bytes, as in DuckDB, whatever order the database has: persons are numbered by it."""
    if engine.capabilities.dialect != "postgres":
        return text
    return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))


def by_bytes(found: Column, table: str, engine: Engine) -> exp.Expr:
    """A column that persons are sorted by, or compared with those who were."""
    named = column(found.name, table)
    return collated(named, engine) if found.type == "VARCHAR" else named


def _cohort(part: Series, engine: Engine, key: str) -> Joined | None:
    if part.cohort is None:
        return None
    relation, label = resolve(part.cohort.source, engine, f"{key}.source")
    find = finder(_columns(relation, engine, f"{key}.source"), label)
    if part.cohort.where is not None:
        relation = _filtered(relation, part.cohort.where, engine, f"{key}.where")
    person = find(part.cohort.person, f"{key}.person")
    first, order = (
        by_bytes(find(name, f"{key}.{of}"), "c", engine) if name is not None else None
        for of, name in (("first_of", part.cohort.first_of), ("order", part.cohort.order))
    )
    return Joined(relation, by_bytes(person, "c", engine), first, order)


def labels_of(part: Series, engine: Engine, key: str) -> Joined | None:
    """The outcomes that the job names, for utility figures.

    Raises
    ------
    JobError
        If their table or a column is not there, or not fit.
    """
    if part.labels is None:
        return None
    relation, label = resolve(part.labels.source, engine, f"{key}.source")
    find = finder(_columns(relation, engine, f"{key}.source"), label)
    person, outcome = find(part.labels.person, f"{key}.person"), find(part.labels.column, f"{key}.column")
    if outcome.kind not in (*NUMERIC, "boolean"):
        raise JobError(
            f"{key}.column: {outcome.name} is of type {outcome.shown_type}; it must be true or false, 1 or 0",
            key=f"{key}.column",
        )
    answer: exp.Expr = column(outcome.name, "c")
    if outcome.kind == "boolean":
        answer = exp.cast(answer, "INTEGER")
    return Joined(relation, by_bytes(person, "c", engine), outcome=answer)
