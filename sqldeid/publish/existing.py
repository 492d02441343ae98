"""Refuse, replace or carry over what lies at the target already; only what sqldeid made is replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from sqlglot import exp

from sqldeid.engine.base import Column, Engine, Relation
from sqldeid.engine.duckdb import TRIGGERS, DuckDBEngine
from sqldeid.engine.remote import Remote
from sqldeid.errors import JobError, VerificationError
from sqldeid.publish.notes import LEDGER_NOTE, key_of, ours, read_note, refuse_other_form
from sqldeid.publish.places import OLD, SNAPSHOT, TARGET, Destination, parquet_relation
from sqldeid.sql import literal, table_name


def refuse_existing(relations: Sequence[Relation], schema: str, names: Sequence[str], *, replace: bool) -> None:
    """Refuse to write over what is there, unless it is ours and `replace` allows it."""
    for name in names:
        taken = {name.casefold(), f"{name}{SNAPSHOT}".casefold()}
        mine = {r.parts for r in ours(relations, schema, name)}
        for relation in relations:
            if relation.parts[-2].casefold() != schema.casefold() or relation.parts[-1].casefold() not in taken:
                continue
            shown = ".".join(relation.parts[-2:])
            if relation.parts not in mine:
                raise JobError(f"release.schema: {shown} exists and was not made by sqldeid; choose another schema")
            if not replace:
                raise JobError(f"release: {shown} exists already; allow it to be replaced with --replace")


def others_in_file(engine: DuckDBEngine, target: Destination, names: set[str] | None) -> tuple[Relation, ...]:
    """What of an existing database file is carried over: releases not in `names`; nothing where `names` is None.

    The file is attached as `OLD`. Tables come before views.

    Raises
    ------
    JobError
        If it holds anything that sqldeid did not make: replacing the file would lose it.
    """
    if target.into is None or not target.into.exists():
        return ()
    engine.attach(target.into.absolute(), OLD, read_only=True)
    there = engine.relations_in(OLD)
    notes = [(r, read_note(r.comment)) for r in there]
    foreign = [r for r, note in notes if note is None]
    if foreign:
        raise JobError.at(
            "release.into",
            f"{target.into} holds {len(foreign)} tables or views that sqldeid did not make "
            f"({foreign[0].parts[-1]}, …); name another file",
        )
    kept = [r for r, note in notes if names is not None and note is not None and note["release"] not in names]
    return tuple(sorted(kept, key=lambda r: r.is_view))


def others_in_folder(engine: DuckDBEngine, target: Destination, names: set[str] | None) -> tuple[Path, ...]:
    """What of an existing folder of Parquet files is carried over; the same rules as for a database file."""
    if target.into is None or not target.into.exists():
        return ()
    files = sorted(target.into.iterdir())
    notes = {file: _note_in(engine, file) for file in files}
    foreign = [file for file, note in notes.items() if note is None]
    if foreign:
        raise JobError.at(
            "release.into",
            f"{target.into} holds {len(foreign)} files that sqldeid did not make "
            f"({foreign[0].name}, …); name another folder",
        )
    return tuple(
        f for f, note in notes.items() if names is not None and note is not None and note["release"] not in names
    )


def names_of(columns: Sequence[Column], key: str) -> list[str]:
    """The names of a release's columns.

    Raises
    ------
    VerificationError
        If a type lists values, of which no row need hold one.
    """
    for column in columns:
        if column.is_enum or column.holds_enum:
            raise VerificationError.at(
                key,
                f"the column {column.name} of the release has a type with a list of values that no run wrote: nobody "
                "checked them, and whoever is given the release reads them; make the release anew with --replace",
            )
    return [column.name for column in columns]


def beside_releases(engine: Engine, target: Destination, names: Collection[str]) -> tuple[str, ...]:
    """What lies beside releases in the file or folder that is handed out with them: files, or all that has a name.

    Parameters
    ----------
    names
        The releases, and the tables that stand beside them.

    Returns
    -------
    Their names; none where releases lie in a schema or on a server, which has others.
    """
    if not isinstance(engine, DuckDBEngine) or target.into is None:
        return ()
    known = {name.casefold() for name in names}
    if target.kind == "parquet":
        ours = {folder.name for folder in engine.lent.folders}  # where a file whose name is a pattern has a plain one
        files = sorted(file for file in target.into.iterdir() if file.name not in ours)
        return tuple(f.name for f in files if f.suffix != ".parquet" or f.stem.casefold() not in known)
    there = [r.parts[-2:] for r in engine.relations_in(TARGET) if not _is_of(r, target.schema, known)]
    others = engine.rows("publish/list_beside", catalog=literal(TARGET), triggers=TRIGGERS)
    return (*(".".join(parts) for parts in there), *(row["name"] for row in others))


def _is_of(relation: Relation, schema: str, known: Collection[str]) -> bool:
    """Whether a table or view is one of these releases, or what a view of one reads; a note alone can be copied."""
    own = str((read_note(relation.comment) or {}).get("release", "")).casefold()
    place, name = (part.casefold() for part in relation.parts[-2:])
    return own in known and place == schema.casefold() and name in (own, f"{own}{SNAPSHOT}".casefold())


def notes_there(engine: DuckDBEngine, target: Destination) -> list[dict[str, object]]:
    """The notes of all releases at the target: in its schema of the source database, or in the file or folder."""
    notes = _notes_of(engine, target, target.schema if target.into is None else None)
    refuse_other_form(notes)
    return notes


def held_notes(engine: DuckDBEngine, target: Destination, names: Sequence[str]) -> list[dict[str, object]]:
    """The notes of what is replaced and was held to a ledger; of a source database, in any of its schemas."""
    named = [n for n in _notes_of(engine, target, None) if n["release"] in names]
    refuse_other_form(named)
    return [n for n in named if LEDGER_NOTE in n]


def _notes_of(engine: DuckDBEngine, target: Destination, schema: str | None) -> list[dict[str, object]]:
    """Notes at the target; only those of a schema, where one is given."""
    if target.kind == "parquet":
        files = sorted(target.into.iterdir()) if target.into is not None and target.into.exists() else []
        notes = [_note_in(engine, file) for file in files]
    else:
        there = engine.relations() if target.into is None else engine.relations_in(OLD)
        notes = [read_note(r.comment) for r in there if schema is None or r.parts[-2].casefold() == schema.casefold()]
    return [note for note in notes if note is not None]


def refuse_forgotten(notes: Sequence[Mapping[str, object]]) -> None:
    """Refuse to replace, without its ledger, a release that was held to one: the two could be compared.

    Raises
    ------
    JobError
        If there is any.
    """
    for note in notes:
        raise JobError(
            f"{key_of(note)}: the release that is there was held to a ledger; name it with --ledger, or "
            "whoever compares the two may single people out",
            key="--ledger",
        )


def _note_in(engine: Engine, file: Path) -> dict[str, object] | None:
    if file.suffix != ".parquet" or not file.is_file():
        return None
    path = literal(str(_readable(engine, file)))
    try:
        rows = engine.rows("publish/read_parquet_note", path=path)
    except JobError:  # it is called so, and is no Parquet
        return None
    return read_note(rows[0]["note"]) if rows else None


def foreign_metadata(engine: Engine, target: Destination, name: str) -> int:
    """How many entries of metadata a release's file of Parquet has beside its note."""
    file = (target.into or Path()).absolute() / f"{name}.parquet"
    rows = engine.bench.rows("publish/count_parquet_metadata", path=literal(str(_readable(engine, file))))
    return int(rows[0]["entries"])


def _readable(engine: Engine, file: Path) -> Path:
    """A path that the engine reads as this file and no other."""
    reader = cast(DuckDBEngine, engine.bench)  # its own, or the workbench beside a server
    return reader.lent.path(file)


def open_target(engine: DuckDBEngine, target: Destination) -> Path | None:
    """Attach the database file that holds releases (as `TARGET`); the path to be read, None for the source database.

    Raises
    ------
    VerificationError
        If it does not exist: what is not there is not what the job says, in a file as in a schema.
    """
    if target.into is None:
        return None
    if not target.into.exists():
        text = f"release.into: {target.into} does not exist; nothing was released there"
        raise VerificationError(text, key="release.into")
    if target.kind != "parquet":
        engine.attach(target.into.absolute(), TARGET, read_only=True)
    for name in target.sections if target.kind == "parquet" else ():  # while all files can be read
        file = target.into / f"{name}.parquet"
        if file.is_file():
            _readable(engine, file)
    return target.into.absolute()


def relations_at(reader: Engine, target: Destination) -> Sequence[Relation]:
    """The tables and views where releases go that are no files of Parquet."""
    if isinstance(reader, DuckDBEngine):
        return reader.relations_in(TARGET if target.into is not None else reader.catalog)
    return reader.relations()


class _Published(Protocol):
    def published(self, engine: Remote, destination: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
        """A release outside the source database, to be read where the source lies, and the note on it."""


def published(engine: Engine, target: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    """A published release, to be read, and the note on it.

    Raises
    ------
    VerificationError
        If it is not there, sqldeid did not make it, or its note is of a form that this version does not know.
    """
    found, note = _published(engine, target, name)
    refuse_other_form([note], VerificationError)
    return found, note


def _published(engine: Engine, target: Destination, name: str) -> tuple[exp.Expr, dict[str, object]]:
    if isinstance(engine, Remote) and target.into is not None:
        there_too = cast(_Published, import_module(f"sqldeid.publish.{engine.dialect}"))
        return there_too.published(engine, target, name)
    if target.kind == "parquet":
        file = (target.into or Path()).absolute() / f"{name}.parquet"
        note = _note_in(engine, file)
        if note is None:
            raise VerificationError(f"{target.key(name)}: {file} is not there, or sqldeid did not make it")
        return parquet_relation(_readable(engine, file)), note
    if isinstance(engine, Remote):
        engine.look_in(target.schema)
    for relation in ours(relations_at(engine, target), target.schema, name):
        if relation.parts[-1].casefold() == name.casefold():
            return table_name(*relation.parts), read_note(relation.comment) or {}
    raise VerificationError(f"{target.key(name)}: {target.shown(name)} is not there, or sqldeid did not make it")
