"""Whether a published release has only the comments that its run wrote, and nothing else that its columns say.

Guarantee
    No column of a release, or of what was made with it, has a default, a domain for its type (Postgres; its rules may
    list values), or a comment of which the note's sum is another; and the note's text is what the run wrote. A comment
    that is gone tells nobody anything, and is let pass.

Does not protect
    Against who makes the sums anew, or takes them away: they are no signature. A release whose note has none, for it
    was made before there were sums, is not looked at, and that is told. Indexes, constraints and rights are not looked
    at here (`sqldeid.publish.existing` names them in files), nor is the metadata of files that Spark writes.

Source: soundness.md 22, 26.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from sqldeid.engine.base import Engine, Relation
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.remote import Remote
from sqldeid.errors import VerificationError
from sqldeid.publish.existing import foreign_metadata, relations_at
from sqldeid.publish.notes import COMMENTS_NOTE, STAGED, SUM_NOTE, ours, read_note, sum_of, sum_of_note, written_as
from sqldeid.publish.places import SNAPSHOT, Destination
from sqldeid.sql import literal

Notes = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Said:
    """What the catalogue says of a column of a table or view (schema and name)."""

    table: tuple[str, ...]
    column: str
    comment: str
    default: bool
    domain: bool = False


class _Tells(Protocol):
    def said_in(self, engine: Remote, schema: str, names: Sequence[str]) -> Iterator[Said]:
        """What a server's catalogue says of the columns of tables and views."""


def refuse_foreign_comments(engine: Engine, target: Destination, notes: Notes) -> list[str]:
    """Refuse releases with comments or defaults that their runs did not write.

    Parameters
    ----------
    notes
        By release, and by what stands beside one.

    Returns
    -------
    list
        The releases that were made before notes had sums, and are not looked at.

    Raises
    ------
    VerificationError
        Naming the table and column.

    Cost: the catalogue; on Spark a statement for each table, of Parquet one for each file.
    """
    unsummed = [name for name, note in notes.items() if not {COMMENTS_NOTE, SUM_NOTE} & note.keys()]
    _refuse_foreign(engine, target, {name: note for name, note in notes.items() if name not in unsummed})
    return unsummed


def _refuse_foreign(engine: Engine, target: Destination, notes: Notes) -> None:
    for name, note in notes.items():
        _refuse_changed(target, name, note)
    if target.kind == "parquet":  # its comments are in the note
        # Spark writes folders, with the note beside the rows; metadata of its files is not looked at.
        if not isinstance(engine, Remote) or engine.dialect != "spark":
            _refuse_metadata(engine, target, list(notes))
        return
    reader = engine.bench if isinstance(engine, Remote) and target.into is not None else engine
    there = relations_at(reader, target)
    objects = [(name, r) for name in notes for r in _objects(there, target, name)]
    for name, relation in objects:
        if relation.comment != written_as(read_note(relation.comment) or {}):
            raise _changed(target, name)
    said = list(_said(reader, [r for _, r in objects]))
    for name, relation in objects:
        own = not isinstance(reader, DuckDBEngine) or relation.parts[-1].casefold() in _both(name)
        _refuse_said(target, name, [s for s in said if s.table == relation.parts[-2:]], notes[name] if own else {})


def _both(name: str) -> set[str]:
    """A release and what a view of it reads; what a computed view reads has no comments on its columns."""
    return {name.casefold(), f"{name}{SNAPSHOT}".casefold()}


def _refuse_changed(target: Destination, name: str, note: Mapping[str, object]) -> None:
    """Refuse a note that is not as its run wrote it; in files of Parquet it holds the comments."""
    sums = note.get(COMMENTS_NOTE)
    if not isinstance(sums, dict) or note.get(SUM_NOTE) != sum_of_note(note):
        raise _changed(target, name)
    told = note.get("columns", {}) if target.kind == "parquet" else {}
    if not isinstance(told, dict) or any(text and sums.get(c) != sum_of(str(text)) for c, text in told.items()):
        raise _changed(target, name)


def _refuse_metadata(engine: Engine, target: Destination, names: Sequence[str]) -> None:
    for name in names:
        if more := foreign_metadata(engine, target, name):
            raise VerificationError.at(
                target.key(name),
                f"{target.shown(name)} has {more} entries of metadata that no run wrote: nobody checked them, and "
                "whoever is given the release can read them; make the release anew with --replace",
            )


def _changed(target: Destination, name: str) -> VerificationError:
    return VerificationError.at(
        target.key(name),
        f"the note on {target.shown(name)} is not what a run wrote there: somebody changed it; make the release anew "
        "with --replace",
    )


def _refuse_said(target: Destination, name: str, said: Sequence[Said], note: Mapping[str, object]) -> None:
    """Refuse a comment that the note has not the sum of, defaults and domains; the case of names is the catalogue's."""
    sums = note.get(COMMENTS_NOTE)
    wanted: dict[str, Any] = sums if isinstance(sums, dict) else {}
    small = {column.casefold(): value for column, value in wanted.items()}
    for s in said:
        known = wanted.get(s.column, small.get(s.column.casefold()))
        kinds = {"comment": s.comment and known != sum_of(s.comment), "default": s.default, "domain": s.domain}
        what = next((kind for kind, there in kinds.items() if there), "")
        if what:
            raise VerificationError.at(
                target.key(name),
                f"the column {s.column} of {'.'.join(s.table)} has a {what} that no run wrote: nobody checked it, and "
                f"whoever is given the release reads it; take the {what} away, or make the release anew with --replace",
            )


def _objects(there: Sequence[Relation], target: Destination, name: str) -> list[Relation]:
    """The tables and views of a release; what a killed run left staged beside it is none."""
    found = ours(there, target.schema, name)
    return [r for r in found if r.parts[-1].casefold() == name.casefold() or STAGED not in (read_note(r.comment) or {})]


def _said(reader: Engine, relations: Sequence[Relation]) -> Iterator[Said]:
    """What the catalogue says of the columns of these."""
    for place in dict.fromkeys(r.parts[:-1] for r in relations):
        if isinstance(reader, DuckDBEngine):
            catalog, schema = map(literal, place)
            for row in reader.rows("publish/list_said", catalog=catalog, schema=schema):
                yield Said((place[-1], row["name"]), row["column"], row["comment"], row["has_default"])
        elif isinstance(reader, Remote):
            telling = cast(_Tells, import_module(f"sqldeid.publish.{reader.dialect}"))
            yield from telling.said_in(reader, place[-1], [r.parts[-1] for r in relations if r.parts[:-1] == place])
