"""Notes on releases: how one is found and verified again (settled.md, *Finding a release again*)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqldeid.engine.base import Relation
from sqldeid.errors import JobError, SqldeidError
from sqldeid.version import OTHER_FORM, is_known

LEDGER_NOTE = "ledger_release"
"""Key of a release's number in the ledger that it was held to."""

LINKED_NOTE = "linked"
"""Key of the names of the releases that one is linked with, itself among them; its node is then of people/age, too."""

SOURCE_NOTE = "source_marks"
"""Key of keyed sums by which the holder of the key knows whether the source has changed since the release."""

DAYS_NOTE = "days"
"""Key of what a release tells of days: its columns by `SHIFTED` and `SHOWN`."""

SHIFTED, SHOWN = "shifted", "shown"
"""Columns whose dates are shifted, and those that show true ones finer than by years."""

LAYERS_KIND = "layers"
"""Kind of a table that stands beside a release and tells the levels of its layers; it is of nobody."""

ROLLED_UP_KIND = "rolled-up"
"""Kind of a table that stands beside a release and has its rows at common levels; it tells nothing more."""

HIERARCHIES_KIND = "hierarchies"
"""Kind of a table that stands beside a release and tells what its labels say at coarser levels."""

BESIDE_KINDS = (LAYERS_KIND, ROLLED_UP_KIND, HIERARCHIES_KIND)
"""Kinds of tables that stand beside a release and are none."""

LEDGER_MARK = "ledger_mark"
"""Key of what was drawn for the release when the ledger took it down; it says nothing of anybody."""

STAGED = "staged"
"""Key of an entry on a table that is not published yet (Spark): run, time, process (`sqldeid.publish.spark_runs`)."""

COMMENTS_NOTE, SUM_NOTE = "comments", "sum"
"""Keys of a sum of each column's comment, and of one of the note itself: a change by hand is seen by them.

They are of nothing that the release does not show, and no signature: who changes a comment can make its sum anew.
"""

_UNSUMMED = (SUM_NOTE, STAGED, "columns")
"""Keys that are not in the sum of a note; `columns` are the comments themselves, in files of Parquet."""
_SUM_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept on a release, so that it can be found and verified again; never a count of the source.

    Parameters
    ----------
    release
        The release that an object belongs to.
    content
        JSON values: node, hierarchies' names, criteria, job hash.
    columns
        Comment per column.
    """

    release: str
    content: Mapping[str, object]
    columns: Mapping[str, str]

    def also(self, content: Mapping[str, object]) -> Note:
        """The note with more content."""
        return replace(self, content={**self.content, **content})

    def summed(self) -> Note:
        """The note with the sums of the comments and of itself."""
        noted = self.also({COMMENTS_NOTE: {name: sum_of(text) for name, text in self.columns.items() if text}})
        return noted.also({SUM_NOTE: sum_of_note({"release": self.release, **noted.content})})

    def to_json(self) -> str:
        """As stored in the comment."""
        return written_as({"release": self.release, **self.content})


def written_as(content: Mapping[str, object]) -> str:
    """The text of a note's content."""
    return json.dumps({"sqldeid": content}, ensure_ascii=False, sort_keys=True)


def sum_of(comment: str) -> str:
    """By what a comment is known again."""
    return hashlib.sha256(comment.encode(errors="surrogatepass")).hexdigest()[:_SUM_DIGITS]


def sum_of_note(content: Mapping[str, object]) -> str:
    """By what a note is known again, the sums of its comments in it."""
    return sum_of(written_as({key: value for key, value in content.items() if key not in _UNSUMMED}))


def read_note(comment: str) -> dict[str, object] | None:
    """The content of a note, or None where a comment is not one of ours."""
    try:
        found = json.loads(comment)
    except (ValueError, RecursionError):  # anybody's text: it may be nested without an end
        return None
    ours = found.get("sqldeid") if isinstance(found, dict) else None
    return ours if isinstance(ours, dict) and isinstance(ours.get("release"), str) else None


def refuse_other_form(notes: Iterable[Mapping[str, object]], error: type[SqldeidError] = JobError) -> None:
    """Refuse to go by a note that a later version wrote otherwise: what it says of a release is not known here.

    Raises
    ------
    SqldeidError
        `error`, of the first that is of another form.
    """
    for note in notes:
        if not is_known(note):
            raise error(f"{key_of(note)}: the release that is there {OTHER_FORM}", key=key_of(note))


def noted_days(shifted: Sequence[str], shown: Sequence[str]) -> dict[str, object]:
    """What a note keeps of a release's dates: nothing where none are shifted and no true ones shown."""
    found = {name: list(columns) for name, columns in ((SHIFTED, shifted), (SHOWN, shown)) if columns}
    return {DAYS_NOTE: found} if found else {}


def days_of(note: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns whose dates are shifted, and those that show true ones, by their keys in the job."""
    found = note.get(DAYS_NOTE)
    noted = found if isinstance(found, Mapping) else {}
    shifted, shown = (tuple(_key(note, str(c)) for c in noted.get(name, ())) for name in (SHIFTED, SHOWN))
    return shifted, shown


def _key(note: Mapping[str, object], column: str) -> str:
    """Where a job names a column; of linked tables the note calls it by its release, too."""
    release, _, own = column.partition("/") if LINKED_NOTE in note else (str(note["release"]), "", column)
    return f"tables.{release}.columns.{own}"


def key_of(note: Mapping[str, object]) -> str:
    """Where a job asks for the release that a note is of: ``series.vitals``."""
    section = {"series": "series", "events": "events"}.get(str(note.get("kind")), "tables")
    return f"{section}.{note['release']}"


def ours(relations: Sequence[Relation], schema: str, name: str) -> list[Relation]:
    """The objects of a schema that belong to release `name`, by their notes."""
    return [
        r
        for r in relations
        if r.parts[-2].casefold() == schema.casefold() and (read_note(r.comment) or {}).get("release") == name
    ]
