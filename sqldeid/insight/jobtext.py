"""A proposed job as commented TOML: only names, rules and reasons stand in it, never a value of the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import wrap

import tomlkit
from tomlkit.items import InlineTable, Item, Table

from sqldeid.insight.ages import TOP, age_of
from sqldeid.insight.measured import Measured, measured
from sqldeid.insight.presets import CAUTION
from sqldeid.insight.profile import ColumnFacts
from sqldeid.insight.proposals import LENGTH, SUPPRESSION_LIMIT, K, Proposal, Proposed
from sqldeid.job.rules import MAX_NAME_BYTES, name_flaw
from sqldeid.job.series import MAX_ITEMS
from sqldeid.sql import identifier, render, table_name

_WIDTH = 112
_COLUMN = 28
TIME_LIMIT_SECONDS = 60
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_ON_SPARK = re.compile(r"\W", re.ASCII)

LITERAL = "'''"
"""Round a text in which TOML takes no sign for another, as SQL is full of double quotes."""

_Lines = tomlkit.TOMLDocument | Table


def job_text(proposed: Proposed, database: str, into: str | None, dialect: str = "duckdb") -> str:
    """The job file.

    Parameters
    ----------
    database
        As the user named it; for the first comment.
    into
        Database file that the release goes to, relative to the job file; None for a schema of the database itself.
    dialect
        The engine that the database is for.
    """
    document = tomlkit.document()
    _head(document, proposed, database)
    document.add("release", add_place(into))
    parent = tomlkit.table(is_super_table=True)
    name = release_name(proposed.facts.parts[-1], dialect)
    parent.add(_key(name), _release(proposed))
    document.add("tables", parent)
    if proposed.many and proposed.known and proposed.person is not None:
        found = measured(proposed.facts, proposed.person)
        if found is not None:
            _series(document, name, proposed, found)
    return safe_text(tomlkit.dumps(document))


def _head(document: _Lines, proposed: Proposed, database: str) -> None:
    runs = "It runs as it is, and" if proposed.runs else "It is refused until the table has more persons, and"
    add_comment(document, f"Proposed by sqldeid init for {database}. {runs} is meant to be read and changed:")
    document.add(
        tomlkit.comment(
            "    sqldeid anonymize DB --job THIS-FILE --plan    shows what would be done and touches nothing"
        )
    )
    document.add(tomlkit.comment("    sqldeid anonymize DB --job THIS-FILE           does it"))
    if proposed.preset is not None:
        add_comment(document, f"Preset {proposed.preset.name}: {proposed.preset.why}. {CAUTION}")
    if not proposed.facts.rows:
        add_comment(document, "The table has no rows now; until it has some, there is nothing to release.")
    if not all(c.column.named for c in proposed.facts.columns):
        add_comment(
            document,
            "The names below are the first line of the file. Nothing tells whether that is a header or a row of data: "
            "where it is data, write a line of names above it and begin again: this job would show one person's row.",
        )
    document.add(tomlkit.nl())


def add_place(into: str | None) -> Table:
    """Where the release goes."""
    place = tomlkit.table()
    if into is None:
        add_explained(place, "schema", "release", "made if it is not there; give readers this schema and nothing else")
    else:
        add_explained(place, "into", into, "a fresh file: whoever gets it sees nothing else")
    place.add(tomlkit.nl())
    return place


def _release(proposed: Proposed) -> Table:
    release = tomlkit.table()
    release.add("source", _item(source_name(proposed.facts.parts)))
    if proposed.person is not None:
        add_explained(release, "person", proposed.person, proposed.person_why)
        if not proposed.known:
            release.add("where", _item(f"{_quoted(proposed.person)} IS NOT NULL"))
        if proposed.many:
            _many(release, proposed, proposed.person)
    else:
        add_explained(release, "rows_are_persons", True, proposed.person_why)
    release.add(tomlkit.nl())
    release.add("columns", _columns(proposed))
    release.add("privacy", _privacy(proposed))
    release.add("search", add_search())
    return release


def _many(release: Table, proposed: Proposed, person: str) -> None:
    """That persons repeat, and the other way: a query that picks one row of each, ready to be taken in."""
    add_explained(release, "rows", "many", "a class needs rows of k persons; nothing that is released links a person's")
    there = {c.name.casefold() for c in proposed.facts.columns}
    query = render(
        "insight/pick_first",
        source=table_name(*proposed.facts.parts[-2:]),
        person=identifier(person),
        order=[identifier(name) for name in proposed.order],
        place=identifier(next(name for name in _PLACES if name not in there)),
    )
    add_comment(release, "Or one row per person, here the first: then this source, without rows (and check the order):")
    release.add(tomlkit.comment(_shown(f"source = {_item({'query': str(query).strip()}).as_string()}")))


def _series(document: _Lines, name: str, proposed: Proposed, found: Measured) -> None:
    """Of measurements the same as time series, ready to be taken in."""
    section = tomlkit.table()
    section.add("source", _item(source_name(proposed.facts.parts)))
    add_explained(section, "person", proposed.person, "where it is a stay, see cohort.first_of")
    section.add("time", _item(found.time))
    if found.unit is not None:
        add_explained(section, "time_unit", found.unit, "by the column's name")
    add_explained(section, "variable", found.variable, "whose values are names of what was measured, and are released")
    if found.items > MAX_ITEMS:
        why = f"{found.variable} has more than {MAX_ITEMS} values; shipped is this map of MIMIC's items"
        add_explained(section, "variables", "mimic3/vitals", why)
    section.add("value", _item(found.value))
    add_explained(section, "step_hours", 1, "the mean of each step, from the first record")
    add_explained(
        section, "durations", {"k": max(LENGTH, proposed.k)}, "persons who share each length; the rest is lost"
    )
    add_explained(
        section, "privacy", {"k": proposed.k}, "persons of a length who share mean, variance, least and greatest value"
    )
    parent = tomlkit.table(is_super_table=True)
    parent.add(_key(name), section)
    text = tomlkit.dumps({"series": parent})
    document.add(tomlkit.nl())
    add_comment(
        document,
        "Each row looks like a measurement. As a time series more of its course is released, in classes of their own "
        "(docs/tutorial/series.md): then take in these lines in the place of the table above.",
    )
    for line in text.rstrip("\n").split("\n"):  # and at no other sign that ends a line: a name may hold one
        document.add(tomlkit.comment(line))


_PLACES = ("place", *(f"place_{i}" for i in range(10_000)))
"""Names for the number of a row, of which no table has all."""


def _columns(proposed: Proposed) -> Table:
    columns = tomlkit.table()
    add_comment(
        columns,
        "Roles: quasi-identifying (known to strangers, generalised), sensitive and insensitive (released as they "
        "are), identifying and free-text (never released). What is not named is not released. Read each line: a "
        "role is a judgement, and the reasons given are guesses from names, types and counts.",
    )
    facts = {c.name: c for c in proposed.facts.columns}
    for proposal in proposed.columns:
        _age(columns, proposed, facts[proposal.name])
        _column(columns, proposal)
    columns.add(tomlkit.nl())
    return columns


def _age(columns: Table, proposed: Proposed, birth: ColumnFacts) -> None:
    """Above a date of birth: what to write for an age in its place."""
    found = age_of(proposed.facts, birth)
    if found is None:
        return
    said, query, keys = found
    add_comment(
        columns,
        f"An age in the place of {_key(birth.name).as_string()} ({said}), {TOP} and more as one: the first line "
        "instead of the source above, the second instead of the column's line below.",
    )
    text = f"{LITERAL}{query}{LITERAL}" if LITERAL not in f"{query}'" else tomlkit.item(query).as_string()
    columns.add(tomlkit.comment(f"    source = {{ query = {text} }}"))
    for name, value in keys.items():
        columns.add(tomlkit.comment(f"    {_key(name).as_string()} = {_item(value).as_string()}"))


def _column(columns: Table, proposal: Proposal) -> None:
    if proposal.released:
        add_explained(columns, proposal.name, proposal.keys, proposal.why)
    else:
        add_comment(columns, f"{_key(proposal.name).as_string()}: {proposal.why}.")


def _privacy(proposed: Proposed) -> Table:
    privacy = tomlkit.table()
    if proposed.preset is not None and proposed.preset.k:
        why = f"preset {proposed.preset.name}"
    elif proposed.k == K:
        why = "every released row looks like at least four others; 11 and more is usual for public data"
    else:
        why = f"the table has no more rows; at least {K} is usual, and of one person nothing is released"
    add_explained(privacy, "k", proposed.k, why)
    add_explained(
        privacy,
        "suppression_limit",
        SUPPRESSION_LIMIT,
        f"at most {100 * SUPPRESSION_LIMIT:g} % of the rows may be left out, if that keeps the others finer",
    )
    if proposed.l_diversity is not None:
        name, l = proposed.l_diversity
        why = "no class may give a sensitive value away by having one only"
        add_explained(privacy, "l_diversity", {"column": name, "l": l}, why)
        add_comment(
            privacy,
            'With choose = "by-k" in search below, the levels tell nothing of sensitive values (in the docs: "What the '
            'choice of a node tells"). Then the most rows that this may cost stand here, stated before you see it, and '
            "rather too high:",
        )
        privacy.add(tomlkit.comment(f"    criteria_limit = {SUPPRESSION_LIMIT}"))
    privacy.add(tomlkit.nl())
    return privacy


def add_search() -> Table:
    """How the node is sought."""
    search = tomlkit.table()
    add_explained(search, "method", "frontier", "exact: no admissible node loses less")
    add_comment(
        search,
        'Or method = "local": each class at levels of its own, which loses far less. Take it for models and fine '
        "groups, and frontier where readers want one level for each column.",
    )
    add_explained(search, "time_limit", TIME_LIMIT_SECONDS, "seconds; then the best node so far, with its proven gap")
    return search


def add_explained(table: Table, key: str, value: object, why: str) -> None:
    """A line with its reason behind it, or above it where that is too long."""
    item = _item(value)
    line = f"{_key(key).as_string()} = {item.as_string()}"
    if len(line) + len(why) + 4 <= _WIDTH:
        item.comment(_shown(why))
        item.trivia.comment_ws = " " * (max(_COLUMN - len(line), 0) + 2)
    else:
        add_comment(table, why)
    table.add(_key(key), item)


def add_comment(lines: _Lines, text: str) -> None:
    """A comment of as many lines as it needs."""
    for line in wrap(_shown(text), _WIDTH, break_long_words=False, break_on_hyphens=False):
        lines.add(tomlkit.comment(line))


def release_name(table: str, dialect: str = "duckdb") -> str:
    """The table's name, mended where a release may not be called so: on Spark of letters, digits and _ alone."""
    name = "".join("_" if c in "\0/\\" else c for c in table).lstrip(".") or "release"
    if dialect == "spark":
        name = _NOT_ON_SPARK.sub("_", name)
    name = name.encode("utf-8", "replace")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    return "release" if name_flaw(name) else name


def source_name(parts: tuple[str, ...]) -> str:
    """Schema and table as a job names them; the catalogue is the database that is opened."""
    if all(_BARE_NAME.fullmatch(p) for p in parts[-2:]):
        return ".".join(parts[-2:])
    return ".".join(_quoted(p) for p in parts[-2:])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _key(name: str) -> tomlkit.items.Key:
    return tomlkit.key(name)


def _item(value: object) -> Item:
    """A value as TOML writes it; an inline table with a blank inside its braces."""
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    table: InlineTable = tomlkit.inline_table()
    items = [(_key(str(k)), _item(v)) for k, v in value.items()]
    for position, (key, item) in enumerate(items):
        item.trivia.indent = " " if position == 0 else ""
        item.trivia.trail = " " if position == len(items) - 1 else ""
        table.append(key, item)
    return table


def safe_text(text: str) -> str:
    """Escape what a terminal takes for a control: `tomlkit` does so with what TOML forbids; comments have none."""
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 2**16 else f"\\U{code:08X}"


def _shown(text: str) -> str:
    """A comment's text on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
