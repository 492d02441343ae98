"""Explore a table before anything is released: which columns, sequences and texts single people out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sqldeid import tables
from sqldeid.arguments import flag, number, refused, several, text, texts, unless_none, whole, wholes
from sqldeid.engine.opening import Database, is_connection, path_of
from sqldeid.engine.settings import Settings
from sqldeid.errors import JobError
from sqldeid.findings import Explored, ExploredSequences, ExploredText
from sqldeid.insight import explore as columns_
from sqldeid.insight import explore_sequences as sequences_
from sqldeid.insight import explore_text as text_
from sqldeid.insight.explore_source import Source, open_table
from sqldeid.job import Job
from sqldeid.run.calls import settings_of, taken
from sqldeid.run.foreign import refuse_missing_parts
from sqldeid.run.places import Options, naming_job, naming_release, reading
from sqldeid.run.wings import selected


def explore(
    database: Database,
    table: str,
    *,
    columns: Sequence[str | Sequence[str]] = (),
    max_size: int | None = None,
    borders: bool = False,
    enough: float = 0.5,
    person: str | None = None,
    settings: Settings | None = None,
) -> Explored:
    """Measure how many persons sets of columns single out (Mazzone 2019, §3.1).

    Parameters
    ----------
    database
        Path of a DuckDB, CSV or Parquet file, or an open DuckDB connection. Nothing is written.
    table
        ``table`` or ``schema.table``.
    columns
        One set of names, or several; exactly these are measured, or, with `max_size` or `borders`, sets of the columns
        in them. Absent: all columns.
    max_size
        Most columns in a set; 3 where neither this, nor `columns`, nor `borders` is given. Supersets of a set that
        singles out `enough` are not tried: they single out no fewer.
    borders
        Seek only the smallest sets that single out `enough`, and the largest that do not, with as few sets tried as
        decide it.
    enough
        Share of the persons. Above 0, at most 1.
    person
        Column whose distinct values are persons, where rows share one; classes then count persons (not rows).

    Raises
    ------
    JobError
        If a table or column is not there or empty, or there are too many sets.
    """
    table, person = text("table", table), unless_none(text, "person", person)
    asked = columns_.Question(*_sought(columns, max_size, borders, enough))
    with reading(database, _beside(database), settings_of(settings), command="explore") as engine:
        return columns_.explore(asked, open_table(table, person, engine), engine)


def explore_job(
    job: Job,
    database: Database,
    *,
    columns: Sequence[str | Sequence[str]] = (),
    max_size: int | None = None,
    borders: bool = False,
    enough: float = 0.5,
    options: Options | None = None,
) -> Explored:
    """Measure how many persons columns of a job's table single out: its rows after `where`, stacks beside them.

    With `rows = "many"` classes count different persons, as the job's k does.

    Parameters
    ----------
    columns
        As `explore` takes them, of the columns that the job releases. Absent: the quasi-identifying ones, in
        sets of up to three.
    max_size, borders, enough
        As `explore` takes them.
    options
        `only` names the release where the job has several tables.

    Raises
    ------
    JobError
        If the job names several tables and no one is chosen, a person has several rows, or as `explore` raises it.
    """
    options = taken(job, options)
    columns, max_size, borders, enough = _sought(columns, max_size, borders, enough)
    name = _one_table(job, options)
    refuse_missing_parts(job, [name], database, "explore")
    with reading(database, _beside(database), options.settings, command="explore") as engine:
        with naming_job(job):
            part = tables.plan_part(name, job.tables[name], engine, job.folder)
            with naming_release(part.key):
                kept = tables.keep(part, engine)
                found = tables.count_persons(part, engine, kept)
        released = tuple(dict.fromkeys(c.source for c in part.released))
        person = next(c for c in engine.columns(kept) if c.name == part.person) if part.many else None
        persons = found.persons if part.many else found.rows
        source = Source(kept, f"{job.name}: {part.key}", released, person, found.rows, persons)
        qis = tuple(dict.fromkeys(q.source.name for q in part.qis))
        asked = columns_.Question(columns, max_size, borders, enough)
        if not columns:
            asked = replace(
                asked, sets=(qis,) if qis else (), max_size=max_size if borders else max_size or columns_.MAX_SIZE
            )
        with naming_job(job), naming_release(part.key):
            return columns_.explore(asked, source, engine)


def explore_sequences(
    database: Database,
    table: str,
    *,
    per: Sequence[str],
    value: str,
    order: Sequence[str],
    places: Sequence[Sequence[int]] = (),
    unordered: Sequence[Sequence[int]] = (),
    person: str | None = None,
    settings: Settings | None = None,
) -> ExploredSequences:
    """Measure how many owners of a child table's rows are singled out by a few of their items (Mazzone 2019, §3.2).

    Parameters
    ----------
    per
        Columns that say whose item a row is, such as an admission's key.
    value, order
        The item, and the columns that order an owner's items.
    places, unordered
        Places of the items that are known, from 1, with their order and without. Neither: those that the source took.

    Raises
    ------
    JobError
        If a table or column is not there, or places are not ascending.
    """
    given = [sequences_.Pattern(p) for p in _patterns("places", places)]
    given += [sequences_.Pattern(p, ordered=False) for p in _patterns("unordered", unordered)]
    asked = sequences_.SequenceQuestion(
        text("table", table),
        texts("per", per),
        text("value", value),
        texts("order", order),
        unless_none(text, "person", person),
        tuple(given) or sequences_.PATTERNS,
    )
    with reading(database, _beside(database), settings_of(settings), command="explore --per") as engine:
        return sequences_.explore_sequences(asked, engine)


def explore_text(
    database: Database,
    table: str,
    column: str,
    *,
    first: Sequence[int] = text_.FIRST,
    keywords: Mapping[str, Sequence[str]] | None = None,
    person: str | None = None,
    settings: Settings | None = None,
) -> ExploredText:
    """Count texts whose first characters are nobody else's, and texts with a keyword of a group (Mazzone 2019, §3.3).

    Parameters
    ----------
    first
        Numbers of characters.
    keywords
        Group → words or phrases. Absent: English ones for age, sex, ethnicity, religion and others.

    Raises
    ------
    JobError
        If a table or column is not there, or the column holds no text.
    """
    groups = text_.KEYWORDS if keywords is None else _groups(keywords)
    names = text("table", table), text("column", column)
    asked = text_.TextQuestion(*names, wholes("first", first), groups, unless_none(text, "person", person))
    with reading(database, _beside(database), settings_of(settings), command="explore --text") as engine:
        return text_.explore_text(asked, engine)


_Sets = tuple[tuple[str, ...], ...]


def _sought(
    columns: Sequence[str | Sequence[str]], max_size: int | None, borders: bool, enough: float
) -> tuple[_Sets, int | None, bool, float]:
    """What `explore` and `explore_job` are asked, each of its type."""
    most = None if max_size is None else whole("max_size", max_size, 1)
    return _sets(columns), most, flag("borders", borders), number("enough", enough)


def _sets(columns: Sequence[str | Sequence[str]]) -> _Sets:
    """One set of names, or several."""
    given = several("columns", columns, "a list of names, or of lists of names")
    if given and all(isinstance(c, str) for c in given):
        return (texts("columns", given),)
    return tuple(texts("columns", [c] if isinstance(c, str) else c) for c in given)


def _patterns(argument: str, given: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Lists of places."""
    return tuple(wholes(argument, p) for p in several(argument, given, "a list of lists of places, such as [[1, 2]]"))


def _groups(keywords: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Words by group."""
    if not isinstance(keywords, Mapping):
        raise refused("keywords", keywords, "a mapping of groups to lists of words")
    return {text("keywords", group): texts("keywords", words) for group, words in keywords.items()}


def _one_table(job: Job, options: Options) -> str:
    classes = {name for name, table in job.tables.items() if table.parent is None}
    names = [name for name in selected(job, options.only, apart=True) if name in classes]
    if len(names) != 1:
        known = ", ".join(names or job.tables) or "none"
        raise JobError(
            f"{job.name}: the columns of one table are explored at a time, by --only; the job has {known}", key="--only"
        )
    return names[0]


def _beside(database: Database) -> Path | None:
    return None if is_connection(database) else path_of(database)


__all__ = ["explore", "explore_job", "explore_sequences", "explore_text"]
