"""Plan the releases of a job, hand each to its wing, publish all or none; check and assess what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version
from time import monotonic
from typing import Any, cast

from sqlglot import exp

import sqldeid
from sqldeid.engine.base import Engine
from sqldeid.engine.choosing import dialect_of, shown
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import Database, is_connection, path_of
from sqldeid.engine.undisturbed import undisturbed
from sqldeid.errors import Interrupted, VerificationError
from sqldeid.events import release as events
from sqldeid.events.plan import EventsPlan
from sqldeid.insight import assess as assessing
from sqldeid.job import Job
from sqldeid.keys import Key, key_warnings, read_key
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Staging, published
from sqldeid.report import holders_page
from sqldeid.result import Release, Result, Risk, Told
from sqldeid.run.earlier import Earlier, held_back, noted_ledger, open_earlier
from sqldeid.run.explaining import explain
from sqldeid.run.followed import Pairs, pair, recheck_pair, tell
from sqldeid.run.foreign import refuse_missing_parts
from sqldeid.run.joinable import Joinable, Noticing, Rechecked, compared, find_joinable, warnings_of
from sqldeid.run.linked import (
    Unit,
    assess_linked,
    gather,
    gather_tables,
    make_linked,
    prove_linked,
    recheck_published,
    refuse_split,
    single,
)
from sqldeid.run.parquet import refuse_types
from sqldeid.run.parted import assess_parted
from sqldeid.run.places import (
    Options,
    destination,
    naming_job,
    naming_release,
    open_run,
    reading,
    refuse_unread,
    telling_causes,
)
from sqldeid.run.unchanged import Sources
from sqldeid.run.wings import Plan, face, names_of, part_of
from sqldeid.series import release as series
from sqldeid.series.ledger import audit
from sqldeid.series.plan import SeriesPlan
from sqldeid.tables.certificate.proof import Proven, check_certificate
from sqldeid.tables.disguise.disguise import pseudonyms
from sqldeid.tables.epsilon_safe.release import check_plan
from sqldeid.tables.mondrian import release as parting
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release import release as releasing
from sqldeid.tables.release.release import Listener
from sqldeid.tables.rows.shape import keep
from sqldeid.tables.verify.verify import Verified, recheck
from sqldeid.tables.write.computed import fingerprint


def anonymize(
    job: Job, database: Database, *, options: Options | None = None, listener: Listener | None = None
) -> Result:
    """Make the releases of a job, verify them and publish them together.

    Parameters
    ----------
    job
        From `Job.load` or `Job.parse`.
    database
        Path of a DuckDB, CSV or Parquet file, the URL of a server (``postgresql://…``), or an open connection to
        either (left as it was found, but for the releases where `release.into` is absent).

    Raises
    ------
    SqldeidError
        One of its kinds; nothing was published then.
    """
    options, listener = options or Options(), listener or Listener()
    started = monotonic()
    names = selected(job, options.only)
    refuse_unread(job, database)
    releases: list[Release] = []
    written: dict[str, str] = {}
    joinable: tuple[Joinable, ...] = ()
    warned: tuple[str, ...] = ()
    try:
        with ExitStack() as stack:
            engine, staging, there = open_run(job, database, names, options, stack)
            with naming_job(job):
                units = gather(job, names, lambda name: _plan(job, name, engine))
                sources = Sources(job, engine, options, names, there, lambda name: _plan(job, name, engine))
                noticing, warned = Noticing(staging, sources.mark), sources.warnings
                held = [note for note in there if note["release"] in names and LEDGER_NOTE in note]
                pairs = pair(job, units, engine, options, listener)
                if options.without_ledger or sum(isinstance(u, SeriesPlan) for u in units) < 2:
                    pairs = replace(pairs, together=None)
                earlier = open_earlier(options, single(units, options), stack, held, destination(job).into)
                for unit in units:
                    releases += _make_unit(unit, engine, noticing, job.sha256, listener, options, earlier, pairs)
                joinable = find_joinable(job, noticing.written, engine, units)
            for release in releases:
                listener.step(release.name, "publishing")
            with undisturbed() if isinstance(engine, DuckDBEngine) else nullcontext():  # no doubt whether it is there
                written = dict(zip((r.name for r in releases), earlier.publish(staging), strict=True))
    except Interrupted as stopped:
        if "published" not in stopped.message:  # by a search beside the releases' own
            stopped.message += "; nothing was published"
        raise
    except KeyboardInterrupt:
        if not written:  # between two statements; within one the engine says so
            raise Interrupted("interrupted; nothing was published") from None
    found = {r.name: _published(r, written[r.name]) for r in releases}
    return _result(job, database, found, joinable, options, monotonic() - started, warned)


def plan(job: Job, database: Database, *, options: Options | None = None) -> list[Unit]:
    """What `anonymize` would do, from the catalogue alone; nothing is read and nothing is written."""
    options = options or Options()
    refuse_missing_parts(job, selected(job, options.only), database, "anonymize")
    refuse_unread(job, database)
    with reading(database, None, options.settings, command="anonymize") as engine, naming_job(job):
        plans = gather(job, selected(job, options.only), lambda name: _plan(job, name, engine))
        for sampled in (p for p in plans if isinstance(p, TablePlan) and p.sampled):
            check_plan(sampled)
        return tell(plans, pair(job, plans, engine, options))


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
    options = options or Options()
    path = None if is_connection(database) else path_of(database)
    refuse_missing_parts(job, selected(job, options.only), database, "verify")
    with reading(database, path, options.settings, job, command="verify") as engine, naming_job(job), telling_causes():
        found = Rechecked()
        units = gather(job, selected(job, options.only), lambda name: _plan(job, name, engine))
        pairs = pair(job, units, engine, replace(options, policy=None, ledger=None))
        for unit in units:
            if unit.name in found:
                continue
            if isinstance(unit, Linked):
                with naming_release(unit.key):
                    found |= recheck_published(job, unit, engine, options)
                continue
            if isinstance(unit, TablePlan) and (following := pairs.partner(unit.name)) is not None:
                there = {name: published(engine, destination(job), name) for name in (unit.name, following.name)}
                _refuse_changed(unit, there[unit.name][1], engine)
                with naming_release(unit.key):
                    found |= recheck_pair(unit, following, there, engine, _key(unit, options))
                continue
            written, note = published(engine, destination(job), unit.name)
            with naming_release(unit.key):
                found[unit.name] = _recheck(unit, note, written, engine, options)
        there_now = {name: published(engine, destination(job), name)[0] for name in compared(job) if name in found}
        found.joinable = find_joinable(job, there_now, engine, units)
        return found


def verify_certificates(
    job: Job, database: Database, certificates: Mapping[str, object], *, options: Options | None = None
) -> dict[str, Proven]:
    """Check certificates, by release, against the source as it is now; nothing is written.

    Raises
    ------
    VerificationError
        If a certificate does not hold, or a selected release has none.
    """
    options = options or Options()
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    if not names:
        return {}
    refuse_missing_parts(job, names, database, "verify", ("--certificate",))
    with reading(database, path, options.settings, command="--certificate") as engine, naming_job(job):
        for name in names:
            if not isinstance(certificates.get(name), Mapping):
                raise VerificationError(f"tables.{name}: the file holds no certificate of it", key=f"tables.{name}")
        found: dict[str, Proven] = {}
        for part in gather_tables(job, names, engine):
            with naming_release(part.key):
                if isinstance(part, Linked):
                    proven = prove_linked(part, [certificates[name] for name in part.names], engine)
                    found |= dict.fromkeys(part.names, proven)
                else:
                    given = cast(Mapping[str, object], certificates[part.name])
                    found[part.name] = check_certificate(part, given, engine)
        return found


def assess(job: Job, database: Database, *, release: bool = False, options: Options | None = None) -> dict[str, Risk]:
    """Class sizes, criteria achieved and re-identification risk of the sources as they stand, or of what was released.

    Parameters
    ----------
    release
        Whether to look at the published releases instead of their sources.
    """
    options = options or Options()
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    refuse_missing_parts(job, names, database, "assess")
    into = job if release else None
    parted = [name for name in names if job.tables[name].search.method == "mondrian"]
    with reading(database, path, options.settings, into, command="assess") as engine, naming_job(job):
        found = {}
        for name in parted:
            with naming_release(f"tables.{name}"):
                found[name] = assess_parted(job, name, engine, release=release)
        for part in gather_tables(job, [name for name in names if name not in parted], engine):
            with naming_release(part.key):
                if isinstance(part, Linked):
                    found[part.name] = assess_linked(job, part, engine, release=release)
                else:
                    found[part.name] = _assess_one(job, part, engine, release=release)
        return found


def _assess_one(job: Job, part: TablePlan, engine: Engine, *, release: bool) -> Risk:
    """A table release that is not linked."""
    if part.many:
        return _assess_persons(job, part, engine, release=release)
    source = keep(part, engine) if not release or part.beyond_k else part.source
    if release:
        relation = published(engine, destination(job), part.name)[0]
        columns = [q.name for q in part.qis]
    else:
        relation, columns = source, [q.source.name for q in part.qis]
    risk = replace(assessing.assess(relation, columns, engine), counted=f"{part.unit}s")
    return assessing.assess_criteria(risk, part, source, relation, engine)


def _assess_persons(job: Job, part: TablePlan, engine: Engine, *, release: bool) -> Risk:
    """One whose persons may have many rows."""
    if not release:
        return assessing.assess_persons(part, keep(part, engine), engine)
    relation, note = published(engine, destination(job), part.name)
    return assessing.assess_released(recheck(part, dict(note), relation, engine))


def selected(job: Job, only: Sequence[str], *, apart: bool = False) -> list[str]:
    """The releases to make, in the order in which they are made; linked tables all or none, unless taken `apart`."""
    for name in only:
        part_of(job, name)
    names = [name for name in names_of(job) if not only or name in only]
    if not apart:
        refuse_split(job, names, only)
    return names


def tables_among(job: Job, only: Sequence[str]) -> list[str]:
    """The table releases among those selected: only they have classes of rows to assess, and a lattice."""
    return [name for name in selected(job, only) if part_of(job, name)[0] == "tables"]


def _plan(job: Job, name: str, engine: Engine) -> TablePlan | Plan:
    section, part = part_of(job, name)
    planned: TablePlan | Plan
    if section != "tables":
        planned = face(section).plan(name, part, engine, job.folder)
    elif part.search.method == "mondrian":
        planned = parting.plan(name, part, engine, job.folder)
    else:
        planned = planning.plan(name, part, engine, job.folder)
    if job.release.kind == "parquet":
        refuse_types(planned, engine)
    return planned


def _make_unit(
    unit: Unit,
    engine: Engine,
    staging: Staging,
    sha256: str,
    listener: Listener,
    options: Options,
    earlier: Earlier,
    pairs: Pairs,
) -> list[Release]:
    """Make a release, or several that are linked, with what a report tells of each where one is asked for."""
    with naming_release(unit.key):
        if isinstance(unit, Linked):
            return list(make_linked(unit, engine, staging, sha256, listener, options))
        release = _make(unit, engine, staging, sha256, listener, options, earlier, pairs)
        return [explain(unit, release, engine, listener) if options.explain else release]


def _section(planned: TablePlan | Plan) -> str:
    return planned.key.partition(".")[0]


def _make(
    planned: TablePlan | Plan,
    engine: Engine,
    staging: Staging,
    sha256: str,
    listener: Listener,
    options: Options,
    earlier: Earlier,
    pairs: Pairs,
) -> Release:
    """Have a wing make its release, staged and verified."""
    if isinstance(planned, TablePlan):
        fitted, policy = earlier.fit(planned, sha256)
        return releasing.run(
            fitted,
            engine,
            staging,
            sha256,
            listener,
            certificate=options.certificate,
            key=_key(planned, options),
            policy=policy,
            ledger=earlier.ledger,
            partner=pairs.partner(planned.name),
        )
    if (following := pairs.following(planned.name)) is not None:
        return following.finish(staging, sha256)
    if isinstance(planned, SeriesPlan):
        return series.run(planned, engine, staging, sha256, listener, earlier.ledger, pairs.together)
    if isinstance(planned, EventsPlan):
        return events.run(planned, engine, staging, sha256, listener, earlier.ledger)
    return face(_section(planned)).run(planned, engine, staging, sha256, listener)


def _key(planned: TablePlan, options: Options) -> Key | None:
    """The key of pseudonyms, where the release has any; nobody else reads it."""
    return read_key(options.key_file) if pseudonyms(planned) else None


def _recheck(
    planned: TablePlan | Plan, note: Mapping[str, object], written: exp.Expr, engine: Engine, options: Options
) -> Verified | Told:
    """Have a wing check what was published."""
    if isinstance(planned, TablePlan):
        _refuse_changed(planned, note, engine)
        held = held_back(planned, note, engine, options)
        return recheck(planned, dict(note), written, engine, _key(planned, options), held)
    if isinstance(planned, SeriesPlan):
        with ExitStack() as stack:
            found = noted_ledger(planned, note, options, stack)
            audited = None if found is None else audit(found[0].book, planned, found[1], note.get(LEDGER_MARK))
            return series.recheck(planned, note, written, engine, audited)
    return face(_section(planned)).recheck(planned, note, written, engine)


def _refuse_changed(part: TablePlan, note: Mapping[str, object], engine: Engine) -> None:
    noted = note.get("source_fingerprint")
    if part.part.frozen and noted != fingerprint(part, engine):
        raise VerificationError(
            f"{part.key}.frozen: the source has changed since the release, though the job calls it frozen; whoever "
            "read the view before and after may tell people apart. Release a snapshot instead",
            key=f"{part.key}.frozen",
        )


def _result(
    job: Job,
    database: Database,
    releases: Mapping[str, Release],
    joinable: tuple[Joinable, ...],
    options: Options,
    seconds: float,
    warned: tuple[str, ...],
) -> Result:
    """What a run tells."""
    return Result(
        releases=releases,
        sqldeid=sqldeid.__version__,
        job_sha256=job.sha256,
        source={"database": shown(database), "engine": dialect_of(database)},
        seconds=round(seconds, 3),
        warnings=(*job.warnings(), *warnings_of(joinable), *key_warnings(options.key_file), *warned),
        job=job.name,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"sqldeid": sqldeid.__version__, "duckdb": version("duckdb"), "python": python_version()},
        joinable=tuple(pair.to_dict() for pair in joinable),
        about=job.about.model_dump(exclude_none=True),
        page=holders_page,
    )


def _published(release: Any, written: str) -> Release:
    found: Release = replace(release, written=(written,))
    return found
