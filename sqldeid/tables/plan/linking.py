"""Linked table releases: planned as the join of their sources by person, on which every criterion is verified.

Whoever holds two tables with the same pseudonyms joins them, so they are one table: one lattice of all their
quasi-identifying columns, one node, one set of suppressed persons. Persons whom only some of the tables have are in
none of them: to be absent would be one more thing that a reader knows of a person.

In the join a column is called by its release, too: ``patients/age``; a release's name holds no ``/``, so no two read
alike.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import BaseModel

from sqldeid import job as jobfile
from sqldeid.engine.base import Column
from sqldeid.errors import JobError, SqldeidError
from sqldeid.job.criteria import PER_CLASS
from sqldeid.job.link_rules import SEARCH_KEYS
from sqldeid.sql import table_name
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.plan import TablePlan

PERSON = "person"
"""The person key in the join; no other column there is called by a name without ``/``."""


@dataclass(frozen=True, slots=True)
class Linked:
    """Table releases that are linked, and the plan of their join.

    Parameters
    ----------
    members
        In the order of the job.
    joint
        One table release of all their columns; its `source` is only there once the sources were joined.
    """

    members: tuple[TablePlan, ...]
    joint: TablePlan

    @property
    def name(self) -> str:
        """``patients + procedures``: what figures of the join are called."""
        return " + ".join(self.names)

    @property
    def key(self) -> str:
        """Where the job asks for them: ``tables.patients + tables.procedures``."""
        return self.joint.key

    @property
    def names(self) -> tuple[str, ...]:
        """The releases' names."""
        return tuple(m.name for m in self.members)

    def others(self, name: str) -> tuple[str, ...]:
        """The releases that one is linked with."""
        return tuple(n for n in self.names if n != name)

    def own(self, text: str) -> str:
        """A message, or key, about a column of the join as one about its release's column."""
        for m in self.members:
            text = text.replace(f"{self.key}.columns.{qualified(m, '')}", f"{m.key}.columns.")
            text = text.replace(f"{self.joint.source_label}.{qualified(m, '')}", f"{m.source_label}.")
        return text

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name releases and their own columns in errors about the join."""
        try:
            yield
        except SqldeidError as error:
            error.message, error.key = self.own(error.message), self.own(error.key)
            raise


def qualified(member: TablePlan, column: str) -> str:
    """A release's column as the join calls it."""
    return f"{member.name}/{column}"


def link(members: Sequence[TablePlan]) -> Linked:
    """Plan the join of releases; the job's rules have seen that they fit together.

    Raises
    ------
    JobError
        If their person keys are of different types: equal keys could be spelt differently.
    """
    first = members[0]
    for m in members[1:]:
        if m.person_type != first.person_type:
            raise JobError.at(
                f"{m.key}.person",
                f"{m.person} is of type {m.person_type}, in {first.name} of type {first.person_type}; "
                "linked tables are joined by it: cast it in a source query",
            )
    joint = TablePlan(
        name="/".join(m.name for m in members),
        key=" + ".join(m.key for m in members),
        source=table_name("sqldeid_linked"),
        source_label=f"the join of {' and '.join(m.name for m in members)}",
        joined=False,
        person=PERSON,
        columns=tuple(_joint_column(m, c) for m in members for c in m.columns),
        part=_joint_part(members),
        outward=tuple(dict.fromkeys(found for m in members for found in m.outward)),
        person_type=first.person_type,
    )
    return Linked(tuple(members), joint)


def person_column(member: TablePlan) -> OtherColumn:
    """The column that holds a release's persons, which leaves as their pseudonym."""
    return next(c for c in member.others if c.source.name == member.person and c.disguise == "pseudonym")


def _joint_column(member: TablePlan, c: QuasiIdentifier | OtherColumn) -> QuasiIdentifier | OtherColumn:
    name = qualified(member, c.name)
    if c.source.name != member.person:
        return replace(c, name=name, source=replace(c.source, name=qualified(member, c.source.name)))
    text = c.source.kind == "text"  # the join holds no ENUM of it, whose types may differ
    source = Column(PERSON, "VARCHAR" if text else c.source.type, c.source.kind)
    return replace(c, name=name, source=source)


def _joint_part(members: Sequence[TablePlan]) -> jobfile.Table:
    """What the job would say of the join: the strictest of what it says of each."""
    columns = {qualified(m, n): c for m in members for n, c in m.part.every_column.items()}
    update = {
        "columns": columns,
        "stack": {},
        "where": None,
        "link": None,
        "privacy": _joint_privacy(members),
        "search": _joint_search(members),
    }
    return members[0].part.model_copy(update=update)


def _joint_privacy(members: Sequence[TablePlan]) -> jobfile.Privacy:
    asked = [(m, m.part.privacy) for m in members]
    hidden = [(m, p.m_concealing) for m, p in asked if p.m_concealing is not None]
    strictest = None
    if hidden:
        known = {qualified(m, name): p for m, found in hidden for name, p in found.known.items()}
        least, most = min(found.m for _, found in hidden), max(found.inclusion for _, found in hidden)
        strictest = hidden[0][1].model_copy(update={"m": least, "known": known, "inclusion": most})
    update = {
        "k": max(p.k for _, p in asked),
        "suppression_limit": min(p.suppression_limit for _, p in asked),
        "criteria_limit": min((p.criteria_limit for _, p in asked if p.criteria_limit is not None), default=None),
        **{key: [_of(m, entry) for m, p in asked for entry in p.per_class[key]] for key in PER_CLASS},
        "m_concealing": strictest,
    }
    return members[0].part.privacy.model_copy(update=update)


def _of(member: TablePlan, entry: BaseModel) -> BaseModel:
    """An entry that asks for a criterion of the release's column, as one of the join's."""
    return entry.model_copy(update={"column": qualified(member, dict(entry)["column"])})


def _joint_search(members: Sequence[TablePlan]) -> jobfile.Search:
    """What any of the tables states; the rules have seen that they do not contradict each other."""
    asked = [(m, m.part.search) for m in members]
    stated = {key: getattr(s, key) for _, s in asked for key in SEARCH_KEYS if key in s.model_fields_set}
    weights = {qualified(m, name): weight for m, s in asked for name, weight in s.weights.items()}
    return jobfile.Search().model_copy(update={**stated, "weights": weights})
