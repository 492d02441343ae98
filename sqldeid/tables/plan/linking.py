"""Linked table releases: planned as the join of their sources by person, on which every criterion is verified.

Whoever holds two tables with the same pseudonyms joins them, so they are one table: one lattice of all their
quasi-identifying columns, one node, one set of suppressed persons. Persons whom only some of the tables have are in
none of them: to be absent would be one more thing that a reader knows of a person.

In the join a column is called by its release, too: ``patients/age``; a release's name holds no ``/``, so no two read
alike.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from sqldeid import job as jobfile
from sqldeid.engine.base import Column
from sqldeid.errors import JobError, SqldeidError
from sqldeid.job.criteria import PER_CLASS
from sqldeid.job.link_rules import SEARCH_KEYS
from sqldeid.sql import table_name
from sqldeid.tables.criteria import MConcealing
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.demands import Demands, Seeking, seeking_of
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

    way: ClassVar[Literal["linked"]] = "linked"
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
        demands=_joint_demands(members),
        search=_joint_search(members),
        outward=tuple(dict.fromkeys(found for m in members for found in m.outward)),
        person_type=first.person_type,
        many=first.many,
        as_text=first.as_text,
        computed=first.computed,
        frozen=first.frozen,
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


def _joint_demands(members: Sequence[TablePlan]) -> Demands:
    """What is asked of the join: the strictest of what is asked of each."""
    asked = [(m, m.demands) for m in members]
    own_limits = (d.criteria_limit for _, d in asked if d.criteria_limit is not None)
    joint = replace(
        members[0].demands,
        k=max(d.k for _, d in asked),
        suppression_limit=min(d.suppression_limit for _, d in asked),
        criteria_limit=min(own_limits, default=None),
        sensitive=tuple(qualified(m, name) for m, d in asked for name in d.sensitive),
    )
    entries = [(own, _of(m, entry)) for key in PER_CLASS for m, d in asked for own, entry in d.entries if own == key]
    return joint.asking(entries, _joint_concealing(members))


def _joint_concealing(members: Sequence[TablePlan]) -> MConcealing | None:
    """The least m, for whoever knows what is known of any of the tables."""
    hidden = [(m, m.concealing) for m in members if m.concealing is not None]
    if not hidden:
        return None
    known = {qualified(m, name): p for m, found in hidden for name, p in found.known}
    return MConcealing(
        min(found.m for _, found in hidden), tuple(known.items()), max(found.inclusion for _, found in hidden)
    )


def _of(member: TablePlan, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry that asks for a criterion of the release's column, as one of the join's."""
    return {**entry, "column": qualified(member, entry["column"])}


def _joint_search(members: Sequence[TablePlan]) -> Seeking:
    """What any of the tables states; the rules have seen that they do not contradict each other."""
    said = [m.stated.get("search", {}) for m in members]
    stated = {key: search[key] for search in said for key in SEARCH_KEYS if key in search}
    weights = {qualified(m, name): weight for m in members for name, weight in m.search.weights.items()}
    return replace(seeking_of(jobfile.Search()), **stated, weights=weights)
