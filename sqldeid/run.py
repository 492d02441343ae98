"""The one orchestrator: plan the releases of a job, hand each to its wing, publish all or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import sqldeid
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.folder import PrivateFolder
from sqldeid.engine.opening import (
    Database,
    Settings,
    close_access,
    is_connection,
    open_connection,
    open_path,
    path_of,
)
from sqldeid.errors import EngineError, Interrupted, JobError, SqldeidError, VerificationError
from sqldeid.insight import assess as assessing
from sqldeid.job import Job
from sqldeid.publish import (
    TARGET,
    Destination,
    FreshFile,
    InPlace,
    ParquetFolder,
    open_target,
    others_in_file,
    others_in_folder,
    published,
    refuse_existing,
)
from sqldeid.result import Result, Risk, TableRelease
from sqldeid.tables import plan as planning
from sqldeid.tables import release as releasing
from sqldeid.tables.computed import fingerprint
from sqldeid.tables.plan import TablePlan
from sqldeid.tables.proof import Proven, check_certificate
from sqldeid.tables.release import Listener
from sqldeid.tables.safe_release import check_plan
from sqldeid.tables.verify import Verified, recheck


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may ask beside the job.

    Parameters
    ----------
    only
        Names of the releases to make; all where empty. The others of an existing target stay.
    replace
        Whether releases that sqldeid made before may be replaced.
    certificate
        Whether each search's proof is wanted with its result.
    """

    only: tuple[str, ...] = ()
    replace: bool = False
    certificate: bool = False
    settings: Settings = field(default_factory=Settings)


def anonymize(
    job: Job, database: Database, *, options: Options | None = None, listener: Listener | None = None
) -> Result:
    """Make the releases of a job, verify them and publish them together.

    Parameters
    ----------
    job
        From `Job.load` or `Job.parse`.
    database
        Path of a DuckDB, CSV or Parquet file, or an open DuckDB connection (left as it was found, but for the
        releases where `release.into` is absent).

    Raises
    ------
    SqldeidError
        One of its kinds; nothing was published then.
    """
    options, listener = options or Options(), listener or Listener()
    started = monotonic()
    names = selected(job, options.only)
    releases: list[TableRelease] = []
    written: dict[str, str] = {}
    try:
        with ExitStack() as stack:
            engine, staging = _open(job, database, names, options, stack)
            with naming_job(job):
                plans = [planning.plan(name, job.tables[name], engine, job.folder) for name in names]
                releases = [
                    releasing.run(p, engine, staging, job.sha256, listener, certificate=options.certificate)
                    for p in plans
                ]
            for name in names:
                listener.step(name, "publishing")
            written = dict(zip(names, staging.publish(), strict=True))
    except KeyboardInterrupt:
        if not written:  # between two statements; within one the engine says so
            raise Interrupted("interrupted; nothing was published") from None
    return Result(
        releases={r.name: _published(r, written[r.name]) for r in releases},
        sqldeid=sqldeid.__version__,
        job_sha256=job.sha256,
        source={"database": "connection" if is_connection(database) else str(database), "engine": "duckdb"},
        seconds=round(monotonic() - started, 3),
        warnings=tuple(job.warnings()),
    )


def plan(job: Job, database: Database, *, options: Options | None = None) -> list[TablePlan]:
    """What `anonymize` would do, from the catalogue alone; nothing is read and nothing is written."""
    options = options or Options()
    with reading(database, None, options.settings) as engine, naming_job(job):
        plans = [planning.plan(name, job.tables[name], engine, job.folder) for name in selected(job, options.only)]
        for sampled in (p for p in plans if p.sampled):
            check_plan(sampled)
        return plans


def verify(job: Job, database: Database, *, options: Options | None = None) -> dict[str, Verified]:
    """Check published releases again, against the source as it is now; nothing is written.

    Raises
    ------
    VerificationError
        If a release is not there, or is not what its note, the job and the source say.
    """
    options = options or Options()
    path = None if is_connection(database) else path_of(database)
    with reading(database, path, options.settings, job) as engine, naming_job(job):
        found = {}
        for name in selected(job, options.only):
            part = planning.plan(name, job.tables[name], engine, job.folder)
            written, note = published(engine, destination(job), name)
            _refuse_changed(part, note, engine)
            found[name] = recheck(part, note, written, engine)
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
    with reading(database, path, options.settings) as engine, naming_job(job):
        found = {}
        for name in selected(job, options.only):
            certificate = certificates.get(name)
            if not isinstance(certificate, Mapping):
                raise VerificationError(f"tables.{name}: the file holds no certificate of it", key=f"tables.{name}")
            part = planning.plan(name, job.tables[name], engine, job.folder)
            found[name] = check_certificate(part, certificate, engine)
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
    with reading(database, path, options.settings, job if release else None) as engine, naming_job(job):
        found = {}
        for name in selected(job, options.only):
            part = planning.plan(name, job.tables[name], engine, job.folder)
            if release:
                relation = published(engine, destination(job), name)[0]
                columns = [q.name for q in part.qis]
            else:
                relation, columns = part.source, [q.source.name for q in part.qis]
            risk = assessing.assess(relation, columns, engine)
            found[name] = assessing.assess_criteria(risk, part, relation, engine)
        return found


def selected(job: Job, only: Sequence[str]) -> list[str]:
    """The releases to make, in the order of the job."""
    for name in only:
        if name not in job.tables:
            raise JobError(f"{job.name}: there is no release {name}; it has {', '.join(job.tables)}", key="only")
    return [name for name in job.tables if not only or name in only]


def destination(job: Job) -> Destination:
    """Where the job's releases go."""
    into = job.locate(job.release.into) if job.release.into is not None else None
    return Destination(job.release.kind, job.release.schema_name, into)


@contextmanager
def reading(
    database: Database, beside: Path | None, settings: Settings, job: Job | None = None
) -> Iterator[DuckDBEngine]:
    """An engine that only reads.

    Parameters
    ----------
    beside
        Where spill files may lie; None where nothing is computed.
    job
        Its releases are opened too, where they lie outside the source database.
    """
    with ExitStack() as stack:
        spill = _spill(beside, None, settings, stack) if beside else None
        if is_connection(database):
            engine = stack.enter_context(open_connection(database))  # type: ignore[arg-type]
            engine.neutralise()
        else:
            engine = stack.enter_context(open_path(path_of(database), writable=False, spill=spill, settings=settings))
        into = None
        if job is not None:
            into = open_target(engine, destination(job))
        if not is_connection(database):
            close_access(engine, into if into is not None and into.is_dir() else None)
        engine.begin()
        yield engine


@contextmanager
def naming_job(job: Job) -> Iterator[None]:
    """Put the job file's name before messages that name one of its keys."""
    try:
        yield
    except SqldeidError as error:
        if error.key and not error.message.startswith(f"{job.name}: "):
            error.message = f"{job.name}: {error.message}"
            error.args = (error.message,)
        raise


def _folder(beside: Path, stack: ExitStack, parent: Path | None = None) -> Path:
    return stack.enter_context(PrivateFolder(beside, parent)).path


def _spill(path: Path, staging: Path | None, settings: Settings, stack: ExitStack) -> Path:
    """Where spill files go: where the user says, else where the release is staged, else beside the database."""
    if settings.temp_dir is not None:
        return _folder(path, stack, settings.temp_dir)
    if staging is not None:
        return staging
    beside = path.absolute().parent
    return _folder(path, stack, beside if os.access(beside, os.W_OK) else Path(tempfile.gettempdir()))


def _refuse_changed(part: TablePlan, note: Mapping[str, object], engine: DuckDBEngine) -> None:
    noted = note.get("source_fingerprint")
    if part.part.frozen and noted != fingerprint(part, engine):
        raise VerificationError(
            f"{part.key}.frozen: the source has changed since the release, though the job calls it frozen; whoever "
            "read the view before and after may tell people apart. Release a snapshot instead",
            key=f"{part.key}.frozen",
        )


def _published(release: TableRelease, written: str) -> TableRelease:
    return replace(release, written=(written,))


def _open(
    job: Job, database: Database, names: Sequence[str], options: Options, stack: ExitStack
) -> tuple[DuckDBEngine, InPlace | FreshFile | ParquetFolder]:
    """The engine in its transaction, and the place where releases are staged."""
    target = destination(job)
    path = None if is_connection(database) else path_of(database)
    _refuse_target(job, target, path, options)
    folder = _folder(target.into, stack) if target.into is not None else None
    spill = _spill(path, folder, options.settings, stack) if path is not None else None
    if path is None:
        engine = stack.enter_context(open_connection(database))  # type: ignore[arg-type]
        engine.neutralise()
    else:
        engine = stack.enter_context(
            open_path(path, writable=target.into is None, spill=spill, settings=options.settings)
        )
    _refuse_place(engine, target, job)
    staging = _staging(engine, target, folder, names, options)
    if path is not None:
        close_access(engine, folder)
    engine.begin()
    if isinstance(staging, InPlace):
        refuse_existing(engine.relations(), target.schema, names, replace=options.replace)
        staging.drop_old(names)
    return engine, staging


def _refuse_target(job: Job, target: Destination, path: Path | None, options: Options) -> None:
    into = target.into
    for name, table in job.tables.items():
        if into is not None and table.view == "computed":
            key = f"tables.{name}.view"
            raise JobError(
                f"{job.name}: {key}: a computed view reads its source and can only stand there; leave release.into out",
                key=key,
            )
        if target.kind == "view" and table.search.method == "epsilon-safe":
            raise JobError(
                f"{job.name}: release.as: epsilon-safe releases a sample, and no view; write a table or parquet",
                key="release.as",
            )
    where = f"{job.name}: release.into"
    if into is None:
        if target.kind == "parquet":
            raise JobError(f"{where}: parquet needs a folder; set release.into", key="release.into")
        return
    if path is not None and into.exists() and into.samefile(path):
        raise JobError(f"{where}: names the source database itself; leave it out to write there", key="release.into")
    if not into.parent.is_dir():
        raise JobError(f"{where}: there is no folder {into.parent}; make it first", key="release.into")
    if into.exists() and not options.replace:
        raise JobError(f"{where}: {into} exists already; allow it to be replaced with --replace", key="release.into")
    if into.exists() and into.is_dir() != (target.kind == "parquet"):
        raise JobError(
            f"{where}: {into} is not a {'folder' if target.kind == 'parquet' else 'file'}", key="release.into"
        )


def _refuse_place(engine: DuckDBEngine, target: Destination, job: Job) -> None:
    """A release in the source database would be lost with a file that is only read, or cannot be written."""
    where = f"{job.name}: release.into"
    if not engine.can_attach:
        raise EngineError(f"{where}: the connection is open for reading only; give the database's path instead")
    if target.into is None and engine.own and engine.catalog == "memory":
        raise JobError(f"{where}: the source is a file, not a database; name where to write", key="release.into")
    if target.into is None and engine.read_only:
        raise EngineError(f"{where}: the database is open for reading only; name where to write", key="release.into")


def _staging(
    engine: DuckDBEngine, target: Destination, folder: Path | None, names: Sequence[str], options: Options
) -> InPlace | FreshFile | ParquetFolder:
    if target.into is None or folder is None:
        return InPlace(engine, target, engine.catalog)
    keep = set(names) if options.only else None
    if target.kind == "parquet":
        files = others_in_folder(engine, target, keep)
        engine.create_database(folder / "scratch.duckdb", TARGET)
        return ParquetFolder(engine, target, folder / "release", files, options.replace)
    kept = others_in_file(engine, target, keep)
    path = folder / "release.duckdb"
    engine.create_database(path, TARGET)
    return FreshFile(engine, target, TARGET, path=path, keep=kept, replace=options.replace)


__all__ = ["Listener", "Options", "anonymize", "assess", "plan", "verify", "verify_certificates"]
