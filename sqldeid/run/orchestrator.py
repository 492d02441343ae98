"""Plan the releases of a job, hand each to its wing, publish all or none; check and assess what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from sqldeid import tables
from sqldeid.arguments import flag, refused
from sqldeid.attacked import Attacks, spared_after
from sqldeid.engine.base import Engine
from sqldeid.engine.choosing import dialect_of, shown
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import Database, in_memory, is_connection, path_of
from sqldeid.engine.remote import Remote
from sqldeid.engine.undisturbed import undisturbed
from sqldeid.errors import AttackFailedError, Interrupted, VerificationError, listed
from sqldeid.job import Job
from sqldeid.job.local_rules import BESIDE
from sqldeid.keys import key_warnings, read_key
from sqldeid.making import Checking, Making, Published
from sqldeid.publish import Destination, beside_releases, published
from sqldeid.report import holders_page
from sqldeid.result import Release, Result, Risk
from sqldeid.run.calls import heard_by, taken
from sqldeid.run.cohorts import Compared, compare_tables
from sqldeid.run.composing import compose, with_composition
from sqldeid.run.dates import ToldDays
from sqldeid.run.dates_before import refuse_in_source, refuse_planned, told_in_plan
from sqldeid.run.earlier import noted_ledger, open_earlier, refuse_unfit
from sqldeid.run.followed import Pairs, pair, recheck_pair, tell
from sqldeid.run.foreign import refuse_missing_parts, writes_here
from sqldeid.run.held import hold
from sqldeid.run.joinable import Joinable, Noticing, Rechecked, compared, find_joinable, warnings_of
from sqldeid.run.places import (
    Options,
    destination,
    held_there,
    naming_job,
    naming_release,
    open_run,
    reading,
    refuse_unread,
    telling_causes,
)
from sqldeid.run.unchanged import Sources
from sqldeid.run.wings import (
    Plan,
    gather,
    is_linked,
    nature_of,
    plan_release,
    selected,
    tables_among,
    why_unproven,
    wing_of,
    with_layers,
)
from sqldeid.stages import Explained
from sqldeid.tables import Listener
from sqldeid.version import OTHER_FORM, is_known, own_version

if TYPE_CHECKING:
    from sqldeid.engine.frames import Frames
    from sqldeid.run.planned import Plans
    from sqldeid.tables import Linked, Proven, ProvenBound, TablePlan


def anonymize(
    job: Job, database: Database | Frames, *, options: Options | None = None, listener: Listener | None = None
) -> Result:
    """Make the releases of a job, verify them and publish them together.

    Parameters
    ----------
    job
        From `Job.load` or `Job.parse`.
    database
        Path of a DuckDB, CSV or Parquet file, the URL of a server (``postgresql://…``), or an open connection to
        either (left as it was found, but for the releases where `release.into` is absent). A data frame or Arrow table
        stands for the only source of a job, several by name for tables of ``main``; without `release.into` the releases
        are held in memory (`Result.to_arrow`) and nothing is written to disk.

    Raises
    ------
    SqldeidError
        One of its kinds; nothing was published then.

    Notes
    -----
    Where an attack on a table fails and takes with it what was staged, all is made once more without that attack; and
    without any on the table, where a second one fails.
    """
    options, listener = taken(job, options), heard_by(listener)
    if in_memory(database):
        from sqldeid.run.frames import held, with_tables

        with held(job, database, options.settings) as connection:
            made = anonymize(job, connection, options=options, listener=listener)
            return with_tables(made, job, connection)
    met = hold(job, options, selected(job, options.only), running=True)
    started, spared = monotonic(), dict[str, Mapping[str, str]]()
    while True:
        try:
            return replace(_anonymize(job, database, options, listener, started, spared), house_rules=met)
        except AttackFailedError as failed:
            before = spared.get(failed.release)
            if before is not None and failed.attack in before:
                raise
            spared[failed.release] = spared_after(before, failed.attack, failed.reason)
            listener.step(failed.release, f"starting again, for {failed.attack} failed")


def _anonymize(
    job: Job,
    database: Database,
    options: Options,
    listener: Listener,
    started: float,
    spared: Mapping[str, Mapping[str, str]],
) -> Result:
    """The same, but for the attacks that are spared."""
    names = selected(job, options.only)
    refuse_unread(job, database)
    refuse_unfit(job, names, options)
    releases: list[Release] = []
    written: dict[str, str] = {}
    joinable: tuple[Joinable, ...] = ()
    engine: Engine | None = None
    try:
        with ExitStack() as stack:
            engine, staging, there = open_run(job, database, with_layers(job, names), options, stack)
            with naming_job(job):
                units = gather(job, names, lambda group: plan_release(job, group, engine))
                sources = Sources(job, engine, options, names, there, _planned(job, engine, units))
                noticing = Noticing(staging, sources.mark)
                days = ToldDays.of([nature_of(unit) for unit in units], there, sources, told=options.without_ledger)
                refuse_planned(units, engine)
                said = _cautions(units, engine)
                held = held_there(engine, destination(job), names, there) if options.ledger is not None else []
                pairs = pair(job, units, engine, options, listener)
                earlier = open_earlier(options, units, stack, held, destination(job).into)
                sources.entered = earlier.entered
                making = Making(engine, noticing, job.sha256, listener, lambda: read_key(options.key_file))
                making = replace(making, certificate=options.certificate, explain=options.explain)
                cohorts = None if earlier.ledger is not None else compare_tables(map(nature_of, units), engine)
                making = replace(making, policies=earlier.policies, ledger=earlier.ledger, together=pairs.together)
                making = replace(making, cohorts=cohorts, spared=spared, made=noticing.made)
                refuse_in_source(units, engine, listener)
                for unit in units:
                    releases += _make(unit, making, pairs)
                days.refuse_made(noticing.notes, noticing.written, engine)
                releases = _together(releases, cohorts, engine, making)
                joinable = find_joinable(job, noticing.written, engine, _linked(units))
            for release in releases:
                listener.step(release.name, "publishing")
            certain = isinstance(engine, DuckDBEngine) or writes_here(database, destination(job))
            with undisturbed() if isinstance(engine, DuckDBEngine) else nullcontext():  # no doubt whether it is there
                written = dict(zip(noticing.written, earlier.publish(staging, certain=certain), strict=True))
    except Interrupted as stopped:
        if _committed(engine):
            raise Interrupted("interrupted; the releases were published") from None
        if "published" not in stopped.message:  # by a search beside the releases' own
            stopped.message += "; nothing was published"
        raise
    except KeyboardInterrupt:
        if not written:  # between two statements; within one the engine says so
            done = "the releases were" if _committed(engine) else "nothing was"
            raise Interrupted(f"interrupted; {done} published") from None
    found = {r.name: _published(r, written) for r in releases}
    result = _result(job, database, found, joinable, options, monotonic() - started)
    return replace(result, warnings=(*result.warnings, *days.warnings, *sources.warnings, *said))


def _planned(job: Job, engine: Engine, units: Sequence[Plan]) -> Callable[[str], Plan]:
    """Plans a release of the job by itself: those that the run makes by themselves are planned already."""
    alone = {nature_of(unit).names[0]: unit for unit in units if not is_linked(unit)}
    return lambda name: alone.get(name) or plan_release(job, [name], engine)


def _committed(engine: Engine | None) -> bool:
    """Whether a server has taken the releases in, though the run was stopped before it could note that."""
    return isinstance(engine, Remote) and engine.committed


def _together(releases: Sequence[Release], cohorts: Compared | None, engine: Engine, making: Making) -> list[Release]:
    """Hold the tables of a run to each other, and attack each two of them."""
    if cohorts is not None:
        cohorts.judge(engine)
    asked = [r.name for r in releases if isinstance(getattr(r, "attacks", None), Attacks)]
    failed = making.spared.get("", {}).get("composition", "")
    held = {r.name: getattr(r, "ledger", None) for r in releases}
    accounts = {name: account for name, account in held.items() if account is not None and "intersected" in account}
    alone = sum(r.kind not in ("series", "events") for r in releases) == 1
    composed = compose(cohorts, asked, engine, accounts=accounts, alone=alone, failed=failed) if asked else {}
    if cohorts is not None:
        cohorts.drop(engine)
    return [with_composition(r, composed) for r in releases]


def plan(job: Job, database: Database | Frames, *, options: Options | None = None) -> Plans:
    """What `anonymize` would do, from the catalogue alone; nothing is read and nothing is written.

    Returns
    -------
    Plans
        A plan for each release; a notebook shows them as `--plan` does.
    """
    from sqldeid.run.planned import Plans

    options = taken(job, options)
    if in_memory(database):
        from sqldeid.run.frames import held

        with held(job, database, options.settings) as connection:
            return plan(job, connection, options=options)
    hold(job, options, selected(job, options.only))
    refuse_missing_parts(job, selected(job, options.only), database, "anonymize")
    refuse_unread(job, database)
    with reading(database, None, options.settings, command="anonymize") as engine, naming_job(job):
        plans = gather(job, selected(job, options.only), lambda group: plan_release(job, group, engine))
        for planned in plans:
            wing_of(planned).check_promise(planned)
        refuse_planned(plans, engine)
        looked = told_in_plan(plans, engine)
        return Plans(tell(plans, pair(job, plans, engine, options)), job, dialect_of(database), looked)


def explain(planned: Plan, job: Job, database: Database) -> Explained:
    """What `--plan` shows of a plan; no statement is run."""
    from sqldeid.run.planned import explain_for

    return explain_for(planned, job, dialect_of(database))


_NAMED = 5
"""Tables and files beside releases that are named; of more their number is told."""


def verify(job: Job, database: Database, *, options: Options | None = None) -> Rechecked:
    """Check published releases again, against the source as it is now; nothing is written.

    Returns
    -------
    Rechecked
        By release; its `joinable` and `warnings` tell which of them can be joined by what they show.

    Raises
    ------
    VerificationError
        If a release is not there, or is not what its note, the job and the source say.
    """
    from sqldeid.publish.comments import refuse_foreign_comments
    from sqldeid.publish.snapshots import refuse_other_snapshots
    from sqldeid.run.dates_there import refuse_told

    options = taken(job, options)
    met = hold(job, options, selected(job, options.only))
    path = None if is_connection(database) else path_of(database)
    refuse_missing_parts(job, selected(job, options.only), database, "verify")
    with reading(database, path, options.settings, job, command="verify") as engine, naming_job(job), telling_causes():
        found = Rechecked()
        found.house_rules = met
        units = gather(job, selected(job, options.only), lambda group: plan_release(job, group, engine))
        pairs = pair(job, units, engine, replace(options, policy=None, ledger=None))
        checked: dict[str, Published] = {}
        for unit in units:
            if unit.name in found:  # series that were checked with their table
                continue
            following = pairs.partner(unit.name)
            names = nature_of(unit).names if following is None else (unit.name, following.name)
            there = {name: published(engine, destination(job), name) for name in (*names, *nature_of(unit).beside)}
            checked |= there
            checking = _checking(unit, engine, options)
            with naming_release(unit.key, nature_of(unit).reckoned):
                if following is not None:
                    found |= recheck_pair(cast("TablePlan", unit), following, there, checking)
                else:
                    found |= wing_of(unit).recheck(unit, there, checking)
        refuse_told(units, checked, engine)
        computed = [name for name, table in job.tables.items() if table.view == "computed"]
        refuse_other_snapshots(engine, destination(job), checked, computed)
        notes = {name: note for name, (_, note) in checked.items()}
        found.unsummed = _told_unsummed(refuse_foreign_comments(engine, destination(job), notes))
        there_now = {name: published(engine, destination(job), name)[0] for name in compared(job) if name in found}
        found.joinable = find_joinable(job, there_now, engine, _linked(units))
        found.beside = "" if options.only else _told_beside(destination(job), checked, engine)
        return found


def _told_unsummed(names: Sequence[str]) -> str:
    """What `verify` says of releases whose comments it cannot hold to anything."""
    if not names:
        return ""
    return (
        f"{listed(names, _NAMED)}: made by an earlier version, which kept no sums of comments, so that nobody looked "
        "here whether all comments and defaults of columns are the run's; read them, or make the release anew with "
        "--replace"
    )


def _told_beside(place: Destination, checked: Mapping[str, Published], engine: Engine) -> str:
    """What `verify` says of tables and files beside what it checked; whoever is handed releases looks at these, too."""
    names = beside_releases(engine, place, checked)
    if not names:
        return ""
    return (
        f"release.into: {place.into} also holds {listed(names, _NAMED)}: no release of this job, and not "
        "looked at here. Whoever is given the releases gets that, too; take away what is not meant for them"
    )


def verify_certificates(
    job: Job, database: Database, certificates: Mapping[str, object], *, options: Options | None = None
) -> dict[str, Proven | ProvenBound]:
    """Check certificates, by release, against the source as it is now; nothing is written.

    Raises
    ------
    VerificationError
        If a certificate does not hold, is of a form that this version does not know, or a selected release has none.
    """
    options = taken(job, options)
    if not isinstance(certificates, Mapping):
        raise refused("certificates", certificates, "a mapping of releases to their certificates")
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    if not names:
        return {}
    refuse_missing_parts(job, names, database, "verify", ("--certificate",))
    with reading(database, path, options.settings, command="--certificate") as engine, naming_job(job):
        for name in names:
            proof = certificates.get(name)
            if not isinstance(proof, Mapping):
                raise VerificationError.at(f"tables.{name}", why_unproven(job, name))
            if not is_known(proof):
                raise VerificationError.at(f"tables.{name}", f"the certificate {OTHER_FORM}")
        found: dict[str, Proven | ProvenBound] = {}
        for part in gather(job, names, lambda group: tables.plan_lattice(group, job, engine)):
            with naming_release(part.key):
                found |= tables.prove(part, certificates, engine)
        return found


def assess(
    job: Job, database: Database | Frames, *, release: bool = False, options: Options | None = None
) -> dict[str, Risk]:
    """Class sizes, criteria achieved and re-identification risk of the sources as they stand, or of what was released.

    Parameters
    ----------
    release
        Whether to look at the published releases instead of their sources.
    """
    options, release = taken(job, options), flag("release", release)
    if in_memory(database):
        from sqldeid.run.frames import held

        with held(job, database, options.settings) as connection:
            return assess(job, connection, release=release, options=options)
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    refuse_missing_parts(job, names, database, "assess")
    into = job if release else None
    with reading(database, path, options.settings, into, command="assess") as engine, naming_job(job):
        units = gather(job, names, lambda group: tables.plan_unit(group, job, engine))
        found = {}
        for unit in sorted(units, key=lambda unit: nature_of(unit).lattice):  # those without a lattice first
            with naming_release(unit.key, nature_of(unit).reckoned):
                there = [published(engine, destination(job), n) for n in nature_of(unit).names] if release else None
                found[unit.name] = tables.assess(unit, there, engine)
        return found


def _linked(units: Sequence[Plan]) -> list[Linked]:
    """The linked tables of a run."""
    return [cast("Linked", unit) for unit in units if is_linked(unit)]


def _make(unit: Plan, making: Making, pairs: Pairs) -> list[Release]:
    """Have a wing make a release, or several that are linked: staged and verified."""
    following = pairs.following(unit.name)
    with naming_release(unit.key, nature_of(unit).reckoned):
        if following is not None:
            return [following.finish(making.staging, making.job_sha256)]
        return wing_of(unit).run(unit, replace(making, partner=pairs.partner(unit.name)))


def _cautions(units: Sequence[Plan], engine: Engine) -> tuple[str, ...]:
    """What is said of the database itself; a DuckDB of our own has nothing, and loads nothing for it."""
    if isinstance(engine, DuckDBEngine) and not engine.spills_plain:
        return ()
    from sqldeid.run.cautions import cautions

    return cautions(units, engine)


def _checking(unit: Plan, engine: Engine, options: Options) -> Checking:
    """What a published release is checked with."""
    return Checking(engine, lambda: read_key(options.key_file), lambda note: noted_ledger(unit, note, options))


def _result(
    job: Job,
    database: Database,
    releases: Mapping[str, Release],
    joinable: tuple[Joinable, ...],
    options: Options,
    seconds: float,
) -> Result:
    """What a run tells."""
    held = releases.keys() if options.ledger is not None else ()  # a run has all its releases held to it, or none
    linkable = options.ledger is None
    return Result(
        releases=releases,
        sqldeid=own_version(),
        job_sha256=job.sha256,
        source={"database": shown(database), "engine": dialect_of(database)},
        seconds=round(seconds, 3),
        warnings=(*job.warnings(held=held), *warnings_of(joinable, linkable=linkable), *key_warnings(options.key_file)),
        job=job.name,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"sqldeid": own_version(), "duckdb": version("duckdb"), "python": python_version()},
        joinable=tuple(pair.to_dict() for pair in joinable),
        about=job.about.model_dump(exclude_none=True),
        page=holders_page,
    )


def _published(release: Any, written: Mapping[str, str]) -> Release:
    """The release with where it stands, and the tables beside it where there are any."""
    places = (written.get(release.name + beside) for beside in ("", *BESIDE))
    found: Release = replace(release, written=tuple(place for place in places if place is not None))
    return found
