"""A column of versions beside codes of which a hierarchy reads one version: the job says which rows are meant.

Codes of both versions that look alike (E871) are told apart by such a column alone. It is named by `version`, or known
by its name; then a filter must speak of it, and what the filter leaves must be of one version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import finder
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.hierarchy.versions import SPELT, codes_of, reads_versions
from sqldeid.sql import column, render
from sqldeid.sql.guard import bind, parse_query
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.stack import Stacked, StackPlan

_VERSION = re.compile(
    r"(icd|code|coding|dx|diag\w*|proc\w*)[ _.-]?(code)?[ _.-]?(version|vers|ver|system|vocabulary)(_id)?"
    r"|vocabulary_id|(icd|code)[ _.-]?(9_10|type|rev|revision)|kodesystem|kode_?version",
    re.IGNORECASE,
)
"""What columns that tell ICD-9 from ICD-10 are called."""

_SPELT = {n: re.compile(SPELT.format(n), re.IGNORECASE) for n in ("9", "10", "11")}
"""How such columns spell ICD-9 (9, 9.0, ICD9CM, ICD-9-CM, ICD9Proc), and the versions after it."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The column that tells the version of each code of a column.

    Parameters
    ----------
    stated
        Whether the job names it; else its name looks like one.
    relation
        Rows of a stack's child table, after its filter; None for the release's own source.
    key, where
        Of the column or stack, and of the filter that keeps one version.
    """

    hierarchy: str
    wanted: str
    codes: str
    version: str
    stated: bool
    relation: exp.Expr | None
    key: str
    where: str


def versions_of(
    columns: Sequence[QuasiIdentifier | OtherColumn],
    there: Sequence[Column],
    stacked: Stacked | None,
    part: jobfile.Table,
    engine: Engine,
    key: str,
) -> tuple[Versions, ...]:
    """Find the columns of versions; refuse codes beside one of which no filter speaks. Nothing is read.

    Parameters
    ----------
    there
        The columns of the source before its filter.

    Raises
    ------
    JobError
        If the hierarchy of a column is of one version, and the table has a column of versions that neither `version`,
        `where` nor the query names; or if `version` is named for a hierarchy that reads no version.
    """
    coded = {c.name: c for c in columns if isinstance(c, QuasiIdentifier) and codes_of(c.hierarchy) is not None}
    own, find = {c.name.casefold() for c in there}, finder(there, "the source")
    query = part.source.query if isinstance(part.source, jobfile.Query) else ""
    found: list[Versions] = []
    mixed = _mixed(columns, part, key)
    for name, asked in part.columns.items():
        if name in mixed:
            continue
        at = f"{key}.columns.{name}"
        if asked.version is not None and (name not in coded or coded[name].source.name.casefold() not in own):
            raise _unread(f"{at}.version", on_stack=name in coded)
        if name not in coded or coded[name].source.name.casefold() not in own:
            continue
        c, where = coded[name], f"{key}.where"
        if asked.version is not None:
            version = find(asked.version, f"{at}.version").name
            found.append(Versions(c.hierarchy_name, _wanted(c), c.source.name, version, True, None, at, where))
            continue
        said, sought = (
            f"{part.where or ''} {_after_where(query)}",
            Sought(c.hierarchy_name, _wanted(c), c.source.name, at, where),
        )
        found += _found(sought, there, said)
        for table in _tables_of(query, engine, f"{key}.source.query"):
            if any(t.name.casefold() == c.source.name.casefold() for t in table):
                _found(sought, table, f"{said} {query}")
    for s in stacked.stacks if stacked is not None else ():
        found += _of_stack(s, coded, engine)
    return tuple(found)


def _of_stack(s: StackPlan, coded: Mapping[str, QuasiIdentifier], engine: Engine) -> list[Versions]:
    made = next((coded[c.name] for c in s.columns if c.name in coded), None)
    if made is None or s.value is None:
        if s.part.version is not None:
            raise _unread(f"{s.key}.version")
        return []
    child = engine.columns(s.relation, key=s.key)
    if s.part.version is None:
        said = s.part.where or ""
        return _found(
            Sought(made.hierarchy_name, _wanted(made), s.value.name, s.key, f"{s.key}.where"), child, said, s.relation
        )
    version = finder(child, s.label)(s.part.version, f"{s.key}.version").name
    return [
        Versions(made.hierarchy_name, _wanted(made), s.value.name, version, True, s.relation, s.key, f"{s.key}.where")
    ]


def _mixed(columns: Sequence[QuasiIdentifier | OtherColumn], part: jobfile.Table, key: str) -> set[str]:
    """The columns whose hierarchies read several versions; refused where no column of the source tells them."""
    mixed = [c for c in columns if isinstance(c, QuasiIdentifier) and reads_versions(c.hierarchy)]
    for c in mixed:
        if part.every_column[c.name].version is None:
            raise JobError.at(
                f"{key}.columns.{c.name}.version",
                f"missing; hierarchy {c.hierarchy_name} reads codes of several versions: name the column of the source "
                "that tells the version of each (not for stacks: join the two in a source query)",
            )
    return {c.name for c in mixed}


def _wanted(c: QuasiIdentifier) -> str:
    """The version that a column's hierarchy reads."""
    rule = codes_of(c.hierarchy)
    return rule.version if rule is not None and rule.version else "9"


def _unread(key: str, *, on_stack: bool = False) -> JobError:
    why = (
        "is of columns of the source; give it to the stack"
        if on_stack
        else ("goes with hierarchies of codes that have versions (icd9/…, icd10/…, icd/…); remove it")
    )
    return JobError.at(key, why)


def _after_where(query: str) -> str:
    """What of a query filters: a column that is only selected is not filtered."""
    return " ".join(re.split(r"\bwhere\b|\bon\b|\bqualify\b|\bhaving\b", query, flags=re.IGNORECASE)[1:])


def _tables_of(query: str, engine: Engine, key: str) -> list[tuple[Column, ...]]:
    """The columns of each table that a query reads: it may leave out the one that tells versions."""
    read: list[exp.Expr] = []

    def resolve(parts: tuple[str, ...]) -> exp.Table:
        table = engine.resolve(parts, key=key)
        read.append(table)
        return table

    if query:
        bind(parse_query(query, key=key), resolve)
    return [tuple(engine.columns(table, key=key)) for table in read]


@dataclass(frozen=True, slots=True)
class Sought:
    """Codes of one version: their hierarchy, their column, and where the job names them and filters them."""

    hierarchy: str
    wanted: str
    codes: str
    key: str
    where: str


def _found(sought: Sought, there: Sequence[Column], said: str, relation: exp.Expr | None = None) -> list[Versions]:
    """Columns that look like versions, of which the filter speaks; refused where it does not."""
    hierarchy, wanted, codes, key, where = sought.hierarchy, sought.wanted, sought.codes, sought.key, sought.where
    found = [c.name for c in there if _VERSION.fullmatch(c.name) and c.name.casefold() != codes.casefold()]
    for name in found:
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said, re.IGNORECASE):
            raise JobError.at(
                key,
                f"hierarchy {hierarchy} reads codes of one version, and {name} beside {codes} says that there "
                f'may be others, of which some look alike; keep one: {where} = "{name} = {wanted}"',
            )
    return [Versions(hierarchy, wanted, codes, name, False, relation, key, where) for name in found]


def check_versions(versions: Sequence[Versions], source: exp.Expr, engine: Engine) -> None:
    """Refuse rows whose version is not the hierarchy's. Cost: one scan of each table that has versions.

    Of a column that only looks like versions, rows are refused where some are told to be of another version of ICD, or
    where some are told to be of the hierarchy's and others not. Where the job names it, every row must be told to be of
    the hierarchy's.

    Parameters
    ----------
    source
        The release's rows, as `shape.keep` gives them.

    Raises
    ------
    JobError
        If there are such rows; with their number.
    """
    for v in versions:
        statement = render(
            "tables/plan/count_versions",
            source=v.relation or source,
            codes=column(v.codes, "s"),
            version=column(v.version, "s"),
        )
        rows = [(r["version"], int(r["n"])) for r in engine.query(statement).to_pylist()]
        own, others = _SPELT[v.wanted], [spelt for n, spelt in _SPELT.items() if n != v.wanted]
        other = sum(n for version, n in rows if version is None or not own.fullmatch(version))
        here = any(version is not None and own.fullmatch(version) for version, _ in rows)
        elsewhere = any(version is not None and o.fullmatch(version) for version, _ in rows for o in others)
        if other and (v.stated or elsewhere or here):
            raise JobError.at(
                v.key,
                f"{other:,} {'row is' if other == 1 else 'rows are'} of another version by {v.version} than "
                f"hierarchy {v.hierarchy} reads, and codes that both versions have (E871) mean something else in each; "
                f'keep one: {v.where} = "{v.version} = {v.wanted}", or as its values spell ICD-{v.wanted}',
            )
