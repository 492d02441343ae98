"""Plan a release of series from the job and the catalogue; no row is read, and `--plan` prints the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqldeid.catalogue.columns import columns_of, finder
from sqldeid.catalogue.relations import resolve
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.job.series import STATISTICS, Series
from sqldeid.series.variables import VariableMap, unknown
from sqldeid.sql import column

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
            ("Variables", f"{names}, each of a column of its own" if part.wide is not None else names),
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


def refuse_unknown(part: Series, names: tuple[str, ...], key: str) -> None:
    """Refuse features and steps of variables that are not there, with the nearest.

    Raises
    ------
    JobError
        If one is not.
    """
    for name, asked in part.features.items() if isinstance(part.features, dict) else ():
        if isinstance(asked, list) and name not in names:
            raise JobError.at(f"{key}.features", f"{unknown(name, names)}")
    for name in part.round if isinstance(part.round, dict) else ():
        if name not in names:
            raise JobError.at(f"{key}.round", f"{unknown(name, names)}")


def collated(text: exp.Expr, engine: Engine) -> exp.Expr:
    """Text that sorts by its bytes, as in DuckDB, whatever order the database has: persons are numbered by it."""
    if engine.capabilities.dialect != "postgres":
        return text
    return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))


def by_bytes(found: Column, table: str, engine: Engine) -> exp.Expr:
    """A column that persons are sorted by, or compared with those who were."""
    named = column(found.name, table)
    return collated(named, engine) if found.type == "VARCHAR" else named


def labels_of(part: Series, engine: Engine, key: str) -> Joined | None:
    """The outcomes that the job names, for utility figures.

    Raises
    ------
    JobError
        If their table or a column is not there, or not fit.
    """
    if part.labels is None:
        return None
    relation, label = resolve(part.labels.source, engine, f"{key}.source", query="the query")
    find = finder(columns_of(relation, engine, f"{key}.source"), label)
    person, outcome = find(part.labels.person, f"{key}.person"), find(part.labels.column, f"{key}.column")
    if outcome.kind not in (*NUMERIC, "boolean"):
        raise JobError.at(
            f"{key}.column", f"{outcome.name} is of type {outcome.shown_type}; it must be true or false, 1 or 0"
        )
    answer: exp.Expr = column(outcome.name, "c")
    if outcome.kind == "boolean":
        answer = exp.cast(answer, "INTEGER")
    return Joined(relation, by_bytes(person, "c", engine), outcome=answer)
