"""One release as Parquet in a folder of Spark's storage: written, replaced, or put back.

What is replaced is copied first, into ``<into>/_sqldeid/kept_<name>``, held to what stands, and noted. Then the new
files are written beside, by Spark's commit of partitions: once all are there, it removes the old folder and moves
them into its place. What lies there is read again, held to what was verified, and noted last. So a release is:

    the old one, with its note               until the folder is removed
    nothing, or no release (without a note)  until the new one is noted: the copy is whole, and is put back if the run
                                             fails, or, if it was killed, by the next run into the folder
    the new one, with its note               from then on; the copy goes

Removing and moving is a matter of milliseconds where storage renames, as HDFS and disks do. Object stores copy instead:
there it takes as long as copying does, and readers may meet some of the files. Nobody meets files of both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.spark import SparkEngine
from sqldeid.engine.spark_errors import Missing
from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.publish.notes import STAGED, Note, read_note
from sqldeid.publish.spark_claim import HIDDEN, opened, remove
from sqldeid.publish.spark_runs import signed
from sqldeid.sql import identifier, literal, render, table_name


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a release lies, and where its copy does while it is replaced."""

    engine: SparkEngine
    place: str
    name: str

    @property
    def path(self) -> str:
        """Of the release."""
        return f"{self.place}/{self.name}.parquet"

    @property
    def kept(self) -> str:
        """Of the copy."""
        return f"{self.place}/{HIDDEN}/kept_{self.name}"

    def note(self) -> str | None:
        """The text of the release's note; None where there is none of ours."""
        return _note_in(self.path, self.name, self.engine)

    def is_kept(self) -> bool:
        """Whether there is a copy of it, as a whole."""
        return _note_in(self.kept, self.name, self.engine) is not None

    def files(self) -> int:
        """How many files lie there, whosever they are."""
        return count_files(self.path, self.engine)

    def rows(self) -> exp.Table:
        """What lies there, to be read."""
        return opened(self.path, self.engine)

    def write(self, table: exp.Table) -> None:
        """Write a release where none is, and hold what is there then to the table that was verified."""
        self.engine.execute(render("publish/write_folder", "spark", path=literal(self.path), rows=table))
        self.compare(self.path, table)

    def keep(self) -> None:
        """Copy the release that stands there."""
        self._copy(self.path, self.kept, self.note() or "")

    def replace(self, table: exp.Table, schema: str) -> None:
        """Have the rows of a table in the place of what stands there; the note goes with it.

        Parameters
        ----------
        schema
            Takes a table meanwhile, which the next run clears if this one is killed.
        """
        run = self.engine.run_id
        swap, part = table_name(schema, f"{self.name}__swap_{run}"), identifier(f"sqldeid_{run}")
        comment = literal(Note(self.name, {STAGED: signed(run)}, {}).to_json())
        aside = literal(f"{self.place}/{HIDDEN}/{run}/swap_{self.name}")
        self.engine.undo.append(lambda: self.engine.execute(render("publish/drop_released", "spark", table=swap)))
        made = {"table": swap, "part": part}
        self.engine.execute(render("publish/create_swap", "spark", **made, rows=table, comment=comment, path=aside))
        self.engine.execute(render("publish/place_swap", "spark", **made, path=literal(self.path)))
        self.engine.execute(render("publish/swap_folder", "spark", **made, rows=table))
        self.compare(self.path, table)

    def compare(self, path: str, table: exp.Table) -> None:
        """Hold what a folder has to the rows of a table.

        Raises
        ------
        VerificationError
            If they differ.
        """
        if not _same(opened(path, self.engine), table, self.engine):
            raise VerificationError(f"what Spark wrote to {path} is not what was verified", key=self.name)

    def sign(self, text: str, path: str = "") -> None:
        """Note the release; from here on it is one."""
        there = literal(f"{path or self.path}/{HIDDEN}")
        self.engine.execute(render("publish/write_note", "spark", path=there, note=literal(text)))

    def put_back(self, *, even_whole: bool) -> bool:
        """Have the copy in the place of what stands there, where there is a copy; whether there is one.

        Parameters
        ----------
        even_whole
            In the place of a new release that is there as a whole, too.
        """
        copied, there = _note_in(self.kept, self.name, self.engine), self.note()
        if copied is None:
            return False
        if there is not None and there != copied and not even_whole:
            return True
        if there != copied or not _same(self.rows(), opened(self.kept, self.engine), self.engine):
            self._copy(self.kept, self.path, copied)
        return True

    def forget(self) -> None:
        """Remove the copy; its note first, without which it is none."""
        with suppress(SqldeidError):
            if self.is_kept():
                self._empty(f"{self.kept}/{HIDDEN}")
            remove(self.engine, self.kept)
            if count_files(self.kept, self.engine):
                self._empty(self.kept)

    def empty(self) -> None:
        """Overwrite what lies there with nothing, which is all that Spark's SQL can do."""
        self._empty(self.path)

    def _empty(self, path: str) -> None:
        self.engine.execute(render("publish/write_folder", "spark", path=literal(path), rows=None))

    def _copy(self, path: str, to: str, note: str) -> None:
        rows = opened(path, self.engine)
        self.engine.execute(render("publish/write_folder", "spark", path=literal(to), rows=rows))
        self.compare(to, rows)
        self.sign(note, to)


def count_files(path: str, engine: SparkEngine) -> int:
    """How many files lie in a folder and below it; none where it is not there. Those with _ are not counted."""
    try:
        found = engine.read("publish/count_files", files=opened(path, engine, files=True))
    except Missing:
        return 0
    return int(found[0]["files"])


def _note_in(path: str, name: str, engine: SparkEngine) -> str | None:
    try:
        rows = engine.read("publish/read_note", notes=opened(f"{path}/{HIDDEN}", engine))
    except JobError:  # there is none, or one of other columns
        return None
    note = read_note(rows[0]["note"]) if len(rows) == 1 else None
    return str(rows[0]["note"]) if note is not None and note["release"] == name else None


def _same(there: exp.Table, verified: exp.Table, engine: SparkEngine) -> bool:
    try:
        found = engine.read("publish/compare_folder", there=there, verified=verified)[0]
    except JobError:  # columns of other numbers or types
        return False
    return not found["missing"] and not found["unexpected"]
