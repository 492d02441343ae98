"""Open the engine, the target and the private folder of a run, and refuse a target that cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqldeid.arguments import flag, one_of, place, texts, unless_none
from sqldeid.engine.base import Column
from sqldeid.engine.choosing import dialect_of, is_foreign
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.folder import PrivateFolder, for_temporary_files
from sqldeid.engine.offers import refuse_missing
from sqldeid.engine.opening import (
    Database,
    close_access,
    is_connection,
    open_connection,
    open_path,
    path_of,
)
from sqldeid.engine.plain import Workshop, is_plain, refuse_as_temporary, refuse_unattachable
from sqldeid.engine.remote import Remote
from sqldeid.engine.settings import Settings
from sqldeid.errors import (
    OUT_OF_RANGE,
    EngineError,
    JobError,
    SqldeidError,
    UncoveredError,
    UnshownError,
    VerificationError,
)
from sqldeid.files import without_parents
from sqldeid.job import Job
from sqldeid.job.rules import SECTIONS
from sqldeid.publish import (
    LEDGER_NOTE,
    TARGET,
    Destination,
    FreshFile,
    InPlace,
    ParquetFolder,
    Seen,
    Staging,
    held_notes,
    look,
    notes_there,
    open_target,
    others_in_file,
    others_in_folder,
    refuse_existing,
    refuse_forgotten,
    refuse_unheld,
    reserved,
)
from sqldeid.run.alone import alone, naming_instance
from sqldeid.run.foreign import bring, notes_on, open_engine, open_staging, refuse_missing_parts, writes_here
from sqldeid.sql import identifier

if TYPE_CHECKING:
    from sqldeid.tables import Given


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
    explain
        Whether what a report tells is wanted, too: what other k and limits would cost, and what sets of columns tell
        apart in the source. It takes about as long as the searches did, and 5 seconds at least where they need it.
    key_file
        Holds the secret key of pseudonyms; without it the environment variable SQLDEID_KEY does.
    policy
        An earlier result (the file that `--json` wrote, or `Result.to_dict()`), whose nodes and hierarchies are applied
        without a search.
    ledger
        The release ledger, a private file of the holder's; it is made where there is none. It needs a key.
    without_ledger
        The holder's word that the releases at the target were never given out: they are replaced, or given companions,
        though the source has changed since (`sqldeid.run.unchanged`).
    new_persons
        Insists that the persons of a load are others than those in the ledger, where hardly any is found there.
    new_values
        Columns of which it insists that their values are new for nearly everybody.
    house_rules
        A file of house rules that the job must meet, beside that which the environment variable SQLDEID_HOUSE_RULES
        names.
    """

    only: tuple[str, ...] = ()
    replace: bool = False
    certificate: bool = False
    explain: bool = False
    settings: Settings = field(default_factory=Settings)
    key_file: Path | None = None
    policy: Given | None = None
    ledger: str | os.PathLike[str] | None = None
    without_ledger: bool = False
    new_persons: bool = False
    new_values: tuple[str, ...] = ()
    house_rules: Path | None = None

    def __post_init__(self) -> None:
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)
        if self.key_file is not None and not os.path.exists(self.key_file):
            raise JobError(
                f"--key-file: {self.key_file} does not exist; make a key with: openssl rand -hex 32", key="--key-file"
            )

    def _checked(self) -> dict[str, object]:
        """What was given, as the program takes it.

        Raises
        ------
        JobError
            If it is of another type: one text for several names is each of its letters.
        """
        flags = ("replace", "certificate", "explain", "without_ledger", "new_persons")
        policy = self.policy
        return {
            **{name: flag(name, getattr(self, name)) for name in flags},
            **{name: texts(name, getattr(self, name)) for name in ("only", "new_values")},
            **{name: unless_none(place, name, getattr(self, name)) for name in ("key_file", "ledger", "house_rules")},
            "settings": one_of(Settings, "settings", self.settings, "sqldeid.Settings(…)"),
            "policy": policy if isinstance(policy, Mapping) else unless_none(place, "policy", policy),
        }

    @property
    def named(self) -> tuple[str, ...]:
        """The options that not every engine has (`sqldeid.engine.offers`)."""
        asked = {
            "--policy": self.policy is not None,
            "--ledger": self.ledger is not None,
            "--certificate": self.certificate,
            "--report": self.explain,
        }
        return tuple(name for name, given in asked.items() if given)


def destination(job: Job) -> Destination:
    """Where the job's releases go.

    Raises
    ------
    JobError
        If the system does not take the name, or does not let us look there.
    """
    called = into = job.locate(job.release.into) if job.release.into is not None else None
    try:
        if into is not None:
            into, called = without_parents(into.absolute()), without_parents(into)
            into.exists()
    except OSError as error:
        said = error.strerror or "unknown reason"
        text = f"{job.name}: release.into: {into} cannot be looked up ({said}); name another place"
        raise JobError(text, key="release.into") from None
    sections = {name: section for section in SECTIONS for name in getattr(job, section, {})}
    kind, schema = job.release.kind, job.release.schema_name
    return Destination(kind, schema, into, sections, job.release.into or "", str(called or ""))


def refuse_unread(job: Job, database: Database) -> None:
    """Refuse a key of `release` that nobody reads: files of Parquet lie in no schema, unless Spark writes them.

    Raises
    ------
    JobError
        If the job states it.
    """
    stated = "schema_name" in job.release.model_fields_set
    if stated and job.release.kind == "parquet" and dialect_of(database) != "spark":
        with naming_job(job):
            raise JobError.at("release.schema", "files of Parquet lie in a folder, in no schema; remove it")


@contextmanager
def reading(
    database: Database, beside: Path | None, settings: Settings, job: Job | None = None, *, command: str = "hierarchies"
) -> Iterator[DuckDBEngine | Remote]:
    """An engine that only reads.

    Parameters
    ----------
    beside
        Where spill files may lie; None where nothing is computed.
    job
        Its releases are opened too, where they lie outside the source database.
    command
        What the engine must offer (`sqldeid.engine.offers`).
    """
    with ExitStack() as stack:
        if is_foreign(database):
            refuse_missing(dialect_of(database), command)
            stack.enter_context(alone(database))
            remote = open_engine(database, settings, stack, partial(_open_files, job, database))
            remote.begin()
            yield remote
            return
        spill = _spill(beside, None, settings, stack) if beside else None
        if is_connection(database):
            engine = _open_alone(database, stack)
        else:
            engine = stack.enter_context(open_path(path_of(database), writable=False, spill=spill, settings=settings))
        with naming_instance():
            into = _open_released(job, engine) if job is not None else None
        if not is_connection(database):
            close_access(engine, into if into is not None and into.is_dir() else None)
        engine.begin()
        yield engine


def _open_files(job: Job | None, database: Database, bench: DuckDBEngine) -> Path | None:
    """Open the releases that lie in files beside the program, where a job's do; the folder that may be read."""
    into = _open_released(job, bench) if job is not None and writes_here(database, destination(job)) else None
    return into if into is not None and into.is_dir() else None


def _open_released(job: Job, engine: DuckDBEngine) -> Path | None:
    """Open the file or folder of a job's releases; what is wrong with it is said under the job's name."""
    with naming_job(job):
        return open_target(engine, destination(job))


@contextmanager
def naming_job(job: Job) -> Iterator[None]:
    """Put the job file's name before messages that name one of its keys."""
    try:
        yield
    except SqldeidError as error:
        if isinstance(error, UncoveredError):
            from sqldeid.run.uncovered import how_to_list

            error.message += how_to_list(job, error)
        if error.key and not error.message.startswith(f"{job.name}: "):
            error.message = f"{job.name}: {error.message}"
        raise


@contextmanager
def telling_causes() -> Iterator[None]:
    """Say what most likely happened to a published release that is no longer what job and source say."""
    try:
        yield
    except VerificationError as error:
        if "failed its re-check" not in error.message:
            raise
        raise VerificationError(
            f"{error.message}. If the source has changed since, that is why: release it again with --replace, and with "
            "the --ledger that held it, or, where none did and nobody was ever given it, with --without-ledger. If the "
            "source has not changed, the release was, and should not be used",
            key=error.key,
        ) from None


def _too_far(columns: Sequence[Column]) -> str:
    """What is said of a date that a shift, a cut or a difference takes beyond what its type holds."""
    first = columns[0]
    found = first.name if len(columns) == 1 else f"one of {', '.join(c.name for c in columns)}"
    name = first.name if first.name.isidentifier() else identifier(first.name).sql(dialect="duckdb")
    usual = f"{name} BETWEEN '0001-01-01' AND '9999-12-31'"
    if first.kind not in ("date", "timestamp"):
        usual = f"{name} BETWEEN -1000000000 AND 1000000000"
    return (
        f"{found} has a date or time too far from all others to be shifted, cut or counted with (not shown), or a view "
        f"casts a value that it cannot; make such values NULL in a source query: "
        f"CASE WHEN {usual} THEN {name} END AS {name}"
    )


@contextmanager
def naming_release(key: str, reckoned: Sequence[tuple[str, Column]] = ()) -> Iterator[None]:
    """Name the release in what its SQL meets while it is made or checked, where nothing below knew a nearer key.

    Parameters
    ----------
    reckoned
        Columns of dates and times with their keys; of a value that is out of range these are told.
    """
    try:
        yield
    except (JobError, UnshownError) as error:
        if error.message == OUT_OF_RANGE and not error.key and reckoned:
            raise JobError.at(reckoned[0][0], _too_far([c for _, c in reckoned])) from None
        if not error.key:
            error.key = key
            if not error.message.startswith(key):
                error.message = f"{key}: {error.message}"
        raise


def open_run(
    job: Job, database: Database, names: Sequence[str], options: Options, stack: ExitStack
) -> tuple[DuckDBEngine | Remote, Staging, list[dict[str, object]]]:
    """The engine in its transaction, the place where releases are staged, the notes of the releases that are there."""
    target = destination(job)
    if is_foreign(database):
        refuse_missing_parts(job, names, database, "anonymize", options.named)
        stack.enter_context(alone(database))
        if writes_here(database, target):
            return _open_bringing(job, target, database, names, options, stack)
        with naming_job(job):
            _refuse_kind(job, target)
        remote = open_engine(database, options.settings, stack)
        remote.begin(writing=True, place=target.schema)
        staging = open_staging(remote, target, names, replace=options.replace)
        there = notes_on(remote, target)
        if options.ledger is None:
            refuse_forgotten([note for note in there if note["release"] in names and LEDGER_NOTE in note])
        return remote, staging, there
    path = None if is_connection(database) else path_of(database)
    seen = _reserve(job, target, path, options, stack)
    temporary = options.settings.temp_dir
    shop = None if target.into is None else stack.enter_context(Workshop(target.into, elsewhere=temporary))
    folder = shop.path if shop is not None else None
    spill = _spill(path, folder, options.settings, stack) if path is not None else None
    if path is None:
        engine = _open_alone(database, stack)
    else:
        engine = stack.enter_context(
            open_path(path, writable=target.into is None, spill=spill, settings=options.settings)
        )
    _refuse_place(engine, target, job)
    if shop is None:
        return _open_in_place(engine, target, path, names, options)
    with naming_instance():
        staging = _files(engine, target, shop, names, options, seen)
    there = _noted(engine, target, names, options)
    if path is not None:
        close_access(engine, folder)
    engine.begin()
    return engine, staging, there


def _open_in_place(
    engine: DuckDBEngine, target: Destination, path: Path | None, names: Sequence[str], options: Options
) -> tuple[DuckDBEngine, Staging, list[dict[str, object]]]:
    """The source database takes the releases: what is there is read once no other run can change it."""
    staging = InPlace(engine, target, engine.catalog)
    if path is not None:
        close_access(engine, None)
    engine.begin()
    staging.claim()
    there = _noted(engine, target, names, options)
    refuse_existing(engine.relations(), target.schema, names, replace=options.replace)
    staging.drop_old(names)
    return engine, staging, there


def held_there(
    engine: DuckDBEngine | Remote, target: Destination, names: Sequence[str], there: Sequence[dict[str, object]]
) -> list[dict[str, object]]:
    """Notes of what was held to a ledger under the names of the run's releases: where they go, and in other schemas."""
    held = [note for note in there if note["release"] in names and LEDGER_NOTE in note]
    if isinstance(engine, DuckDBEngine) and target.into is None:
        held += held_notes(engine, target, names)
    return held


def _open_bringing(
    job: Job, target: Destination, database: Database, names: Sequence[str], options: Options, stack: ExitStack
) -> tuple[Remote, Staging, list[dict[str, object]]]:
    """A server that holds the source, and files here that take the releases."""
    seen = _reserve(job, target, None, options, stack)
    shop = stack.enter_context(Workshop(target.target, elsewhere=options.settings.temp_dir))
    opened: list[FreshFile | ParquetFolder] = []
    there: list[dict[str, object]] = []

    def files(bench: DuckDBEngine) -> Path:
        opened.append(_files(bench, target, shop, names, options, seen))
        there.extend(_noted(bench, target, names, options))
        return shop.path

    remote = open_engine(database, options.settings, stack, files)
    remote.begin(writing=True)
    remote.bench.begin()
    return remote, bring(remote, opened[0]), there


def _reserve(job: Job, target: Destination, path: Path | None, options: Options, stack: ExitStack) -> Seen | None:
    """Hold a file or folder until the run ends, and refuse it where it may not be written; what may be replaced."""
    with naming_job(job):
        if target.into is None:
            _refuse_target(job, target, path, options)
            return None
        held = stack.enter_context(reserved(target.into))
        _refuse_target(job, target, path, options)
        if not held:
            refuse_unheld(target.into)
        return look(target.into) if options.replace else None


def _open_alone(database: Database, stack: ExitStack) -> DuckDBEngine:
    """The engine on a user's connection, which no other run uses meanwhile."""
    stack.enter_context(alone(database))
    engine = stack.enter_context(open_connection(database))  # type: ignore[arg-type]
    engine.neutralise()
    return engine


def _noted(
    engine: DuckDBEngine, target: Destination, names: Sequence[str], options: Options
) -> list[dict[str, object]]:
    """The notes of the releases that are there; what a ledger held is not replaced without one."""
    there = notes_there(engine, target)
    if options.ledger is None:
        refuse_forgotten(held_notes(engine, target, names))
    return there


def _refuse_kind(job: Job, target: Destination) -> None:
    """Refuse views of what no view may show, wherever they would stand."""
    for name, table in job.tables.items():
        if target.into is not None and table.view == "computed":
            raise JobError.at(
                f"tables.{name}.view",
                "a computed view reads its source and can only stand there; leave release.into out",
            )
        if target.kind == "view" and table.search.method == "epsilon-safe":
            raise JobError.at("release.as", "epsilon-safe releases a sample, and no view; write a table or parquet")


def _refuse_target(job: Job, target: Destination, path: Path | None, options: Options) -> None:
    _refuse_kind(job, target)
    into = target.into
    key = "release.into"
    if into is None:
        if target.kind == "parquet":
            raise JobError.at(key, "parquet needs a folder; set release.into")
        return
    if path is not None and into.exists() and into.samefile(path):
        raise JobError.at(key, "names the source database itself; leave it out to write there")
    if not into.parent.is_dir():
        raise JobError.at(key, f"there is no folder {into.parent}; make it first")
    if target.kind != "parquet":
        refuse_unattachable(into, writing=False, key=key)  # nobody could open what was released
    if into.is_symlink() and not into.exists():
        raise JobError.at(key, f"{into} is a link to a place that is not there; remove it, or make that place")
    if into.exists() and not options.replace:
        raise JobError.at(key, f"{into} exists already; allow it to be replaced with --replace")
    if into.exists() and into.is_dir() != (target.kind == "parquet"):
        raise JobError.at(key, f"{into} is not a {'folder' if target.kind == 'parquet' else 'file'}")


def _refuse_place(engine: DuckDBEngine, target: Destination, job: Job) -> None:
    """A release in the source database would be lost with a file that is only read, or cannot be written."""
    where = f"{job.name}: release.into"
    if not engine.can_attach:
        raise EngineError(f"{where}: the connection is open for reading only; give the database's path instead")
    if target.into is None and engine.own and engine.catalog == "memory":
        raise JobError(f"{where}: the source is a file, not a database; name where to write", key="release.into")
    if target.into is None and engine.read_only:
        raise EngineError(f"{where}: the database is open for reading only; name where to write", key="release.into")


def _files(
    engine: DuckDBEngine,
    target: Destination,
    shop: Workshop,
    names: Sequence[str],
    options: Options,
    seen: Seen | None,
) -> FreshFile | ParquetFolder:
    """A file or folder that is written aside; what stays of the one that it replaces is read now."""
    keep = set(names) if options.only else None
    if target.kind == "parquet":
        files = others_in_folder(engine, target, keep)
        engine.create_database(shop.path / "scratch.duckdb", TARGET)
        return ParquetFolder(engine, target, shop.path / "release", files, seen, bring=shop.bring)
    kept = others_in_file(engine, target, keep)
    path = shop.path / "release.duckdb"
    engine.create_database(path, TARGET)
    return FreshFile(engine, target, TARGET, path=path, keep=kept, seen=seen, bring=shop.bring)


def _spill(path: Path, staging: Path | None, settings: Settings, stack: ExitStack) -> Path:
    """Where spill files go: where the user says, else where the release is staged, else beside the database."""
    if settings.temp_dir is None and staging is not None:
        return staging
    beside = path.absolute().parent
    usable = os.access(beside, os.W_OK) and is_plain(beside)
    parent = settings.temp_dir or (beside if usable else for_temporary_files())
    refuse_as_temporary(parent)
    return stack.enter_context(PrivateFolder(path, parent)).path
