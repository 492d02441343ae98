"""What a release by Mondrian will do, resolved against the catalogue: what is cut, and what leaves as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import columns_of, finder
from sqldeid.catalogue.relations import filtered, resolve
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.ledger.hashing import spelling
from sqldeid.mondrian import Heuristic
from sqldeid.sql import column, identifier
from sqldeid.tables.criteria import ClassCriterion, class_criteria
from sqldeid.tables.mondrian.result import LIMITS
from sqldeid.tables.plan.columns import refuse_lists, released_value
from sqldeid.tables.plan.days import tells_days
from sqldeid.tables.plan.grid import ORDERED, Grid, cell_of, grid_of

TIMES = ("date", "timestamp")


@dataclass(frozen=True, slots=True)
class Cut:
    """A quasi-identifying column that is cut at medians; `show` is ``range`` or ``mean``."""

    name: str
    source: Column
    show: str
    grid: Grid

    @property
    def value(self) -> exp.Expr:
        """The number of the grid's cell that the column of `s` lies in, as DOUBLE; NULL where it is infinite or NaN."""
        return cell_of(column(self.source.name, "s"), self.grid)

    @property
    def shown(self) -> str:
        """What is released of a class, for readers."""
        return f"{self.show}, grid {self.grid.asked}"


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One table release by Mondrian, resolved against the catalogue."""

    way: ClassVar[Literal["mondrian"]] = "mondrian"
    name: str
    key: str
    part: jobfile.Table
    source: exp.Expr
    source_label: str
    person: str | None
    cuts: tuple[Cut, ...]
    others: tuple[tuple[str, Column, str], ...]
    person_type: str = ""

    @property
    def criteria(self) -> tuple[ClassCriterion, ...]:
        """The criteria beyond k-anonymity, in the order of the job."""
        return class_criteria(self.part.privacy, [name for name, _, role in self.others if role == "sensitive"])

    @property
    def judged(self) -> list[tuple[str, exp.Expr]]:
        """The columns that criteria speak of, in the order of the release, each as a column of `s`."""
        named = {c.column for c in self.criteria}
        return [(name, released_value(source)) for name, source, _ in self.others if name in named]

    @property
    def heuristic(self) -> Heuristic:
        """Which column is cut."""
        return self.part.search.heuristic or "range"

    @property
    def joined(self) -> bool:
        """Whether the source is a query, whose rows are kept."""
        return isinstance(self.part.source, jobfile.Query)

    @property
    def kept_columns(self) -> list[exp.Identifier]:
        """The columns of the source that a run needs."""
        names = [c.source.name for c in self.cuts] + [source.name for _, source, _ in self.others]
        return [identifier(n) for n in dict.fromkeys(names if self.person is None else [*names, self.person])]

    @property
    def shown_days(self) -> tuple[str, ...]:
        """The columns that show days: no grid of dates is coarser than weeks."""
        there = (*((c.name, c.source) for c in self.cuts), *((name, source) for name, source, _ in self.others))
        return tuple(name for name, source in there if tells_days(source))

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for `--plan`."""
        return [
            ("Source", self.source_label),
            ("Method", f"mondrian, k = {self.part.privacy.k}, {self.heuristic}; no lattice, no hierarchy"),
            *((c.name, f"{c.column}, {c.asked:g}") for c in self.criteria),
            ("Cut at medians", ", ".join(f"{c.name} ({c.shown})" for c in self.cuts)),
            ("As they are", ", ".join(f"{name} ({role})" for name, _, role in self.others) or "none"),
            ("Note", LIMITS),
        ]

    def to_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return {"kind": "table", "name": self.name, **{k.lower(): v for k, v in self.facts()}}


def plan(name: str, part: jobfile.Table, engine: Engine, folder: Path) -> PartitionPlan:
    """Resolve one release; no data is read.

    Raises
    ------
    JobError
        If a table or column is not there, a quasi-identifying one has no order, or a criterion's no equality.
    """
    key = f"tables.{name}"
    relation, label = resolve(part.source, engine, f"{key}.source")
    find = finder(columns_of(relation, engine, f"{key}.source"), label)
    if part.where is not None:
        relation = filtered(relation, part.where, engine, f"{key}.where")
    cuts, others = [], []
    for wanted, asked in part.columns.items():
        source = find(wanted, f"{key}.columns.{wanted}")
        if asked.role == "quasi-identifying":
            cuts.append(_cut(wanted, source, asked, f"{key}.columns.{wanted}"))
        elif asked.role in ("sensitive", "insensitive"):
            refuse_lists(source, f"{key}.columns.{wanted}")
            others.append((wanted, source, str(asked.role)))
    person = find(part.person, f"{key}.person") if part.person is not None else None
    own, spelt = (person.name, spelling(person)) if person is not None else (None, "")
    planned = PartitionPlan(name, key, part, relation, label, own, tuple(cuts), tuple(others), spelt)
    _refuse_incomparable(planned)
    return planned


def _cut(name: str, source: Column, asked: jobfile.Column, key: str) -> Cut:
    rule = asked.hierarchy
    show = rule.median if isinstance(rule, jobfile.HierarchyRule) else None
    if show is None or source.kind not in ORDERED:
        raise JobError.at(
            key,
            f'a column of type {source.shown_type} has no medians; search.method = "mondrian" takes numbers and dates',
        )
    if show == "mean" and source.kind in TIMES:
        raise JobError(f'{key}.hierarchy.median: dates have ranges; write "range"', key=key)
    grid = grid_of(source, rule.grid if isinstance(rule, jobfile.HierarchyRule) else None, f"{key}.hierarchy.grid")
    return Cut(name, source, show, grid)


def _refuse_incomparable(planned: PartitionPlan) -> None:
    named = {c.column for c in planned.criteria}
    for name, source, _ in planned.others:
        if name in named and source.kind == "other":
            key = f"{planned.key}.columns.{name}"
            raise JobError.at(
                key, f"no criterion compares values of type {source.shown_type}; cast it to text in a source query"
            )
