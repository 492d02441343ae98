"""Releases as Parquet that Spark writes into a folder of its own storage; no row comes to this program.

    1. The run claims the folder (`sqldeid.publish.spark_claim`). What a killed run was replacing is put back.
    2. A release is staged and verified as a table of the run in the catalogue (`sqldeid.publish.spark`).
    3. Once all are, Spark copies each release that is replaced, writes each new one into ``<into>/<name>.parquet``,
       then replaces the old ones (`sqldeid.publish.spark_replaced`). Each is read again and compared, row by row, with
       the table that was verified.
    4. The note of each is written last, into ``<name>.parquet/_sqldeid``, which readers of Parquet pass over: a folder
       without one is no release.
    5. Copies, the claim and the tables of the run go. Of a run that fails, what it replaced is put back, and what is
       new is overwritten with nothing, and told.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlglot import exp

from sqldeid.engine.spark import SparkEngine
from sqldeid.errors import Interrupted, JobError, SqldeidError, VerificationError
from sqldeid.publish.notes import Note, read_note
from sqldeid.publish.places import Destination, TableStatement, ViewStatement
from sqldeid.publish.spark_claim import claim
from sqldeid.publish.spark_replaced import Folder, count_files
from sqldeid.publish.spark_runs import refuse_too_old

_ROOTED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?/.*")
_PATTERN = re.compile(r"[*?\[\]{}\\^\x00-\x1f]")
"""What Hadoop reads as a pattern of file names, and what no path should hold."""


class Staged(Protocol):
    """A release in a table of the run."""

    @property
    def note(self) -> Note:
        """What is kept on it."""

    @property
    def table(self) -> exp.Table:
        """Its rows."""


class Tables(Protocol):
    """Where releases are staged in the catalogue (`sqldeid.publish.spark`)."""

    @property
    def engine(self) -> SparkEngine:
        """Which writes."""

    @property
    def staged(self) -> Sequence[Staged]:
        """What is written, in its order."""

    @property
    def began(self) -> datetime:
        """When the run did."""

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create the table of the run with its notes."""

    def hold(self) -> None:
        """Mark the run as alive."""

    def sweep(self) -> None:
        """Drop what dead runs left in the catalogue."""


@dataclass(frozen=True, slots=True)
class InFolder:
    """A folder of Spark's storage takes the release.

    Parameters
    ----------
    tables
        Where releases are staged and verified; none of its tables stays.
    destination
        Whose `place` is the folder.
    may_replace
        Whether a release that stands there may be replaced.
    started
        New releases that were begun.
    kept
        Those that stand there, of which copies were begun.
    """

    tables: Tables
    destination: Destination
    may_replace: bool = False
    started: list[Folder] = field(default_factory=list)
    kept: list[Folder] = field(default_factory=list)

    @property
    def engine(self) -> SparkEngine:
        """Which writes."""
        return self.tables.engine

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create a table of the run, to be verified; it is dropped at the end."""
        return self.tables.write(statement, note)

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Refused before anything runs (`sqldeid.engine.offers`)."""
        raise JobError(f"{self.destination.key(note.release)}.view: a computed view is not on Spark; leave view out")

    def publish(self) -> tuple[str, ...]:
        """Have every release written and compared, then noted; or leave what was there.

        Raises
        ------
        SqldeidError
            If a step failed; it says which folders are to be removed, or could not be put back.
        """
        refuse_too_old(self.tables.began)
        try:
            self._write()
        except BaseException as failed:
            self._take_back(failed)
            raise
        for folder in self.kept:
            folder.forget()
        self.tables.sweep()
        for step in reversed(self.engine.undo):
            with suppress(SqldeidError):  # the release is there; what is left of the run is not worth its failure
                step()
        self.engine.commit()
        return tuple(self.destination.shown(made.note.release) for made in self.tables.staged)

    def _write(self) -> None:
        """Everything that can fail with nothing lost comes first: copies, new releases; then what is replaced."""
        new: list[tuple[Folder, Staged]] = []
        replaced: list[tuple[Folder, Staged]] = []
        for made in self.tables.staged:
            folder = self._folder(made.note.release)
            stands = folder.note() is not None
            (replaced if stands else new).append((folder, made))
            if not self.may_replace if stands else folder.files():
                raise _taken(folder.path)
        for folder, _ in replaced:
            self.kept.append(folder)
            folder.keep()
        for folder, made in new:
            self.started.append(folder)
            folder.write(made.table)
        for folder, made in replaced:
            folder.replace(made.table, self.destination.schema)
            folder.sign(_signed(made))
        for folder, made in new:
            folder.sign(_signed(made))

    def _take_back(self, failed: BaseException) -> None:
        """Put back what was replaced, overwrite with nothing what is new, and tell of what stays."""
        told = ""
        for folder in self.kept:
            if not self._put_back(folder):
                told += (
                    f"; {folder.path} could not be put back: its copy is {folder.kept}, and the next run into "
                    f"{_place(self.destination)} puts it back"
                )
        emptied, left = [], []
        for folder in self.started:
            try:
                if not self.engine.gone and folder.files():
                    folder.empty()
                    emptied.append(folder.path)
            except SqldeidError:
                left.append(folder.path)
        left += [folder.path for folder in self.started if self.engine.gone and folder.path not in emptied + left]
        if emptied:
            told += f"; {', '.join(emptied)} was emptied, which is all that Spark's SQL can do: remove it"
        if left:
            told += f"; {', '.join(left)} could not be emptied, may hold rows, and is no release: remove it"
        if isinstance(failed, SqldeidError):
            failed.message += told
        elif isinstance(failed, KeyboardInterrupt):
            raise Interrupted(f"interrupted; nothing was published{told}") from None

    def _put_back(self, folder: Folder) -> bool:
        """Whether the release that stood there does; its copy goes then."""
        if self.engine.gone:  # it would be asked for half a minute
            return False
        try:
            folder.put_back(even_whole=True)
        except SqldeidError:
            return False
        folder.forget()
        return True

    def _folder(self, name: str) -> Folder:
        return Folder(self.engine, _place(self.destination), name)


def _place(destination: Destination) -> str:
    return destination.place.rstrip("/")


def _signed(made: Staged) -> str:
    """The text of a release's note."""
    note = made.note
    return Note(note.release, {**note.content, "columns": dict(note.columns)}, {}).to_json()


def open_folder(tables: Tables, destination: Destination, names: Sequence[str], *, replace: bool) -> InFolder:
    """The folder for a run's releases, which no other run writes into meanwhile.

    Raises
    ------
    JobError
        If it is no path of Spark's storage, or holds what may not be replaced.
    EngineError
        If another run writes there.
    """
    place, key = destination.place, "release.into"
    if not _ROOTED.fullmatch(place):
        raise JobError.at(
            key,
            "on Spark this is a path of the cluster's storage; write it from the root, as /data/release or "
            "s3a://bucket/release",
        )
    if _PATTERN.search(place):
        raise JobError.at(key, "Spark reads * ? [ ] { } ^ and \\ in a path as a pattern; name another folder")
    folders = [Folder(tables.engine, _place(destination), name) for name in names]
    left = [folder for folder in folders if folder.is_kept()]
    if not left:
        _refuse_taken(folders, place, tables.engine, replace)
    tables.hold()
    claim(tables.engine, _place(destination))
    for folder in left:
        folder.put_back(even_whole=False)
        folder.forget()
    if left:
        _refuse_taken(folders, place, tables.engine, replace)
    return InFolder(tables, destination, replace)


def _refuse_taken(folders: Sequence[Folder], place: str, engine: SparkEngine, replace: bool) -> None:
    """Refuse a folder that is not empty; to replace releases, those that sqldeid did not make."""
    if not replace:
        if count_files(place, engine):
            raise _taken(place)
        return
    for folder in folders:
        if folder.note() is None and folder.files():
            raise JobError.at(
                "release.into", f"{folder.path} holds files that sqldeid did not make; name another folder"
            )


def _taken(path: str) -> JobError:
    return JobError.at(
        "release.into",
        f"{path} exists already and is not empty; allow releases there to be replaced with --replace, "
        "or name another folder",
    )


def notes_of_folder(engine: SparkEngine, destination: Destination) -> list[dict[str, object]]:
    """The notes of the job's releases that stand in the folder."""
    notes = (read_note(Folder(engine, _place(destination), name).note() or "") for name in destination.sections)
    return [note for note in notes if note is not None]


def published(engine: SparkEngine, destination: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    """A release's rows as a temporary view, and the note beside them.

    Raises
    ------
    VerificationError
        If it is not there, or sqldeid did not make it.
    """
    folder = Folder(engine, _place(destination), name)
    note = read_note(folder.note() or "")
    if note is None:
        kept = folder.is_kept()
        more = "; a run that was killed was replacing it, and the next run into the folder puts it back" if kept else ""
        raise VerificationError(
            f"{destination.key(name)}: {folder.path} is not there, or sqldeid did not make it{more}"
        )
    return folder.rows(), note
