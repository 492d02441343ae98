"""Release linked tables: join them, search once, write each, verify the join, and tell of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from sqldeid.attacked import none_made
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.keys import Key
from sqldeid.making import Hearing, Making
from sqldeid.publish import COMMENTS_NOTE, LINKED_NOTE, SOURCE_NOTE, SUM_NOTE
from sqldeid.result import Criterion, TableRelease
from sqldeid.stages import Stage, walk
from sqldeid.tables.disguise.disguise import warnings_of
from sqldeid.tables.plan.linking import Linked, qualified
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.linked_statements import comparing, joining, writing_apart
from sqldeid.tables.release.release import Company, Listener, way_of
from sqldeid.tables.release.summary import at_top
from sqldeid.tables.rows.linked import Apart, Joined, check_sources, join_sources, join_written
from sqldeid.tables.verify.verify import Verified, recheck
from sqldeid.tables.write.draft import Draft, DraftStage
from sqldeid.tables.write.unchanged_source import telling_of_changes


@dataclass(frozen=True, slots=True)
class Made:
    """Linked releases, staged and verified: `release` is of the join."""

    joined: Joined
    release: TableRelease


def run_linked(linked: Linked, making: Making) -> Made:
    """Search, stage and verify linked releases as the join that they are; as `release.run`.

    Raises
    ------
    JobError, HierarchyError, NoSolutionError, VerificationError
        As `release.run`; also if nobody is in all of the tables.
    """
    engine, key = making.engine, making.key()
    sha256, cohorts = making.job_sha256, making.cohorts
    company = Company(lambda: key, certificate=making.certificate, cohorts=cohorts, job_sha256=sha256)
    apart, told = Apart(linked, engine, making.staging), as_one(linked, making.listener)
    draft = Draft(linked.joint, engine, apart, told)
    joined: list[Joined] = []
    with linked.naming():
        walk(linked_way(linked, company, joined), draft, draft.say)
    return Made(joined[0], draft.result)


def linked_way(linked: Linked, company: Company, joined: list[Joined]) -> tuple[DraftStage, ...]:
    """The stages of linked releases: their sources are joined, and the join is released as one table.

    Parameters
    ----------
    joined
        Is given the joined sources.
    """

    def join(draft: Draft) -> None:
        found = join_sources(linked, draft.engine)
        draft.plan, draft.moved = found.plan, draft.engine.moved
        joined.append(found)

    def check(draft: Draft) -> None:
        with telling_of_changes(draft.engine):
            check_sources(joined[0], draft.engine)

    return (
        Stage("joining the sources", join, lambda target: joining(linked, target)),
        *way_of(linked.joint, company, lambda target: writing_apart(linked, target)),
        Stage("", check, lambda _: comparing(linked)),
    )


def as_one(linked: Linked, listener: Hearing) -> Hearing:
    """A listener that hears what the releases are called together."""
    return Listener(lambda _, step: listener.step(linked.name, step), listener.search)


def recheck_linked(
    linked: Linked,
    notes: Sequence[Mapping[str, object]],
    written: Sequence[exp.Expr],
    engine: Engine,
    key: Key | None = None,
) -> Verified:
    """Verify published linked releases: the criteria on their join, by pseudonym, against the sources as they are now.

    Parameters
    ----------
    notes, written
        What is kept on each release, and what to read, in the order of the members.

    Raises
    ------
    VerificationError
        If they are not what job, notes and sources say, or were not published together.
    """
    note = _one_note(linked, notes)
    with linked.naming():
        joined = join_sources(linked, engine)
        check_sources(joined, engine)
        found = recheck(joined.plan, note, join_written(linked, written, engine), engine, key)
    return replace(found, linked=linked.names)


_OWN = ("release", "columns", SOURCE_NOTE, COMMENTS_NOTE, SUM_NOTE)
"""What the note on each release says of that release alone."""


def _one_note(linked: Linked, notes: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """What all releases say of their join."""
    said = [{name: value for name, value in note.items() if name not in _OWN} for note in notes]
    for m, note in zip(linked.members, said, strict=True):
        if note.get(LINKED_NOTE) != list(linked.names):
            raise VerificationError.at(
                f"{m.key}.link",
                f"the release was not made linked with {', '.join(linked.others(m.name))}, as the job says now",
            )
    if any(note != said[0] for note in said):
        raise VerificationError.at(
            linked.key, "the releases were not published together; make them anew, all in one run"
        )
    return said[0]


def tell_apart(made: Made) -> list[TableRelease]:
    """The release of each linked table: its own columns and levels; counts, losses and risks are those of the join."""
    return [_own(made, m) for m in made.joined.linked.members]


def _own(made: Made, member: TablePlan) -> TableRelease:
    linked, release = made.joined.linked, made.release
    traded = release.tradeoff
    return replace(
        release,
        name=member.name,
        node=_mine(member, release.node),
        columns=_mine(member, release.columns),
        suppression_by=_mine(member, release.suppression_by),
        criteria=tuple(_criteria(linked, member, release.criteria)),
        warnings=tuple(_warnings(made, member)),
        pseudonymised=tuple(_mine(member, dict.fromkeys(release.pseudonymised))),
        policy=None,
        attacks=none_made("no attack knows linked tables") if member.attacks else None,
        tradeoff=None if traded is None else replace(traded, name=member.name),
        linked={
            "with": list(linked.others(member.name)),
            "node": dict(release.node),
            "left_out": made.joined.left_out[member.name],
        },
    )


def _mine(member: TablePlan, of_join: Mapping[str, Any]) -> dict[str, Any]:
    """What of a mapping by the join's columns is of one release's, by their own names."""
    start = qualified(member, "")
    return {name.removeprefix(start): value for name, value in of_join.items() if name.startswith(start)}


def _criteria(linked: Linked, member: TablePlan, criteria: Sequence[Criterion]) -> list[Criterion]:
    """Those of all columns together, and those of the release's own."""
    start, others = qualified(member, ""), " and ".join(linked.others(member.name))
    also = f"It holds for who joins this table with {others}, too: classes are those of all their columns."
    found = [
        c if c.column is None else _renamed(c, start)
        for c in criteria
        if c.column is None or c.column.startswith(start)
    ]
    return [replace(c, guarantee=f"{c.guarantee} {also}") for c in found]


def _renamed(criterion: Criterion, start: str) -> Criterion:
    """A criterion whose column is called by its own name, in its promise, too."""
    column = str(criterion.column)
    own = column.removeprefix(start)
    return replace(criterion, column=own, guarantee=criterion.guarantee.replace(column, own))


def _at_top(made: Made, member: TablePlan) -> set[str]:
    """The member's quasi-identifying columns that the common node shows as one value."""
    gone, start = at_top(made.joined.plan, tuple(made.release.node.values())), qualified(member, "")
    return {name.removeprefix(start) for name in gone if name.startswith(start)}


def _warnings(made: Made, member: TablePlan) -> list[str]:
    """The release's own, and those of the join that are not about another release's column."""
    linked, left_out = made.joined.linked, made.joined.left_out[member.name]
    plan = made.joined.plan
    disguised = set(warnings_of(plan))
    found = list(warnings_of(member, _at_top(made, member), apart=False))
    others = ", ".join(linked.others(member.name))
    if left_out:
        found.append(
            f"{member.key}: {left_out:,} of its {made.release.rows + left_out:,} persons are left out: they are not in "
            f"{others}, with which it is linked"
        )
    column = f"{plan.key}.columns."
    for warning in made.release.warnings:
        another = warning.startswith(column) and not warning.startswith(column + qualified(member, ""))
        told = linked.own(warning).replace(f"{plan.key}: ", f"{member.key}: ", 1)
        elsewhere = warning.startswith(column) and told not in found  # a date here, beside another table's shifted ones
        if not another and (warning not in disguised or elsewhere):
            found.append(told)
    return found
