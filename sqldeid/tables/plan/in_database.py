"""Hierarchies whose levels stand in the database: a table or query of levels, or a vocabulary's links.

A table of levels is read whole when the release is planned, as a file is. Of a vocabulary only what lies above the
column's values is read, when they are known. Nothing tells a vocabulary from a table of persons. A hierarchy that reads
the release's own source counts as made of its values, and epsilon-safe takes none that was read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import columns_of, finder
from sqldeid.catalogue.relations import resolve
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import HierarchyError, JobError
from sqldeid.hierarchy import HierarchySource
from sqldeid.hierarchy.files import from_rows
from sqldeid.hierarchy.parents import DEPTHS, MOST_STEPS, Links, ParentsSource
from sqldeid.job.parts import Source
from sqldeid.sql import bind, column, identifier, outward, parse_query, parse_table

MOST_ROWS = 5_000_000
"""Of a table of levels, which is held in memory."""

_LEAF = ("integer", "float", "number", "boolean", "date", "timestamp", "text")
_LABEL = ("integer", "number", "boolean", "date", "text")
_INT64 = 2**63


def open_in_database(rule: jobfile.HierarchyRule, table: jobfile.Table, engine: Engine, key: str) -> HierarchySource:
    """The hierarchy that a rule names in the database. Cost: one scan of a table of levels, none of a vocabulary.

    Parameters
    ----------
    table
        The release, whose own source counts as persons.
    key
        Of the hierarchy in the job.

    Raises
    ------
    JobError
        If a table or column is not there or not fit, or the SQL looks across persons.
    HierarchyError
        If the rows are no hierarchy.
    """
    if rule.parents is not None:
        return _linked(rule, engine, key)
    named = jobfile.Query(query=rule.query) if rule.query is not None else str(rule.table)
    at = key if rule.query is not None else f"{key}.table"
    relation, label = resolve(named, engine, at, query="the query")
    name = "query" if rule.query is not None else f"table {label.rpartition('.')[2]}"
    of_persons = bool(_tables(named, engine, at) & _persons(table, engine, key))
    if of_persons and rule.query is not None:
        across = [what for what in outward(parse_query(rule.query, key=key)) if what != "DISTINCT"]
        if across:
            raise JobError.at(
                f"{key}.query",
                f"reads the release's own source and looks across its rows ({across[0]}); a hierarchy may only take "
                "columns of single rows from there. Read a table of levels apart from persons",
            )
    levels = _levels(rule, relation, label, engine, key)
    if of_persons:
        _refuse_hidden(rule, levels, table, key)
    read = engine.ask(
        "tables/plan/read_levels",
        source=relation,
        levels=[{"name": identifier(f"l{i}"), "column": column(c.name, "s")} for i, c in enumerate(levels)],
        limit=MOST_ROWS + 1,
    )
    if len(read) > MOST_ROWS:
        raise JobError.at(key, f"{label} has more than {MOST_ROWS:,} different rows; name the columns that are levels")
    texts = [read.column(i).cast(pa.string()).combine_chunks() for i in range(read.num_columns)]
    return from_rows(name, texts, data_derived=of_persons)


def _levels(
    rule: jobfile.HierarchyRule, relation: exp.Expr, label: str, engine: Engine, key: str
) -> tuple[Column, ...]:
    """The columns that are levels: those that are named, else all."""
    there = columns_of(relation, engine, key)
    find = finder(there, label)
    levels = there if rule.columns is None else tuple(find(name, f"{key}.columns") for name in rule.columns)
    for n, c in enumerate(levels):
        if c.kind not in (_LABEL if n else _LEAF):
            what = "labels" if n else "values"
            raise JobError.at(
                f"{key}.columns",
                f"{c.name} of {label} is of type {c.shown_type}, which has no spelling for {what} that is the same on "
                "every engine; cast it to text in a query, or leave it out",
            )
    return levels


_HIDDEN = ("identifying", "free-text", "sensitive")
"""Roles of columns that no label may tell."""


def _refuse_hidden(rule: jobfile.HierarchyRule, levels: Sequence[Column], table: jobfile.Table, key: str) -> None:
    """Refuse labels out of columns of the release's own source that are not to be known: a label is released as it is.

    Raises
    ------
    JobError
        If there is one, by its name.
    """
    hidden: dict[str, str] = {n.casefold(): c.role for n, c in table.every_column.items() if c.role in _HIDDEN}
    hidden |= {} if table.person is None else {table.person.casefold(): "the person key"}
    named = [c.name for c in levels]
    if rule.query is not None:
        named += [found.name for found in parse_query(rule.query, key=key).find_all(exp.Column)]
    for name in named:
        if name.casefold() in hidden:
            raise JobError.at(
                key,
                f"takes {name} of the release's own source, which is {hidden[name.casefold()]}; labels are released",
            )


def _tables(source: Source, engine: Engine, key: str) -> set[tuple[str, ...]]:
    """The tables that a source reads, by their whole names."""
    found: set[tuple[str, ...]] = set()

    def note(parts: tuple[str, ...]) -> exp.Table:
        table = engine.resolve(parts, key=key)
        found.add(tuple(part.name for part in table.parts))
        return table

    if isinstance(source, jobfile.Query):
        bind(parse_query(source.query, key=key), note)
    else:
        parsed = parse_table(source, key=key)
        note(parsed)
    return found


def _persons(table: jobfile.Table, engine: Engine, key: str) -> set[tuple[str, ...]]:
    """The tables of persons that a release reads."""
    sources: list[Source] = [table.source]
    for stack in table.stack.values():
        sources += [name for name in (stack.from_table, stack.through) if name is not None]
    return set().union(*(_tables(source, engine, key) for source in sources))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """A table of links."""

    table: exp.Expr
    child: exp.Column
    parent: exp.Column
    separation: exp.Column | None
    whole: bool
    name: str


def _linked(rule: jobfile.HierarchyRule, engine: Engine, key: str) -> ParentsSource:
    label = str(rule.parents)
    table = engine.resolve(parse_table(label, key=f"{key}.parents"), key=f"{key}.parents")
    find = finder(columns_of(table, engine, f"{key}.parents"), label)
    child, parent = (find(str(name), f"{key}.{of}") for of, name in (("child", rule.child), ("parent", rule.parent)))
    for of, c in (("child", child), ("parent", parent)):
        if c.kind not in ("integer", "text"):
            raise JobError.at(
                f"{key}.{of}", f"{c.name} is of type {c.shown_type}; codes are whole numbers or text: make it a view"
            )
    if child.kind != parent.kind:
        raise JobError.at(
            f"{key}.parent",
            f"{parent.name} is of type {parent.shown_type} and {child.name} of type {child.shown_type}; a code must be "
            "spelled alike in both: make it a view",
        )
    steps = None
    if rule.separation is not None:
        found = find(rule.separation, f"{key}.separation")
        if found.kind not in ("integer", "number"):
            raise JobError.at(f"{key}.separation", f"{found.name} is of type {found.shown_type}, not a whole number")
        steps = column(found.name, "s")
    name = f"parents in {label.rpartition('.')[2]}"
    whole = child.kind == "integer"
    vocabulary = _Vocabulary(table, column(child.name, "s"), column(parent.name, "s"), steps, whole, name)
    return ParentsSource(name, tuple(rule.depths or DEPTHS), partial(climb, vocabulary, engine), whole)


def climb(vocabulary: _Vocabulary, engine: Engine, codes: Sequence[str]) -> Links:
    """The links above codes, level by level.

    Cost: two scans of the vocabulary, or lookups, and one more for each step up.

    Raises
    ------
    HierarchyError
        If it has more steps than any vocabulary.
    """
    links: dict[str, Sequence[str]] = {}
    waiting = list(dict.fromkeys(codes))
    for step in range(MOST_STEPS + 1):
        found = _above(vocabulary, engine, waiting)
        # What was found above another code is in the vocabulary; of the codes asked for that is not known.
        alone = [code for code in waiting if code not in found]
        roots = _known(vocabulary, engine, alone) if not step else alone
        links |= found | dict.fromkeys(roots, ())
        waiting = list(dict.fromkeys(p for parents in found.values() for p in parents if p not in links))
        if not waiting:
            return links
    raise HierarchyError(
        f"hierarchy {vocabulary.name}: a code lies more than {MOST_STEPS} steps deep; its links are wrong"
    )


def _above(vocabulary: _Vocabulary, engine: Engine, codes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in _asked(vocabulary, engine, codes, "tables/plan/read_links", separation=vocabulary.separation):
        if row["parent"] != "":
            found.setdefault(row["child"], []).append(row["parent"])
    return found


def _known(vocabulary: _Vocabulary, engine: Engine, codes: Sequence[str]) -> list[str]:
    wanted = set(codes)
    found = _asked(vocabulary, engine, codes, "tables/plan/read_known")
    return [row["code"] for row in found if row["code"] in wanted]


def _asked(
    vocabulary: _Vocabulary, engine: Engine, codes: Sequence[str], template: str, **more: object
) -> Sequence[Mapping[str, str]]:
    """Rows of a statement over codes, which are sent to where the vocabulary is."""
    sent = _sendable(codes, whole=vocabulary.whole)
    if not len(sent):
        return []
    asked = engine.put("codes", pa.table({"code": sent}))
    rows = engine.rows(
        template, source=vocabulary.table, asked=asked, child=vocabulary.child, parent=vocabulary.parent, **more
    )
    engine.drop(asked)
    return rows


def _sendable(codes: Sequence[str], *, whole: bool) -> pa.Array:
    """Codes in the vocabulary's type; of whole numbers those alone that are spelled as it spells them."""
    if not whole:
        return pa.array(codes, pa.string())
    numbers = (int(code) for code in codes if _spelled(code))
    return pa.array([n for n in numbers if -_INT64 <= n < _INT64], pa.int64())


def _spelled(code: str) -> bool:
    digits = code.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and str(int(code)) == code
