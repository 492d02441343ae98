"""The job for a part of a shared schema: its diagnoses as a child table, or its vital signs as time series.

A part is a job of its own. A child table asks for large classes of few columns, which would cost the release of persons
its detail, and for a secret key; series have classes of their own. Two parts are two releases of the same persons,
which nothing looks at together, so the job says to publish one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import tomlkit
from tomlkit.items import Table

from sqldeid.errors import JobError
from sqldeid.insight.hospital import FoundSchema, query_of, told_empty
from sqldeid.insight.hospitaltext import TOLD, add_query, add_released
from sqldeid.insight.jobtext import add_comment, add_explained, add_place, safe_text, source_name
from sqldeid.insight.presets import CAUTION, Preset
from sqldeid.insight.proposals import LENGTH, SUPPRESSION_LIMIT, K
from sqldeid.schemas import Released, SchemaPart
from sqldeid.sql import column, identifier, literal, render, table_name

KNOWN = 2
"""Items of a person that somebody may know."""

CLASS_SIZES = (200, 100, 50, 20)
"""Least sizes of a parent's classes: the greatest of which the database has persons for five classes."""

PAIRS_LIMIT = 0.3
"""Share of the pairs of person and item that may be suppressed."""

_ALONE = (
    "Publish this or another release of the same persons, not both: each keeps its own promise, and nothing here "
    "looks at the two together."
)


def part_of(found: FoundSchema, name: str) -> SchemaPart:
    """The part, of whose tables and columns the database has all that is needed.

    Raises
    ------
    JobError
        If the schema has no such part, or the database lacks what it is made of.
    """
    part = found.shared.parts.get(name)
    if part is None:
        others = ", ".join(["persons", *found.shared.parts])
        raise JobError.at("part", f"{found.shared.title} has no part {name}; parts: {others}")
    stays, vocabulary = part.stays, part.vocabulary
    needed = {part.table: [c for c in (part.item, part.time, part.variable, part.value) if c]}
    needed[part.table].append(stays.on if stays else found.shared.person)
    if isinstance(version := part.keys.get("version"), str):
        needed[part.table].append(version)
    if stays:
        needed.setdefault(stays.table, []).extend([stays.on, found.shared.person])
    if vocabulary:
        needed[vocabulary["table"]] = [vocabulary[key] for key in ("child", "parent", "separation")]
    for table, columns in needed.items():
        there = found.tables[table].columns if table in found.tables else {}
        missing = [c for c in columns if c not in there]
        if missing:
            what = f"table {table} with {', '.join(missing)}" if there else f"table {table}"
            raise JobError.at("part", f"{name} is made of {what}, which the database does not have")
    if part.wide and not any(c in found.tables[part.table].columns for c in part.wide):
        raise JobError.at("part", f"{name} is made of columns of table {part.table}, of which the database has none")
    return part


def part_text(
    found: FoundSchema, name: str, persons: int, database: str, into: str | None, preset: Preset | None
) -> str:
    """The job file; it runs as it is, one of a child table with a key.

    Parameters
    ----------
    persons
        Rows of the table of persons: classes are as large as they allow.
    database, into, preset
        As for the release of persons.

    Raises
    ------
    JobError
        As `part_of`.
    """
    part = part_of(found, name)
    document = tomlkit.document()
    add_comment(document, f"Proposed by sqldeid init for {database}, which has the schema {found.shared.title}.")
    key = " --key-file KEY" if part.item else ""
    add_comment(
        document,
        f"It runs as it is, and is meant to be read and changed: sqldeid anonymize DB --job THIS-FILE{key}",
    )
    if part.item:
        made = "(umask 077; openssl rand -hex 32 > KEY)"
        add_comment(document, f"A key is made by: {made}. Whoever has it can undo the pseudonyms.")
    if preset is not None:
        add_comment(document, f"Preset {preset.name}: {preset.why}. {CAUTION}")
    document.add(tomlkit.comment(""))
    k = preset.k if preset is not None and preset.k else K
    released = _persons(found, part, preset)
    if part.item and not released:
        names = ", ".join(part.persons)
        raise JobError.at(
            "part", f"{name} needs one of {names} to form classes, which the database or a preset leaves out"
        )
    for line in _told(found, part, released):
        add_comment(document, TOLD + line)
    document.add(tomlkit.nl())
    document.add("release", add_place(into))
    wing = tomlkit.table(is_super_table=True)
    if part.item:
        wing.add(found.shared.release, _parent(found, released, max(_class_size(persons), k)))
        wing.add(name, _child(found, part, k))
    else:
        wing.add(name, _series(found, part, k))
    document.add("tables" if part.item else "series", wing)
    return safe_text(tomlkit.dumps(document))


def _persons(found: FoundSchema, part: SchemaPart, preset: Preset | None) -> list[Released]:
    """The parent's columns that the database and the preset allow."""
    kept = [replace(c, keys=part.persons[c.name]) for c in found.released if c.name in part.persons]
    return [c for c in kept if not (preset and preset.harbor and "harbor" in c.keys)]


def _told(found: FoundSchema, part: SchemaPart, released: Iterable[Released]) -> Iterator[str]:
    shared = found.shared
    if part.item:
        names = ", ".join(c.name for c in released) or "no column but the pseudonym"
        yield f"Released: {shared.release}, one row per {shared.person}, of {names}, with a pseudonym."
        yield (
            f"Released: {part.name}, each person's different {part.item} of {part.table}, as coarse as must be: "
            f"whoever knows a person's class and {KNOWN} items finds enough persons, or none."
        )
        yield "Left out: dates, order and number of rows, and every other column and table."
    else:
        variables = ", ".join(_wide(found, part).values()) or f"the variables of {part.keys['variables']}"
        yield f"Released: {part.name}, time series of {part.table}: {variables}. Of each person the first stay alone."
        yield "Left out: times of day and dates, and every other column and table."
    yield from told_empty(found)
    yield _ALONE


def _class_size(persons: int) -> int:
    return next((size for size in CLASS_SIZES if size * 5 <= persons), K)


def _parent(found: FoundSchema, released: list[Released], k: int) -> Table:
    shared, table = found.shared, tomlkit.table()
    add_query(table, query_of(found, released))
    person = found.tables[shared.base].columns[shared.person]
    add_explained(table, "person", person, "at most one row each, which is checked")
    table.add(tomlkit.nl())
    columns = tomlkit.table()
    add_explained(
        columns, person, {"role": "identifying", "pseudonym": True}, "by which the items are joined; made with the key"
    )
    add_released(columns, shared, released)
    table.add("columns", columns)
    privacy = tomlkit.table()
    add_explained(privacy, "k", k, "the larger the classes, the finer the items")
    add_explained(privacy, "suppression_limit", SUPPRESSION_LIMIT, "at most this share of the persons is left out")
    privacy.add(tomlkit.nl())
    table.add("privacy", privacy)
    return table


def _child(found: FoundSchema, part: SchemaPart, k: int) -> Table:
    there, table = found.tables[part.table], tomlkit.table()
    item = there.columns[str(part.item)]
    version = part.keys.get("version")
    names = [str(part.item), *([str(version)] if version else [])]
    _add_source(table, found, part, names)
    table.add("parent", found.shared.release)
    add_explained(table, "items", item, "what others may know of a person")
    add_explained(table, "known", KNOWN, "how many of them; 1 keeps more detail")
    table.add(tomlkit.nl())
    columns = tomlkit.table()
    keys = dict(part.keys) | ({"version": there.columns[str(version)]} if version else {})
    if part.vocabulary:
        keys["hierarchy"] = _vocabulary(found, part.vocabulary)
    add_explained(columns, item, {"role": "quasi-identifying", **keys}, "shown as coarse as must be")
    columns.add(tomlkit.nl())
    table.add("columns", columns)
    privacy = tomlkit.table()
    add_explained(privacy, "k", k, f"persons of a class who have any {KNOWN} items that one of them has, or none has")
    add_explained(privacy, "suppression_limit", PAIRS_LIMIT, "at most this share of the pairs of person and item")
    table.add("privacy", privacy)
    return table


def _vocabulary(found: FoundSchema, vocabulary: Mapping[str, str]) -> dict[str, str]:
    table = found.tables[vocabulary["table"]]
    columns = {key: table.columns[vocabulary[key]] for key in ("child", "parent", "separation")}
    return {"parents": source_name(table.parts), **columns}


def _series(found: FoundSchema, part: SchemaPart, k: int) -> Table:
    there, table, wide = found.tables[part.table], tomlkit.table(), _wide(found, part)
    names = [c for c in (part.time, part.variable, part.value) if c]
    _add_source(table, found, part, [*names, *(c for c in part.wide if c in there.columns)])
    for key, name in (("time", part.time), ("variable", part.variable), ("value", part.value)):
        if name is not None:
            table.add(key, there.columns[name])
    if wide:
        table.add("wide", _inline(wide))
    for key, value in part.keys.items():
        if key == "step_hours":
            add_explained(table, key, value, "the mean of each step, from the first record")
        else:
            table.add(key, value)
    add_explained(
        table, "durations", {"k": max(LENGTH, k)}, "persons who share each length; records beyond it are lost"
    )
    add_explained(table, "privacy", {"k": k}, "persons of a length who share mean, variance, least and greatest value")
    return table


def _wide(found: FoundSchema, part: SchemaPart) -> dict[str, str]:
    there = found.tables[part.table].columns
    return {there[name]: variable for name, variable in part.wide.items() if name in there}


def _inline(values: Mapping[str, str]) -> tomlkit.items.InlineTable:
    made = tomlkit.inline_table()
    made.update(values)
    return made


def _add_source(table: Table, found: FoundSchema, part: SchemaPart, names: Iterable[str]) -> None:
    """The table itself where it has the person key and all its rows are meant, else a query; then the person key."""
    there, stays, shared = found.tables[part.table], part.stays, found.shared
    if stays is None:
        table.add("source", source_name(there.parts))
        table.add("person", there.columns[shared.person])
        return
    rows = found.tables[stays.table]
    statement = render(
        "insight/join_stays",
        table=table_name(*there.parts[-2:]),
        columns=[
            {
                "value": column(there.columns[name], "r"),
                "first_of": literal(part.first_of) if part.first_of and name == part.item else None,
                "name": identifier(there.columns[name]),
            }
            for name in names
        ],
        person=identifier(rows.columns[shared.person]),
        stays=table_name(*rows.parts[-2:]),
        stay=identifier(there.columns[stays.on]),
        stays_on=identifier(rows.columns[stays.on]),
        order=[column(rows.columns[name], "s") for name in stays.order if name in rows.columns],
    )
    add_query(table, str(statement).strip())
    table.add("person", rows.columns[shared.person])
