"""A table release and the series that are linked to it, in one run: made, planned and checked together.

The table is searched first; then the series are formed within its classes, which says who is in both and by which new
number; then the table is written and verified, and the series after it, alone and on the join of what was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from sqldeid import tables
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.making import Checking, Hearing, Published, Together
from sqldeid.publish import Staging
from sqldeid.result import Release, Told
from sqldeid.run.places import Options, naming_release
from sqldeid.run.wings import Plan, nature_of
from sqldeid.tables import Listener

# At run time the wing of series is loaded where a job has any: a job of tables does not wait for it.
if TYPE_CHECKING:
    from sqldeid import series
    from sqldeid.numbering import Members, TableClasses
    from sqldeid.series import SeriesPlan
    from sqldeid.tables import TablePlan, Verified


@dataclass(slots=True)
class Following:
    """Series on their way: planned, begun when their table is chosen, finished after it is written."""

    plan: SeriesPlan
    engine: Engine
    listener: Hearing = field(default_factory=Listener)
    begun: series.Begun | None = None
    placed: exp.Table | None = None

    @property
    def name(self) -> str:
        """The release of the series."""
        return self.plan.name

    def admit(self, classes: TableClasses) -> Members:
        """Form series within the table's classes."""
        with naming_release(self.plan.key):
            self.begun = _series().begin(self.plan, self.engine, self.listener, classes)
        if self.begun.members is None:
            raise VerificationError(f"{self.plan.key}.link: nobody is in both releases", key=self.plan.key)
        return self.begun.members

    def beside(self, written: exp.Table) -> None:
        """Keep what the written table says of each number."""
        self.placed = written

    def finish(self, staging: Staging, sha256: str) -> Release:
        """Write and verify the series."""
        if self.begun is None or self.placed is None:
            raise VerificationError(f"{self.plan.key}.link: its table was not written before it", key=self.plan.key)
        made: Release = _series().finish(self.begun, self.engine, staging, self.placed)
        return made


@dataclass(frozen=True, slots=True)
class Pairs:
    """The linked series of a run, by the name of their table; and what holds its other series to each other."""

    by_table: Mapping[str, Following]
    together: Together | None = None

    def partner(self, table: str) -> Following | None:
        """The series that follow a table."""
        return self.by_table.get(table)

    def following(self, name: str) -> Following | None:
        """A release of series that follows a table."""
        return next((f for f in self.by_table.values() if f.name == name), None)


def pair(job: Job, plans: Sequence[Plan], engine: Engine, options: Options, listener: Hearing | None = None) -> Pairs:
    """Bring linked releases together.

    Parameters
    ----------
    plans
        Of all releases of the run.

    Raises
    ------
    JobError
        If one of a pair is not in the run, their keys are of different types, or a policy or ledger is given.
    """
    there = {p.name: p for p in plans if nature_of(p).person}
    found = {}
    for name, part in job.series.items():
        if part.link is None or (name not in there and part.link not in there):
            continue
        _refuse_half(job, name, part.link, there)
        table, follower = there[part.link], there[name]
        _refuse(cast("TablePlan", table), cast("SeriesPlan", follower), options)
        found[part.link] = Following(cast("SeriesPlan", follower), engine, listener or Listener())
    alone = sum(nature_of(p).together for p in plans) < 2
    return Pairs(found, None if alone or options.without_ledger else _series().Differencing())


def _series() -> ModuleType:
    from sqldeid import series

    return series


def _refuse_half(job: Job, name: str, link: str, there: Mapping[str, object]) -> None:
    for missing, other in ((link, name), (name, link)):
        if missing not in there:
            raise JobError(
                f"{job.name}: --only: {other} is linked with {missing}, and both are made and checked together; give "
                f"--only {link} --only {name}",
                key="only",
            )


def _refuse(table: TablePlan, follower: SeriesPlan, options: Options) -> None:
    key = f"{follower.key}.link"
    here, there = nature_of(table).person, nature_of(follower).person
    if here != there:
        raise JobError.at(
            key,
            f"{table.key}.person is of type {here}, and {follower.key}.person of type {there}, "
            "so that keys cannot be compared; cast one of them in a source query",
        )
    tables.numbered(table)
    for option, given in (("--policy", options.policy), ("--ledger", options.ledger)):
        if given is not None:
            raise JobError.at(
                key,
                f"{option} keeps account of tables alone, and series released again for the same persons can be "
                f"compared; release without {option}, or remove link",
            )


def tell(plans: Sequence[Plan], pairs: Pairs) -> list[Plan]:
    """The plans, with each table's line about the series that follow it."""
    followed = {table: following.name for table, following in pairs.by_table.items()}
    return [tables.followed_by(cast("TablePlan", p), followed[p.name]) if p.name in followed else p for p in plans]


def recheck_pair(
    table: TablePlan, following: Following, published: Mapping[str, Published], checking: Checking
) -> dict[str, Verified | Told]:
    """Check two published releases again, each with the other.

    Parameters
    ----------
    published
        What was published, and its note, by release.

    Raises
    ------
    VerificationError
        If either is not what job, notes and sources say, or they do not belong together.
    """
    engine = checking.engine
    again: list[series.Reshaped] = []

    def admit(classes: TableClasses) -> Members:
        with naming_release(following.plan.key):
            found: series.Reshaped = _series().reshape(following.plan, engine, classes)
        again.append(found)
        if found.members is None:
            raise VerificationError(f"{following.plan.key}.link: nobody is in both releases", key=following.plan.key)
        return found.members

    there = published[table.name]
    verified, placed, together = tables.recheck_followed(table, there, following.name, admit, checking)
    written, note = published[following.name]
    return {
        table.name: verified,
        following.name: _series().recheck_shaped(again[0], note, written, engine, placed, together),
    }
