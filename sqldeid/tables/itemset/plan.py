"""Plan a child table, of many rows per person, from the job and the catalogue; no row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan, resolve_child
from sqldeid.tables.plan.plan import plan as plan_table

LEVEL = "_level"
"""What the column is called that tells the level of an item's label, after the item column's name."""

KINDS = ("text", "integer")
"""Kinds of item columns: values that are joined by equality alone."""

SENSITIVE_KINDS = ("text", "integer", "float", "number", "boolean")
"""Kinds of sensitive columns beside them."""


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """A child table, resolved against the catalogue.

    Parameters
    ----------
    table
        Its own source and item column, which is its one quasi-identifying column.
    parent
        The release that its rows are of, by pseudonym.
    known
        How many items of a person are known, at most, of all child tables of the parent together.
    earlier
        The parent's child tables that are made before this one: what they show is settled then.
    family
        Names of all child tables of the parent, this one among them, in the order in which they are made.
    """

    way: ClassVar[Literal["child"]] = "child"
    table: TablePlan
    parent: TablePlan
    known: int
    earlier: tuple[ChildPlan, ...] = ()
    family: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The release."""
        return self.table.name

    @property
    def key(self) -> str:
        """Where the job asks for it."""
        return self.table.key

    @property
    def k(self) -> int:
        """Persons of a class who have any items together, at least."""
        return self.table.demands.k

    @property
    def limit(self) -> Fraction:
        """The greatest share of the pairs of person and item that may be suppressed."""
        return Fraction(repr(float(self.table.demands.suppression_limit)))

    @property
    def items(self) -> QuasiIdentifier:
        """The column of items."""
        return self.table.qis[0]

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the parent's other child tables."""
        return tuple(name for name in self.family if name != self.name)

    @property
    def pseudonym(self) -> OtherColumn:
        """The parent's column of pseudonyms, which the child has, too."""
        return pseudonym_of(self.parent)

    @property
    def sensitive(self) -> tuple[OtherColumn, ...]:
        """Columns that leave as they are beside each item, since nobody is said to know them of a person."""
        return tuple(c for c in self.table.others if c.role == "sensitive")

    @property
    def columns(self) -> tuple[str, ...]:
        """What the release's columns are called: the pseudonym, the item's label, its level, the sensitive ones."""
        return *self.own_columns, *(c.name for c in self.sensitive)

    @property
    def own_columns(self) -> tuple[str, str, str]:
        """The pseudonym, the item's label, its level."""
        return self.pseudonym.name, self.items.name, self.items.name + LEVEL

    @property
    def person(self) -> exp.Expr:
        """The person key of the child's source, read as `s`."""
        found = self.table.person_column
        if found is None:
            raise JobError.at(f"{self.key}.person", "missing; name the column that holds the parent's persons")
        return found

    def facts(self) -> Sequence[tuple[str, object]]:
        """Line by line, for `--plan`."""
        return (
            ("Parent", f"{self.parent.name}: its classes, its persons, its pseudonyms ({self.pseudonym.name})"),
            ("Person", self.table.person or ""),
            ("Items", f"{self.items.name}, {self.items.hierarchy_name}, {self.items.hierarchy.height} levels"),
            ("Promise", f"any {self.known} items that a person of a class has, {self.k} persons of it have, or none"),
            *((("Together", f"with items of {', '.join(self.others)}"),) if self.others else ()),
            ("Suppression", f"at most {100 * float(self.limit):g} % of the pairs of person and item"),
            *((("Sensitive", ", ".join(c.name for c in self.sensitive) + ", as they are"),) if self.sensitive else ()),
            ("Not released", "every other column: order, dates and number of rows among them"),
        )

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "source": self.table.source_label,
            "parent": self.parent.name,
            "person": self.table.person,
            "items": self.items.name,
            "hierarchy": self.items.hierarchy_name,
            "height": self.items.hierarchy.height,
            "known": self.known,
            "sensitive": [c.name for c in self.sensitive],
            "together": list(self.others),
            "k": self.k,
            "suppression_limit": float(self.limit),
        }


def plan(name: str, job: Job, engine: Engine) -> ChildPlan:
    """Resolve a child table and its parent; the job's rules have seen that they fit together.

    Raises
    ------
    JobError
        If a table, column or hierarchy is not there or not fit, or the person keys are of different types.
    """
    part = job.tables[name]
    if part.parent is None or part.known is None:
        raise JobError.at(f"tables.{name}.parent", "missing; a child table names the table of its persons")
    parent = plan_table(part.parent, job.tables[part.parent], engine, job.folder)
    family = tuple(child for child, table in job.tables.items() if table.parent == part.parent)
    earlier: tuple[ChildPlan, ...] = ()
    for child in family[: family.index(name) + 1]:
        found = _resolve(child, job, engine, parent)
        earlier = (*earlier, replace(found, earlier=earlier, family=family))
    return earlier[-1]


def _resolve(name: str, job: Job, engine: Engine, parent: TablePlan) -> ChildPlan:
    """One child table, without those beside it."""
    part = job.tables[name]
    own = resolve_child(name, part, engine, job.folder)
    found = ChildPlan(own, parent, part.known or 0)
    if own.person_type != parent.person_type:
        raise JobError.at(
            f"{own.key}.person",
            f"{own.person} is of type {own.person_type}, in {parent.name} of type {parent.person_type}; the child's "
            "rows are given to persons by it: cast it in a source query",
        )
    if found.items.source.kind not in KINDS:
        raise JobError.at(
            f"{own.key}.columns.{found.items.name}",
            f"items are text or whole numbers, not of type {found.items.source.shown_type}; cast them to text in a "
            "source query",
        )
    for c in found.sensitive:
        if c.source.kind not in SENSITIVE_KINDS:
            raise JobError.at(
                f"{own.key}.columns.{c.name}",
                f"is of type {c.source.shown_type}, and dates of a person's rows find the person; leave it out, or "
                "make coarse steps since the person's first row of it in a source query: "
                "DATE_DIFF('day', MIN(d) OVER (PARTITION BY person), d) // 180"
                if c.source.kind in ("date", "timestamp")
                else f"is of type {c.source.shown_type}; cast it to text or a number in a source query",
            )
    _refuse_same_names(found)
    return found


def _refuse_same_names(found: ChildPlan) -> None:
    if len({name.casefold() for name in found.columns}) < len(found.columns):
        raise JobError.at(
            f"{found.key}.columns.{found.items.name}",
            f"the release has columns {', '.join(found.columns)}, and two of them have one name; call the items "
            "otherwise in a source query",
        )


def pseudonym_of(parent: TablePlan) -> OtherColumn:
    """The column in which a parent's persons leave as pseudonyms.

    Raises
    ------
    JobError
        If there is none.
    """
    for c in parent.others:
        if c.source.name == parent.person and c.disguise == "pseudonym":
            return c
    raise JobError.at(
        f"{parent.key}.person", "the parent of a child table releases its person key as a pseudonym: pseudonym = true"
    )


def with_source(plan: ChildPlan, source: exp.Expr) -> ChildPlan:
    """The plan with what is read of the child's source."""
    return replace(plan, table=replace(plan.table, source=source, joined=False))
