"""The wing's work for whoever has a job's table releases: by lattice, by Mondrian, or linked, each to its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.job import Job
from sqldeid.making import Checking, Hearing, Making, Published
from sqldeid.publish import LEDGER_MARK
from sqldeid.result import Release, Told, Tradeoff
from sqldeid.tables.certificate.proof import Proven, check_certificate
from sqldeid.tables.disguise.disguise import pseudonyms
from sqldeid.tables.epsilon_safe.release import check_plan
from sqldeid.tables.followed.recheck import Admit, recheck_accompanied
from sqldeid.tables.ledger.audit import unreleased
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.mondrian.plan import plan as plan_parts
from sqldeid.tables.mondrian.release import recheck as recheck_parts
from sqldeid.tables.mondrian.release import run as run_parts
from sqldeid.tables.plan.linking import Linked, link
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.plan.plan import plan as plan_one
from sqldeid.tables.release.compare import compare
from sqldeid.tables.release.linked import Made, as_one, recheck_linked, run_linked, tell_apart
from sqldeid.tables.release.release import run as run_one
from sqldeid.tables.release.tradeoff import Asked, trade
from sqldeid.tables.rows.linked import join_sources
from sqldeid.tables.verify.verify import Verified
from sqldeid.tables.verify.verify import recheck as recheck_one
from sqldeid.tables.write.computed import fingerprint

Unit = TablePlan | PartitionPlan | Linked
"""What is made at once: a release, or several that are linked."""


def plan(names: Sequence[str], job: Job, engine: Engine) -> Unit:
    """Plan a release, or several that are linked; no data is read.

    Raises
    ------
    JobError
        If a table, column or hierarchy is not there or not fit.
    """
    planned = [_plan_one(name, job, engine) for name in names]
    tables = [p for p in planned if isinstance(p, TablePlan)]
    return link(tables) if len(tables) > 1 else planned[0]


def _plan_one(name: str, job: Job, engine: Engine) -> TablePlan | PartitionPlan:
    part = job.tables[name]
    if part.search.method == "mondrian":
        return plan_parts(name, part, engine, job.folder)
    return plan_one(name, part, engine, job.folder)


def plan_lattice(names: Sequence[str], job: Job, engine: Engine) -> TablePlan | Linked:
    """Plan a release, or several that are linked, by a lattice; no data is read.

    Raises
    ------
    JobError
        As `plan`; also if a release has no lattice.
    """
    planned = [plan_one(name, job.tables[name], engine, job.folder) for name in names]
    return link(planned) if len(planned) > 1 else planned[0]


def run(planned: Unit, making: Making) -> list[Release]:
    """Make a release, or several that are linked: staged and verified, not yet published.

    Raises
    ------
    SqldeidError
        As `sqldeid.tables.release.release.run`.
    """
    if isinstance(planned, PartitionPlan):
        return [run_parts(planned, making)]
    if isinstance(planned, Linked):
        made = run_linked(planned, making)
        if making.explain:
            told = as_one(planned, making.listener)
            made = Made(made.joined, compare(made.joined.plan, made.release, making.engine, told))
        return list[Release](tell_apart(made))
    release = run_one(planned, making)
    return [compare(planned, release, making.engine, making.listener) if making.explain else release]


def recheck(planned: Unit, there: Mapping[str, Published], checking: Checking) -> dict[str, Verified | Told]:
    """Check published releases again, against the source as it is now.

    Parameters
    ----------
    there
        What was published, by release; linked releases are checked by what was counted on their join.

    Raises
    ------
    VerificationError
        If a release is not what job, note and source say.
    """
    engine = checking.engine
    if isinstance(planned, Linked):
        notes, written = [there[n][1] for n in planned.names], [there[n][0] for n in planned.names]
        return dict.fromkeys(planned.names, recheck_linked(planned, notes, written, engine, checking.key()))
    written_there, note = there[planned.name]
    if isinstance(planned, PartitionPlan):
        return {planned.name: recheck_parts(planned, note, written_there, engine)}
    refuse_changed(planned, note, engine)
    held = None
    with checking.ledger(note) as found:
        if found is not None:
            ledger, number = found
            held = unreleased(ledger.book, planned, engine, number, note.get(LEDGER_MARK))
    key = checking.key() if pseudonyms(planned) else None
    return {planned.name: recheck_one(planned, dict(note), written_there, engine, key, held)}


def recheck_followed(
    planned: TablePlan, there: Published, series: str, admit: Admit, checking: Checking
) -> tuple[Verified, exp.Table, Callable[[exp.Table], None]]:
    """Check a published release again with the series that follow it; as `followed.recheck.recheck_accompanied`."""
    written, note = there
    refuse_changed(planned, note, checking.engine)
    key = checking.key() if pseudonyms(planned) else None
    return recheck_accompanied(planned, note, written, checking.engine, series, admit, key)


def refuse_changed(planned: TablePlan, note: Mapping[str, object], engine: Engine) -> None:
    """Refuse a frozen release whose source is another by now.

    Raises
    ------
    VerificationError
        If it has changed.
    """
    if planned.part.frozen and note.get("source_fingerprint") != fingerprint(planned, engine):
        raise VerificationError(
            f"{planned.key}.frozen: the source has changed since the release, though the job calls it frozen; whoever "
            "read the view before and after may tell people apart. Release a snapshot instead",
            key=f"{planned.key}.frozen",
        )


def prove(planned: TablePlan | Linked, certificates: Mapping[str, object], engine: Engine) -> dict[str, Proven]:
    """Check certificates, by release; those of linked tables are one.

    Raises
    ------
    VerificationError
        If one does not hold, or those of linked tables differ.
    """
    if isinstance(planned, TablePlan):
        return {planned.name: check_certificate(planned, _mapping(certificates[planned.name]), engine)}
    given = [certificates[name] for name in planned.names]
    if not isinstance(given[0], dict) or any(c != given[0] for c in given):
        raise VerificationError(
            f"{planned.key}: the file does not hold one certificate of all the linked tables", key=planned.key
        )
    with planned.naming():
        proven = check_certificate(join_sources(planned, engine).plan, given[0], engine)
    return dict.fromkeys(planned.names, proven)


def _mapping(certificate: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], certificate)


def tradeoff(planned: TablePlan | Linked, engine: Engine, asked: Asked, listener: Hearing) -> Tradeoff:
    """What k and the suppression limit cost, on one source or on the join of linked ones."""
    if isinstance(planned, TablePlan):
        return trade(planned, engine, asked, listener)
    with planned.naming():
        traded = trade(join_sources(planned, engine).plan, engine, asked, as_one(planned, listener))
    return replace(traded, name=planned.name)


def check_promise(planned: Unit) -> None:
    """Refuse what the theorem of epsilon-safe does not cover, for whoever asks what a run would do.

    Raises
    ------
    JobError
        As `sqldeid.tables.epsilon_safe.release.check_plan`.
    """
    if isinstance(planned, TablePlan) and planned.sampled:
        check_plan(planned)
