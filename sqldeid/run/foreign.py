"""Set up runs whose source is not in DuckDB: the workbench, the staging, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from sqldeid.engine.choosing import dialect_of, open_foreign
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.folder import PrivateFolder, for_temporary_files
from sqldeid.engine.offers import refuse_missing
from sqldeid.engine.opening import close_access, own_instance
from sqldeid.engine.plain import refuse_as_temporary
from sqldeid.engine.remote import Remote
from sqldeid.engine.settings import Settings
from sqldeid.job import Job, Table
from sqldeid.job.rules import SECTIONS
from sqldeid.publish import Destination, FreshFile, ParquetFolder, Staging, read_note, refuse_other_form

_OTHER_METHODS = ("mondrian", "epsilon-safe", "local")
"""Methods that do not search a lattice of the folded classes, or not as the others."""


class _Opens(Protocol):
    def open_staging(self, engine: Remote, destination: Destination, names: Sequence[str], replace: bool) -> Staging:
        """The place where the engine's releases are staged; refuses what is there and may not be replaced."""


Files = Callable[[DuckDBEngine], Path | None]


class _Brings(Protocol):
    def bring(self, engine: Remote, files: FreshFile | ParquetFolder) -> Staging:
        """The place where the engine's releases are staged that go into files beside the program."""


class _Noted(Protocol):
    def notes_in_folder(self, engine: Remote, destination: Destination) -> list[dict[str, object]]:
        """The notes of the job's releases that stand in a folder of the engine's storage."""


def open_engine(database: object, settings: Settings, stack: ExitStack, files: Files = lambda bench: None) -> Remote:
    """The engine with its workbench, whose spill files lie in a private folder; it has not begun.

    Parameters
    ----------
    files
        Opens the files of releases on the workbench before all others are closed to it; the folder that it may use.
    """
    parent = settings.temp_dir or for_temporary_files()
    refuse_as_temporary(parent)
    name = f"bench-{os.getuid() if hasattr(os, 'getuid') else 0}"  # another user's cannot even be looked at
    spill = stack.enter_context(PrivateFolder(Path(name), parent)).path
    bench = DuckDBEngine(own_instance(spill, settings), "memory", "main", own=True, elsewhere=settings.temp_dir)
    try:
        close_access(bench, files(bench) or spill)
        engine = open_foreign(database, bench)
    except BaseException:
        bench.close()
        raise
    return stack.enter_context(engine)


def open_staging(engine: Remote, destination: Destination, names: Sequence[str], *, replace: bool) -> Staging:
    """Where the engine's releases are staged (``publish/<dialect>.py``)."""
    opens = cast(_Opens, import_module(f"sqldeid.publish.{engine.dialect}"))
    return opens.open_staging(engine, destination, names, replace)


def notes_on(engine: Remote, destination: Destination) -> list[dict[str, object]]:
    """The notes of the releases that stand where the engine's are published."""
    if destination.kind == "parquet":
        folders = cast(_Noted, import_module(f"sqldeid.publish.{engine.dialect}"))
        found = folders.notes_in_folder(engine, destination)
    else:
        there = [r for r in engine.relations() if r.parts[-2].casefold() == destination.schema.casefold()]
        notes = [(r.parts[-1], read_note(r.comment)) for r in there]
        found = [n for name, n in notes if n is not None and str(n["release"]).casefold() == name.casefold()]
    refuse_other_form(found)
    return found


def bring(engine: Remote, files: FreshFile | ParquetFolder) -> Staging:
    """Where releases of a server are staged that go into files here (``publish/<dialect>.py``)."""
    opens = cast(_Brings, import_module(f"sqldeid.publish.{engine.dialect}"))
    return opens.bring(engine, files)


def writes_here(database: object, destination: Destination) -> bool:
    """Whether files are written by the workbench, beside the program: a cluster writes its own Parquet."""
    return destination.into is not None and (destination.kind != "parquet" or dialect_of(database) != "spark")


def refuse_missing_parts(
    job: Job, names: Sequence[str], database: object, command: str, options: Sequence[str] = ()
) -> None:
    """Refuse what the engine of a database does not have, before anything is opened.

    Parameters
    ----------
    command, options
        As `sqldeid.engine.offers` names them.

    Raises
    ------
    JobError
        Naming the first such part of the job, and the engines that have it.
    """
    dialect = dialect_of(database)
    held = _needs_of_ledger(job, names) if "--ledger" in options else ()
    for what, key in [(command, ""), *((o, o) for o in options), *_needs(job, names), *held]:
        refuse_missing(dialect, what, key=key)


def _needs(job: Job, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the selected releases of a job need, each with its key."""
    if job.release.into is not None or job.release.kind == "parquet":
        yield ('release.as = "parquet"' if job.release.kind == "parquet" else "release.into"), "release.into"
    yield f'release.as = "{job.release.kind}"', "release.as"
    for section in SECTIONS:
        for name in getattr(job, section, {}):
            if name in names:
                yield section, f"{section}.{name}"
    for name, part in job.series.items():
        if name in names and part.preset is not None:
            yield "series presets", f"series.{name}.preset"
        if name in names and part.link is not None:
            yield "series links", f"series.{name}.link"
    for name, table in job.tables.items():
        if name in names:
            yield from _needs_of(table, f"tables.{name}")


def _needs_of_ledger(job: Job, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What of the selected releases a ledger does not hold on every engine, each with its key."""
    yield from (("--ledger with series", f"series.{name}") for name in job.series if name in names)
    yield from (("--ledger with events", f"events.{name}") for name in job.events if name in names)
    for name, table in job.tables.items():
        if name in names and table.search.method == "epsilon-safe":
            yield "--ledger with epsilon-safe", f"tables.{name}.search.method"


def _needs_of(table: Table, key: str) -> Iterator[tuple[str, str]]:
    asked = {
        (f'search.method = "{table.search.method}"', "search.method"): table.search.method in _OTHER_METHODS,
        ('view = "computed"', "view"): table.view == "computed",
        ("frozen", "frozen"): table.frozen,
        ("stacks", "stack"): bool(table.stack),
        ("links", "link"): getattr(table, "link", None) is not None,
        ("child tables", "parent"): table.parent is not None,
    }
    yield from ((what, f"{key}.{where}") for (what, where), needed in asked.items() if needed)
    for column, part in table.every_column.items():
        if part.pseudonym:
            yield "pseudonyms", f"{key}.columns.{column}.pseudonym"
        if part.shift is not None:
            yield "shifted dates", f"{key}.columns.{column}.shift"
