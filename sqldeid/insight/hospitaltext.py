"""The job for a shared schema, as commented TOML: what is released, and of every other column why it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tomlkit
from tomlkit.items import Table

from sqldeid.insight.hospital import FoundSchema, FoundTable, query_of, told_empty
from sqldeid.insight.jobtext import add_comment, add_explained, add_place, add_search, safe_text
from sqldeid.insight.presets import CAUTION, Preset
from sqldeid.insight.proposals import SUPPRESSION_LIMIT, K
from sqldeid.schemas import Released, SharedSchema

TOLD = "> "
"""Begins the lines of the head that `sqldeid init` prints as well."""


def hospital_text(found: FoundSchema, database: str, into: str | None, preset: Preset | None) -> str:
    """The job file; it runs as it is.

    Parameters
    ----------
    database
        As the user named it; for the first comment.
    into
        Database file that the release goes to; None for a schema of the database itself.
    preset
        Of a threshold, if there is one beside the schema.
    """
    released = [c for c in found.released if not (preset and preset.harbor and "harbor" in c.keys)]
    document = tomlkit.document()
    add_comment(document, f"Proposed by sqldeid init for {database}, which has the schema {found.shared.title}.")
    add_comment(document, "It runs as it is, and is meant to be read and changed: sqldeid anonymize DB --job THIS-FILE")
    if preset is not None:
        add_comment(document, f"Preset {preset.name}: {preset.why}. {CAUTION}")
    document.add(tomlkit.comment(""))
    for line in told(found, released):
        add_comment(document, TOLD + line)
    document.add(tomlkit.nl())
    document.add("release", add_place(into))
    parent = tomlkit.table(is_super_table=True)
    parent.add(found.shared.release, _release(found, released, preset))
    document.add("tables", parent)
    document.add(tomlkit.nl())
    for line in _decisions(found, released):
        add_comment(document, line)
    return safe_text(tomlkit.dumps(document))


def told(found: FoundSchema, released: list[Released]) -> Iterator[str]:
    """In a few lines what is released, what is not, and why."""
    shared = found.shared
    yield f"Released: {shared.release}, one row per {shared.person}, of {', '.join(c.name for c in released)}."
    yield from told_empty(found)
    reasons: dict[str, list[str]] = {}
    used = {c.of for c in released} | {shared.base}
    for name, table in found.tables.items():
        if name not in used:
            reasons.setdefault(table.known.why, []).append(name)
    for why, names in reasons.items():
        yield f"Left out: {', '.join(names)}. Reason: {why}."
    if found.others:
        yield f"Left out: {', '.join(found.others)}. Reason: {shared.title} has no such table, so nothing is known."
    for table in found.tables.values():
        if table.unknown:
            where = ".".join(table.parts[-2:])
            yield f"Left out of {where}: {', '.join(table.unknown)}. Reason: {shared.title} has no such column."
    gone = [c.name for c in shared.columns if c not in released]
    if gone:
        yield f"Not released: {', '.join(gone)}. The database does not have what they are made of, or a preset forbids."
    if shared.parts:
        yield f"Proposed by this command with --part {' or '.join(shared.parts)}: a job for them alone."
    missing = [name for name in shared.tables if name not in found.tables]
    if missing:
        yield f"Not in this database: {', '.join(missing)}."


def _release(found: FoundSchema, released: list[Released], preset: Preset | None) -> Table:
    shared, table = found.shared, tomlkit.table()
    add_comment(table, "One row per person: of a table with many rows of a person the first, which nothing else tells.")
    add_query(table, query_of(found, released))
    person = found.tables[shared.base].columns[shared.person]
    add_explained(table, "person", person, "at most one row each, which is checked; never released")
    table.add(tomlkit.nl())
    columns = tomlkit.table()
    add_released(columns, shared, released)
    table.add("columns", columns)
    privacy = tomlkit.table()
    k = preset.k if preset is not None and preset.k else K
    add_explained(privacy, "k", k, "every released row looks like those of at least k - 1 other persons")
    add_explained(privacy, "suppression_limit", SUPPRESSION_LIMIT, "at most this share of the persons is left out")
    privacy.add(tomlkit.nl())
    table.add("privacy", privacy)
    table.add("search", add_search())
    return table


def add_released(columns: Table, shared: SharedSchema, released: Iterable[Released]) -> None:
    """A line for each column of a release of persons: its role, its keys, and why."""
    for c in released:
        decided = shared.decision(c)
        keys = {key: value for key, value in c.keys.items() if key != "harbor"}
        add_explained(columns, c.name, {"role": decided.decision, **keys}, decided.why)
    columns.add(tomlkit.nl())


def add_query(table: Table, query: str) -> None:
    """The source of a release as a query on lines of its own."""
    source = tomlkit.inline_table()
    source.append("query", tomlkit.string(f"\n{query}\n", multiline=True))
    table.add("source", source)


def _decisions(found: FoundSchema, released: list[Released]) -> Iterator[str]:
    """Of every column of every table that is there what was decided, and why."""
    yield "What was decided of every column of the database:"
    for table in found.tables.values():
        yield f"{'.'.join(table.parts[-2:])}: {table.known.why}."
        for line in _of_table(table, found, released):
            yield f"- {line}"


def _of_table(table: FoundTable, found: FoundSchema, released: list[Released]) -> Iterator[str]:
    out = {(c.of, c.column): c.name for c in released}
    groups: dict[str, list[str]] = {}
    for c in table.known.columns:
        if c.name not in table.columns:
            continue
        if (name := out.get((table.known.name, c.name))) is not None:
            groups.setdefault(f"released as {name}", []).append(table.columns[c.name])
            continue
        kept = c.decision in ("quasi-identifying", "sensitive")
        said = "dropped: not released, though another database's release may have it" if kept else c.decision
        groups.setdefault(said if kept else f"{said}: {c.why}", []).append(table.columns[c.name])
    for said, names in groups.items():
        yield f"{', '.join(names)}: {said}."
    if table.unknown:
        yield f"{', '.join(table.unknown)}: dropped: {found.shared.title} has no such column."
