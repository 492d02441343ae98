"""How whoever holds the source sees the values that a hierarchy does not cover: a command, or a query; no value."""

from __future__ import annotations

from shlex import quote

from sqldeid.errors import UncoveredError
from sqldeid.files import without_parents
from sqldeid.hierarchy import shipped
from sqldeid.job import Job
from sqldeid.sql import column, parse_table, render, table_name


def how_to_list(job: Job, error: UncoveredError) -> str:
    """A sentence to follow the message; empty where the column is not one that the job names as it stands.

    The database stands in the command as `DB`, in whose place the command line puts what it was given.
    """
    release = job.tables.get(error.release)
    asked = None if release is None else release.columns.get(error.column)
    if release is None or asked is None or error.column in {n for y, s in release.stack.items() for n in s.names(y)}:
        return ""
    if isinstance(release.source, str) and isinstance(asked.hierarchy, str) and asked.version is None:
        file = asked.hierarchy if asked.hierarchy in shipped() else str(without_parents(job.locate(asked.hierarchy)))
        given = f"--table {quote(release.source)} --column {quote(error.column)}"
        return f" To see which: sqldeid hierarchy check {quote(file)} --db DB {given} --uncovered"
    asked_of = table_name(*parse_table(release.source)) if isinstance(release.source, str) else _QUERY
    asking = str(render("run/list_different", column=column(error.column, "s"), source=asked_of)).strip()
    if asked_of is _QUERY:  # which may name a value, and is not said once more
        return f" To see what there is, with (the source query) in the place of source_query: {asking}"
    return f" To see what there is: {asking}"


_QUERY = table_name("source_query")
