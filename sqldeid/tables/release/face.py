"""The face of this wing: hand a job's table releases to the way each is made: lattice, Mondrian, local, or linked.

What only one of the ways needs is imported when that way is taken: most runs take one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

from sqlglot import exp

from sqldeid.catalogue.columns import refuse_two_spellings
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.job import Job
from sqldeid.making import Checking, Hearing, Making, Published
from sqldeid.publish import LEDGER_MARK
from sqldeid.result import Release, Told
from sqldeid.tables.disguise.disguise import pseudonyms
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.plan.plan import plan as plan_one
from sqldeid.tables.release.release import run as run_one
from sqldeid.tables.verify.verify import Verified
from sqldeid.tables.verify.verify import recheck as recheck_one
from sqldeid.tables.write.computed import fingerprint

if TYPE_CHECKING:
    from sqldeid.tables.certificate.local_bound import ProvenBound
    from sqldeid.tables.certificate.proof import Proven
    from sqldeid.tables.followed.recheck import Admit
    from sqldeid.tables.itemset.plan import ChildPlan
    from sqldeid.tables.local.plan import LocalPlan
    from sqldeid.tables.mondrian.plan import PartitionPlan
    from sqldeid.tables.plan.linking import Linked
    from sqldeid.tables.release.tradeoff import Asked
    from sqldeid.traded import Tradeoff

Unit: TypeAlias = "TablePlan | PartitionPlan | LocalPlan | Linked | ChildPlan"
"""What is made at once: a release, or several that are linked."""


def plan_unit(names: Sequence[str], job: Job, engine: Engine) -> Unit:
    """Plan a release, or several that are linked; no data is read.

    Raises
    ------
    JobError
        If a table, column or hierarchy is not there or not fit.
    """
    if job.tables[names[0]].parent is not None:
        from sqldeid.tables.itemset.plan import plan as plan_child

        return plan_child(names[0], job, engine)
    planned = [_plan_one(name, job, engine) for name in names]
    tables = [p for p in planned if p.way == "lattice"]
    return _linked(tables, engine) if len(tables) > 1 else planned[0]


def _plan_one(name: str, job: Job, engine: Engine) -> TablePlan | PartitionPlan | LocalPlan:
    part = job.tables[name]
    if part.search.method == "mondrian":
        from sqldeid.tables.mondrian.plan import plan as plan_parts

        return plan_parts(name, part, engine, job.folder)
    if part.search.method == "local":
        from sqldeid.tables.local.plan import plan as plan_local

        return plan_local(name, part, engine, job.folder)
    return plan_one(name, part, engine, job.folder)


def plan_lattices(names: Sequence[str], job: Job, engine: Engine) -> TablePlan | Linked | LocalPlan:
    """As `plan_lattice`; one by local recoding with what that may do."""
    part = job.tables[names[0]]
    if len(names) > 1 or part.search.method != "local":
        return plan_lattice(names, job, engine)
    from sqldeid.tables.local.plan import plan as plan_local

    return plan_local(names[0], part, engine, job.folder)


def plan_lattice(names: Sequence[str], job: Job, engine: Engine) -> TablePlan | Linked:
    """Plan a release, or several that are linked, by a lattice; no data is read.

    Raises
    ------
    JobError
        As `plan`; also if a release has no lattice.
    """
    planned = [plan_one(name, job.tables[name], engine, job.folder) for name in names]
    return _linked(planned, engine) if len(planned) > 1 else planned[0]


def _linked(members: Sequence[TablePlan], engine: Engine) -> Linked:
    """The join of releases, by a key that tells persons apart."""
    from sqldeid.tables.plan.linking import link, person_column

    joint = link(members)
    for m in members:
        refuse_two_spellings(m.source, person_column(m).source, engine, f"{m.key}.person")
    return joint


def run(planned: Unit, making: Making) -> list[Release]:
    """Make a release, or several that are linked: staged and verified, not yet published.

    Raises
    ------
    SqldeidError
        As `sqldeid.tables.release.release.run`.
    """
    if planned.way == "mondrian":
        from sqldeid.tables.mondrian.release import run as run_parts

        return [run_parts(planned, making)]
    if planned.way == "local":
        from sqldeid.tables.local.release import run as run_local

        local = run_local(planned, making)
        if not making.explain:
            return [local]
        from sqldeid.tables.release.compare import compare_local

        return [compare_local(planned, local, making.engine, making.listener)]
    if planned.way == "linked":
        return _run_linked(planned, making)
    if planned.way == "child":
        from sqldeid.tables.itemset.release import run as run_child

        return [run_child(planned, making)]
    if planned.sample is not None:
        from sqldeid.tables.fold.sample import draw_sample

        planned = draw_sample(planned, making.engine, making.key)
    release = run_one(planned, making)
    if not making.explain:
        return [release]
    from sqldeid.tables.release.compare import compare

    return [compare(planned, release, making.engine, making.listener)]


def _run_linked(planned: Linked, making: Making) -> list[Release]:
    from sqldeid.tables.release.linked import Made, as_one, run_linked, tell_apart

    made = run_linked(planned, making)
    if making.explain:
        from sqldeid.tables.release.compare import compare

        told = as_one(planned, making.listener)
        made = Made(made.joined, compare(made.joined.plan, made.release, making.engine, told))
    return list[Release](tell_apart(made))


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
    if planned.way == "mondrian":
        return _recheck(planned, there, checking)
    alone = planned.table if planned.way == "local" or planned.way == "child" else planned
    tables = alone.members if alone.way == "linked" else (alone,)
    columns = [q for table in tables for q in table.qis]
    with _naming_tables(columns, ", ".join(table.key for table in tables)):
        return _recheck(planned, there, checking)


def _recheck(planned: Unit, there: Mapping[str, Published], checking: Checking) -> dict[str, Verified | Told]:
    engine = checking.engine
    if planned.way == "linked":
        from sqldeid.tables.release.linked import recheck_linked

        notes, written = [there[n][1] for n in planned.names], [there[n][0] for n in planned.names]
        return dict.fromkeys(planned.names, recheck_linked(planned, notes, written, engine, checking.key()))
    written_there, note = there[planned.name]
    if planned.way == "mondrian":
        from sqldeid.tables.mondrian.release import recheck as recheck_parts

        return {planned.name: recheck_parts(planned, note, written_there, engine)}
    if planned.way == "child":
        from sqldeid.tables.itemset.verify import Shown
        from sqldeid.tables.itemset.verify import recheck as recheck_child

        shown = Shown(written_there, there[planned.parent.name], [there[c.name][0] for c in planned.earlier])
        return {planned.name: recheck_child(planned, note, shown, engine, checking.key())}
    if planned.way == "local":
        from sqldeid.tables.local.recheck import recheck as recheck_local

        beside = {name: there[name][0] for name in planned.beside}
        held = _unreleased(planned.table, note, checking)
        return {planned.name: recheck_local(planned, note, written_there, checking, beside, held)}
    refuse_changed(planned, note, engine)
    if planned.sample is not None:
        from sqldeid.tables.fold.sample import draw_sample

        planned = draw_sample(planned, engine, checking.key)
    held = _unreleased(planned, note, checking)
    key = checking.key() if pseudonyms(planned) else None
    return {planned.name: recheck_one(planned, dict(note), written_there, engine, key, held)}


@contextmanager
def _naming_tables(columns: Iterable[QuasiIdentifier], key: str) -> Iterator[None]:
    """Say of a failed re-check that levels were read anew from the database, and may be others by now.

    Parameters
    ----------
    key
        Of the release.
    """
    try:
        yield
    except VerificationError as error:
        names = [q.name for q in columns if q.in_database]
        if names:
            error.message += (
                f". The levels of {', '.join(names)} were read from the database as they are now; where their table "
                f"has changed since {key} was made, verify with the table of then, or make the release anew"
            )
        raise


def _unreleased(planned: TablePlan, note: Mapping[str, object], checking: Checking) -> exp.Table | None:
    """Whom the ledger does not know as released, where the release was held to one."""
    with checking.ledger(note) as found:
        if found is None:
            return None
        from sqldeid.tables.ledger.audit import unreleased

        ledger, number = found
        return unreleased(ledger.book, planned, checking.engine, number, note.get(LEDGER_MARK))


def recheck_followed(
    planned: TablePlan, there: Published, series: str, admit: Admit, checking: Checking
) -> tuple[Verified, exp.Table, Callable[[exp.Table], None]]:
    """Check a published release again with the series that follow it; as `followed.recheck.recheck_accompanied`."""
    from sqldeid.tables.followed.recheck import recheck_accompanied

    refuse_changed(planned, there[1], checking.engine)
    key = checking.key() if pseudonyms(planned) else None
    with _naming_tables(planned.qis, planned.key):
        return recheck_accompanied(planned, there, checking.engine, series, admit, key)


def refuse_changed(planned: TablePlan, note: Mapping[str, object], engine: Engine) -> None:
    """Refuse a frozen release whose source is another by now.

    Raises
    ------
    VerificationError
        If it has changed.
    """
    if planned.frozen and note.get("source_fingerprint") != fingerprint(planned, engine):
        raise VerificationError.at(
            f"{planned.key}.frozen",
            "the source has changed since the release, though the job calls it frozen; whoever "
            "read the view before and after may tell people apart. Release a snapshot instead",
        )


def prove(
    planned: TablePlan | Linked, certificates: Mapping[str, object], engine: Engine
) -> dict[str, Proven | ProvenBound]:
    """Check certificates, by release; those of linked tables are one.

    Raises
    ------
    VerificationError
        If one does not hold, or those of linked tables differ.
    """
    if planned.way == "lattice" and planned.search.method == "local":
        from sqldeid.tables.certificate.local_bound import check_bound

        return {planned.name: check_bound(planned, _mapping(certificates[planned.name]), engine)}
    from sqldeid.tables.certificate.proof import check_certificate

    if planned.way == "lattice":
        return {planned.name: check_certificate(planned, _mapping(certificates[planned.name]), engine)}
    given = [certificates[name] for name in planned.names]
    if not isinstance(given[0], dict) or any(c != given[0] for c in given):
        raise VerificationError.at(planned.key, "the file does not hold one certificate of all the linked tables")
    from sqldeid.tables.rows.linked import join_sources

    with planned.naming():
        proven = check_certificate(join_sources(planned, engine).plan, given[0], engine)
    return dict.fromkeys(planned.names, proven)


def _mapping(certificate: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], certificate)


def tradeoff(planned: TablePlan | Linked | LocalPlan, engine: Engine, asked: Asked, listener: Hearing) -> Tradeoff:
    """What k and the suppression limit cost, on one source or on the join of linked ones; by local recoding, too."""
    from sqldeid.tables.release.tradeoff import trade

    if planned.way == "lattice":
        return trade(planned, engine, asked, listener)
    if planned.way == "local":
        return trade(planned.table, engine, asked, listener, local=planned)
    from sqldeid.tables.release.linked import as_one
    from sqldeid.tables.rows.linked import join_sources

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
    if planned.way == "lattice" and planned.sampled:
        from sqldeid.tables.epsilon_safe.release import check_plan

        check_plan(planned)
