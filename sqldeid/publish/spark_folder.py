"""Releases as Parquet that Spark writes into a folder of its own storage; no row comes to this program.

    1. A release is staged and verified as a table of the run in the catalogue (`sqldeid.publish.spark`).
    2. Once all are, Spark writes each into ``<into>/<name>.parquet``, reads it again, and compares it, row by row, with
       the table that was verified. Spark's SQL neither renames nor removes, so that the files appear one by one; and
       nothing is replaced: the folder must be empty, or not there.
    3. The notes are written last, into ``<name>.parquet/_sqldeid``, which readers of Parquet pass over: a folder
       without one is no release.
    4. The tables of the run are dropped. What a run that fails wrote is overwritten with nothing, and told.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from sqldeid.engine.spark import SparkEngine
from sqldeid.engine.spark_errors import Missing
from sqldeid.errors import Interrupted, JobError, SqldeidError, VerificationError
from sqldeid.publish.notes import Note, read_note
from sqldeid.publish.places import Destination, TableStatement, ViewStatement
from sqldeid.sql import literal, render

NOTES = "_sqldeid"
"""Folder of the note within a release's; names with _ are hidden to readers of Parquet."""

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

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Create the table of the run with its notes."""


@dataclass(frozen=True, slots=True)
class InFolder:
    """A folder of Spark's storage takes the release.

    Parameters
    ----------
    tables
        Where releases are staged and verified; none of its tables stays.
    destination
        Whose `place` is the folder.
    started
        Folders that were written to.
    """

    tables: Tables
    destination: Destination
    started: list[str] = field(default_factory=list)

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
        """Have every release written and compared, then noted; or leave none.

        Raises
        ------
        SqldeidError
            If a step failed; it says which folders are to be removed.
        """
        names = [made.note.release for made in self.tables.staged]
        try:
            for made in self.tables.staged:
                self._write(made.note.release, made.table)
            for made in self.tables.staged:
                content = Note(made.note.release, {**made.note.content, "columns": dict(made.note.columns)}, {})
                path = literal(f"{folder_of(self.destination, made.note.release)}/{NOTES}")
                self.engine.execute(render("publish/write_note", "spark", path=path, note=literal(content.to_json())))
        except BaseException as failed:
            self._empty(failed)
            raise
        for step in reversed(self.engine.undo):
            with suppress(SqldeidError):  # the release is there; what is left of the run is not worth its failure
                step()
        self.engine.commit()
        return tuple(self.destination.shown(name) for name in names)

    def _write(self, name: str, table: exp.Table) -> None:
        """Write a folder, and hold what it has then to what was verified."""
        path = folder_of(self.destination, name)
        if _files(path, self.engine):
            raise _taken(path)
        self.started.append(path)
        self.engine.execute(render("publish/write_folder", "spark", path=literal(path), rows=table))
        there = _opened(path, self.engine)
        found = self.engine.read("publish/compare_folder", there=there, verified=table)[0]
        if found["missing"] or found["unexpected"]:
            key = self.destination.key(name)
            raise VerificationError(f"{key}: what Spark wrote to {path} is not what was verified", key=key)

    def _empty(self, failed: BaseException) -> None:
        """Overwrite what was written with nothing, and tell of it."""
        emptied, left = [], []
        for path in self.started:
            try:
                if _files(path, self.engine):
                    self.engine.execute(render("publish/write_folder", "spark", path=literal(path), rows=None))
                    emptied.append(path)
            except SqldeidError:
                left.append(path)
        told = "".join(
            f"; {', '.join(paths)} {what}"
            for paths, what in (
                (emptied, "was emptied, which is all that Spark's SQL can do: remove it"),
                (left, "could not be emptied, may hold rows, and is no release: remove it"),
            )
            if paths
        )
        if isinstance(failed, SqldeidError):
            failed.message += told
            failed.args = (failed.message,)
        elif isinstance(failed, KeyboardInterrupt):
            raise Interrupted(f"interrupted; nothing was published{told}") from None


def folder_of(destination: Destination, name: str) -> str:
    """Where a release's rows lie."""
    return f"{destination.place.rstrip('/')}/{name}.parquet"


def open_folder(tables: Tables, destination: Destination) -> InFolder:
    """The folder for a run's releases.

    Raises
    ------
    JobError
        If it is no path of Spark's storage, or holds anything.
    """
    place, key = destination.place, "release.into"
    if not _ROOTED.fullmatch(place):
        raise JobError(
            f"{key}: on Spark this is a path of the cluster's storage; write it from the root, as /data/release or "
            "s3a://bucket/release",
            key=key,
        )
    if _PATTERN.search(place):
        raise JobError(
            f"{key}: Spark reads * ? [ ] {{ }} ^ and \\ in a path as a pattern; name another folder", key=key
        )
    if _files(place, tables.engine):
        raise _taken(place)
    return InFolder(tables, destination)


def _taken(path: str) -> JobError:
    return JobError(
        f"release.into: {path} exists already and is not empty; on Spark a folder is not replaced, for there readers "
        "would meet neither the old release nor the new: name another one",
        key="release.into",
    )


def published(engine: SparkEngine, destination: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    """A release's rows as a temporary view, and the note beside them.

    Raises
    ------
    VerificationError
        If it is not there, or sqldeid did not make it.
    """
    path = folder_of(destination, name)
    missing = VerificationError(f"{destination.key(name)}: {path} is not there, or sqldeid did not make it")
    try:
        rows = engine.read("publish/read_note", notes=_opened(f"{path}/{NOTES}", engine))
        written = _opened(path, engine)
    except JobError:  # there is none, or one of other columns
        raise missing from None
    note = read_note(rows[0]["note"]) if len(rows) == 1 else None
    if note is None or note["release"] != name:
        raise missing
    return written, note


def _opened(path: str, engine: SparkEngine, *, files: bool = False) -> exp.Table:
    """A temporary view of a folder; it goes with the run."""
    view = engine.workbench("files" if files else "rows")
    engine.execute(render("publish/open_folder", "spark", view=view, path=literal(path), files=files))
    return view


def _files(path: str, engine: SparkEngine) -> int:
    """How many files lie in a folder and below it; none where it is not there."""
    try:
        found = engine.read("publish/count_files", files=_opened(path, engine, files=True))
    except Missing:
        return 0
    return int(found[0]["files"])
