"""Rules of what a row is: a person's, one of many of a person, or a person by the job's word. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isfinite

from sqldeid.job.sections import Found, section

_METHODS = {
    "epsilon-safe": "its noise and its sample are of rows, each another person",
    "mondrian": "its cuts count rows",
    "local": "its classes and its bound count rows, and one person's rows may be several of a class",
    "inverse-ola": "it seeks the greatest k among sizes in rows",
}
"""Searches whose promise is of rows; the others ask for nodes alone."""

ONE_ROW = "or give one row per person (a source query that picks one)"


def unit_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """A table says whose its rows are; where a person has many, nothing links them."""
    person, stated = table.get("person"), table.get("rows_are_persons") is True
    if person is None and not stated:
        yield (
            ("person",),
            "missing; name the column whose values are the persons, for k counts them; only where each row is another "
            "person and there is no such column, write rows_are_persons = true",
        )
    if person is not None and stated:
        yield ("rows_are_persons",), "is for tables without a person key, and this one has one; remove it"
    if table.get("rows") == "many":
        yield from _many(table)


_UNSAMPLED = {
    "epsilon-safe": "it draws its own sample (beta)",
    "mondrian": "it reads the whole source",
    "local": "it reads the whole source",
}


def sample_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """A sample is of persons, drawn before anything is counted, by searches that read what was drawn."""
    share = table.get("sample")
    if share is None:
        return
    if table.get("person") is None:
        yield ("sample",), "is of persons: name the column whose values are the persons as person"
    if type(share) is float and isfinite(share):
        yield from _shares(share, section(section(table, "privacy"), "m_concealing").get("inclusion"))
    method = section(table, "search").get("method")
    if isinstance(method, str) and method in _UNSAMPLED:
        yield ("sample",), f'does not go with search.method = "{method}": {_UNSAMPLED[method]}; use frontier'
    if table.get("view") == "computed":
        yield ("sample",), "does not go with a computed view, whose text would tell who is in it; use a snapshot"
    for key in ("link", "stack"):
        if table.get(key) is not None:
            yield ("sample",), f"does not go with {key}; sample in a source query, or leave one out"


def _shares(share: float, inclusion: object) -> Iterator[Found]:
    """A share is counted exactly, and who is in the source is in the release with that probability."""
    if Fraction(repr(share)).denominator > 10**9:
        yield ("sample",), "has more than 9 decimals; round it"
    if type(inclusion) in (int, float) and float(str(inclusion)) < share:
        yield (
            ("privacy", "m_concealing", "inclusion"),
            f"is below sample, the probability by which a person of the source is in the release; write {share:g}, or "
            "more",
        )


def linked_sample_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """What is linked with a sampled table would be of other persons."""
    tables, series = section(job, "tables"), section(job, "series")
    for name in tables:
        by = [n for part in (tables, series) for n in part if section(part, n).get("link") == name]
        if by and section(tables, name).get("sample") is not None:
            yield (
                ("tables", name, "sample"),
                f"does not go with a link from another release ({by[0]}); remove one of both",
            )


def _many(table: Mapping[str, object]) -> Iterator[Found]:
    """What links a person's rows, or counts rows as persons, does not go with many rows of one."""
    if table.get("person") is None:
        yield ("rows",), '"many" counts the persons who share the rows: name their column as person'
    for name, column in section(table, "columns").items():
        for key in ("pseudonym", "shift"):
            if isinstance(column, Mapping) and column.get(key) is not None:
                yield ("columns", name, key), f'does not go with rows = "many", for it {_LINKS[key]}; {_FIX[key]}'
    if table.get("link") is not None:
        yield ("link",), f'does not go with rows = "many": a common number links a person\'s rows; remove it, {ONE_ROW}'
    method = section(table, "search").get("method")
    if isinstance(method, str) and method in _METHODS:
        why = f'{method} does not go with rows = "many": {_METHODS[method]}'
        yield ("search", "method"), f"{why}; use another, {ONE_ROW}"
    yield from _criteria(section(table, "privacy"))
    if table.get("view") == "computed":
        yield ("view",), 'a computed view does not go with rows = "many"; use a snapshot'


def _criteria(privacy: Mapping[str, object]) -> Iterator[Found]:
    if privacy.get("suppression") == "blank":
        yield (
            ("privacy", "suppression"),
            '"blank" does not go with rows = "many", for blanked rows are a class that was not judged; use "drop"',
        )
    if privacy.get("m_concealing"):
        yield (
            ("privacy", "m_concealing"),
            'does not go with rows = "many": its risk takes every row that agrees for another person; remove it, '
            f"{ONE_ROW}",
        )
    asked = privacy.get("l_diversity")
    entries = asked if isinstance(asked, list) else [asked]
    if any(isinstance(e, Mapping) and e.get("scope") == "joint" for e in entries):
        yield (
            ("privacy", "l_diversity", "scope"),
            f'"joint" does not go with rows = "many": who knows a person\'s other values may know them of one row; '
            f'use "independent", {ONE_ROW}',
        )


_LINKS = {"pseudonym": "links rows of one person", "shift": "tells rows of one person by their common shift"}
_FIX = {
    "pseudonym": f"remove pseudonym, {ONE_ROW}",
    "shift": f"make the date quasi-identifying, {ONE_ROW}",
}
