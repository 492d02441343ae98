"""The rows of linked tables: their sources joined, written table by table, joined again as whoever holds them would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.engine.offers import NAMES
from sqldeid.errors import JobError, VerificationError
from sqldeid.publish import LINKED_NOTE, Note, Staging
from sqldeid.sql import Statement, column, identifier, render
from sqldeid.tables.plan.linking import PERSON, Linked, person_column, qualified
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.plan.versions import check_versions
from sqldeid.tables.rows.shape import check_stacks, comparable, count_persons, keep

_TEXT = exp.DataType.build("varchar", dialect="duckdb")


@dataclass(frozen=True, slots=True)
class Joined:
    """Linked sources as one.

    Parameters
    ----------
    plan
        The join's, with a source that can be read.
    sources
        What was joined, one row per person each, in the order of the members.
    left_out
        By release: its persons whom another release does not have.
    """

    linked: Linked
    plan: TablePlan
    sources: tuple[exp.Expr, ...]
    left_out: Mapping[str, int]


def join_sources(linked: Linked, engine: Engine) -> Joined:
    """Join the sources by person. Cost: two scans of each.

    Raises
    ------
    JobError
        If a person is NULL or twice in one of them, nobody is in all of them, or the engine would cut a column's name.
    """
    _refuse_long(linked, engine)
    sources = tuple(keep(m, engine) for m in linked.members)
    persons = [count_persons(m, engine, source).rows for m, source in zip(linked.members, sources, strict=True)]
    for m, source in zip(linked.members, sources, strict=True):
        check_versions(m.versions, source, engine)
    sides = enumerate(zip(linked.members, sources, strict=True))
    first, *others = (_side(m, i, source, engine) for i, (m, source) in sides)
    columns = [{"name": identifier(PERSON), "value": first["key"]}]
    for i, m in enumerate(linked.members):
        columns += [{"name": identifier(n), "value": column(own.name, f"m{i}")} for n, own in _own_columns(m).items()]
    joined = engine.make(
        "tables/rows/join_linked", f"{linked.joint.name}_joined", first=first, others=others, columns=columns
    )
    read = engine.row("tables/rows/check_person", source=joined, person=column(PERSON, "s"))
    rows = int(read["rows"])
    if rows == 0:
        names = " and ".join(linked.names)
        after = " (after `where`)" if any(m.filtered for m in linked.members) else ""
        raise JobError.at(
            linked.key,
            f"no person is in {names}{after}, so nothing can be released linked; take link out, or mend the person "
            "keys",
        )
    left_out = {m.name: n - rows for m, n in zip(linked.members, persons, strict=True)}
    return Joined(linked, replace(linked.joint, source=joined), sources, left_out)


def _refuse_long(linked: Linked, engine: Engine) -> None:
    """Refuse columns whose names are too long for the engine in the join, where they bear their release's, too."""
    most, dialect = engine.capabilities.max_identifier_bytes, engine.capabilities.dialect
    for m in linked.members:
        start = qualified(m, "")
        for c in (c for c in linked.joint.released if c.name.startswith(start)):
            names = (c.name, c.source.name, getattr(c, "disguised_name", "") if getattr(c, "disguise", None) else "")
            if max(len(name.encode()) for name in names) > most:
                key = f"{m.key}.columns.{c.name.removeprefix(start)}"
                raise JobError.at(
                    key,
                    f"linked tables are joined with the release's name before each column's, and this one is "
                    f"then longer than the {most} bytes that {NAMES[dialect]} keeps; shorten the release's name, or "
                    "give the column another name in a source query",
                )


def _side(member: TablePlan, number: int, source: exp.Expr, engine: Engine) -> dict[str, object]:
    return {"source": source, "alias": identifier(f"m{number}"), "key": _key(member, f"m{number}", engine)}


def _key(member: TablePlan, alias: str, engine: Engine) -> exp.Expr:
    """The person key of a source read as `alias`, as the join spells it: text by its bytes, whatever collation it has.

    Postgres does not compare texts of two collations.
    """
    source = person_column(member).source
    key = column(source.name, alias)
    if source.kind != "text":
        return key
    text = exp.cast(key, _TEXT)
    if engine.capabilities.dialect != "postgres":
        return text
    return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))


def _own_columns(member: TablePlan) -> dict[str, Column]:
    """The columns of a source that the join needs beside the person, by what it calls them."""
    found = {c.source.name: c.source for c in member.released if c.source.name != member.person}
    return {qualified(member, name): source for name, source in found.items()}


def check_sources(joined: Joined, engine: Engine) -> None:
    """Check the join, and the stacks that went into it, by other SQL.

    Raises
    ------
    VerificationError
        If a row is not what the sources give.
    """
    for m, source in zip(joined.linked.members, joined.sources, strict=True):
        check_stacks(m, engine, source)
        key = _key(m, "s", engine)
        others = [
            {"source": there, "key": _key(o, "o", engine)}
            for o, there in zip(joined.linked.members, joined.sources, strict=True)
            if o is not m
        ]
        columns = [{"name": identifier("k"), "joined": column(PERSON, "j"), "value": key}]
        columns += [
            {
                "name": identifier(f"c{i}"),
                "joined": comparable(column(name, "j"), own.kind, engine),
                "value": comparable(column(own.name, "s"), own.kind, engine),
            }
            for i, (name, own) in enumerate(_own_columns(m).items())
        ]
        statement = render(
            "tables/rows/compare_linked",
            joined=joined.plan.source,
            source=source,
            key=key,
            columns=columns,
            others=others,
        )
        if different := int(engine.query(statement).to_pylist()[0]["different"]):
            raise VerificationError.at(
                f"{m.key}.link",
                f"the release failed its re-check: {different} rows differ where the tables are joined once more",
            )


@dataclass(frozen=True, slots=True)
class Apart:
    """Where a join is staged: each of the linked tables where releases go, with its own columns."""

    linked: Linked
    engine: Engine
    staging: Staging

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Write every table; the join of what was written, to be verified."""
        whole = self.engine.workbench(f"{self.linked.joint.name}_whole")
        asked = statement(whole)
        if not isinstance(asked, Statement):
            raise TypeError("a release is staged by a rendered template")
        self.engine.run(asked.template, **{**asked.parameters, "temporary": True})
        written = [self._write(m, whole, note) for m in self.linked.members]
        self.engine.drop(whole)
        return join_written(self.linked, written, self.engine)

    def _write(self, member: TablePlan, whole: exp.Table, note: Note) -> exp.Expr:
        named = {c.name: qualified(member, c.name) for c in member.released}
        columns = [{"name": identifier(own), "value": column(name, "w")} for own, name in named.items()]
        key = column(named[person_column(member).name], "w")
        content = {**note.content, LINKED_NOTE: list(self.linked.names)}
        comments = {own: note.columns[name] for own, name in named.items()}
        return self.staging.write(
            lambda target: render("tables/rows/stage_linked", target=target, whole=whole, columns=columns, key=key),
            Note(member.name, content, comments),
        )

    def write_computed(self, statement: object, note: Note, tables: object) -> exp.Expr:
        """Never: linked tables have no computed view."""
        raise NotImplementedError

    def publish(self) -> tuple[str, ...]:
        """Never: the run publishes all its releases together."""
        raise NotImplementedError


def join_written(linked: Linked, written: Sequence[exp.Expr], engine: Engine) -> exp.Table:
    """Join tables that were written by their pseudonyms, as whoever holds them would.

    Raises
    ------
    VerificationError
        If their columns are not those of the job, or a pseudonym does not stand once in each of them.
    """
    for m, there in zip(linked.members, written, strict=True):
        if [c.name for c in engine.columns(there, key=m.key)] != [c.name for c in m.released]:
            raise VerificationError.at(
                m.key, f"the release failed its re-check: its columns are not the {len(m.released)} that the job names"
            )
    _refuse_unmatched(linked, written, engine)
    first, *others = (
        {"source": there, "alias": identifier(f"m{i}"), "key": _pseudonym(m, f"m{i}")}
        for i, (m, there) in enumerate(zip(linked.members, written, strict=True))
    )
    columns = [
        {"name": identifier(qualified(m, c.name)), "value": column(c.name, f"m{i}")}
        for i, m in enumerate(linked.members)
        for c in m.released
    ]
    return engine.make(
        "tables/rows/join_linked", f"{linked.joint.name}_written", first=first, others=others, columns=columns
    )


def _refuse_unmatched(linked: Linked, written: Sequence[exp.Expr], engine: Engine) -> None:
    members = [
        {"source": there, "key": _pseudonym(m, "r"), "place": i}
        for i, (m, there) in enumerate(zip(linked.members, written, strict=True))
    ]
    statement = render("tables/rows/match_linked", members=members, tables=len(members))
    if unmatched := int(engine.query(statement).to_pylist()[0]["unmatched"]):
        raise VerificationError.at(
            linked.key,
            f"the releases failed their re-check: {unmatched} pseudonyms do not stand once in each of "
            "these linked tables",
        )


def _pseudonym(member: TablePlan, alias: str) -> exp.Expr:
    return exp.cast(column(person_column(member).name, alias), _TEXT)
