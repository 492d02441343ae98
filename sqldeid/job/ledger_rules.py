"""What of a job does not go with a ledger: one list, for a run's first refusal, the wings' own, and a page.

`unfit` reads the job alone, so that all its faults are told at once and before anything is opened. What is refused here
the wings refuse again where they would have to keep it: this list is a courtesy, theirs the guard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from sqldeid.job.criteria import OF_POPULATION, OVERALL, PER_CLASS
from sqldeid.job.problems import dotted

if TYPE_CHECKING:
    from sqldeid.job.events import Events
    from sqldeid.job.job import Job
    from sqldeid.job.parts import Table
    from sqldeid.job.series import Series

_ONLY = "or choose other releases with --only"

REFUSED: Mapping[str, str] = {
    'rows = "many"': "--ledger knows each person by one row; give one row per person (a source query that picks one), "
    f"{_ONLY}",
    "rows_are_persons": "the ledger follows persons from release to release; name the person key as person",
    "shift": "does not go with a ledger: each release shifts anew, and who links releases by the intervals in them "
    "narrows the true dates down; leave the column out, or make it quasi-identifying",
    "link": "--ledger compares single tables with earlier releases, not the join of linked ones; take link out, or "
    "release them once and without --ledger",
    "parent": "is a child table, and --ledger does not keep sets of items from release to release; take the child "
    "table out of the job, or release it and its parent once and without --ledger",
    'method = "mondrian"': "it cuts anew in each release, and --ledger holds classes by levels to each other; take "
    f'another method, such as "frontier" or "local", {_ONLY}',
    'choose = "by-k"': 'with method = "local" all criteria decide who stays, and --ledger would; take "by-all", or '
    f'method = "frontier", {_ONLY}',
    "blunt": "is drawn anew in each run, and who has several learns more; with --ledger remove it",
    'suppression = "blank"': 'blanked rows show who left a class; with --ledger write "drop"',
    'view = "computed"': "a computed view changes between two runs; with --ledger write a snapshot",
    "aggregate": "does not go with a ledger, which keeps who is in a class and not what a statistic rests on: where "
    "one value changes, the difference of two statistics tells it; leave the column out, or give it levels",
    "m_concealing": "the ledger does not keep it from release to release; ask for l_diversity or t_closeness",
    "k_map": "the ledger does not keep the population from release to release; ask for k alone",
    "delta_presence": "the ledger does not keep the population from release to release; remove it",
    "average_risk": "the ledger holds rows back after classes were counted, so it may fail; ask for a greater k",
    "at_risk": "the ledger holds rows back after classes were counted, so it may fail; ask for a greater k",
    'scope = "joint"': 'the ledger does not keep joint l-diversity; write "independent"',
    'distance = "hierarchical"': "the ledger keeps no hierarchy of a sensitive column; write another distance",
    "nulls": 'fewer than k persons may share the variables that they have; with --ledger write "null-pattern"',
    "link of series": "--ledger keeps no account of series that follow a table, and series released again for the "
    "same persons can be compared; release without --ledger, or remove link",
    "method of events": "--ledger adds up what events with laplace spend, and holds no others; take "
    f'privacy.method = "laplace", {_ONLY}',
}
"""By the words of the job: why not, and what to do."""


def unfit(job: Job, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """What of these releases does not go with a ledger: keys, dotted, and the words of `REFUSED`."""
    for name in names:
        if (table := job.tables.get(name)) is not None:
            yield from ((dotted(("tables", name, *keys)), what) for keys, what in _of_table(table))
        elif (series := job.series.get(name)) is not None:
            yield from ((dotted(("series", name, *keys)), what) for keys, what in _of_series(series))
        elif (events := job.events.get(name)) is not None:
            yield from ((dotted(("events", name, *keys)), what) for keys, what in _of_events(events))


_Found = Iterator[tuple[tuple[str, ...], str]]


def _of_table(table: Table) -> _Found:
    if table.parent is not None:  # the rest is its parent's
        yield ("parent",), "parent"
        return
    if table.link is not None:
        yield ("link",), "link"
    if table.person is None:
        yield ("rows_are_persons",), "rows_are_persons"
    if table.many:
        yield ("rows",), 'rows = "many"'
    match table.search.method:
        case "mondrian":
            yield ("search", "method"), 'method = "mondrian"'
        case "epsilon-safe":  # it composes by ε, and is not held to classes
            pass
        case _:
            yield from _of_classes(table)
            yield from _of_columns(table)
            yield from _of_privacy(table)


def _of_classes(table: Table) -> _Found:
    search = table.search
    beyond = any(table.privacy.per_class.values()) or table.privacy.m_concealing is not None
    if search.method == "local" and search.choose == "by-k" and beyond:
        yield ("search", "choose"), 'choose = "by-k"'
    if search.blunt:
        yield ("search", "blunt"), "blunt"
    if table.view == "computed":
        yield ("view",), 'view = "computed"'


def _of_columns(table: Table) -> _Found:
    for name, column in table.every_column.items():
        if column.shift is not None:
            yield ("columns", name, "shift"), "shift"
        if getattr(column.hierarchy, "aggregate", None) is not None:
            yield ("columns", name, "hierarchy", "aggregate"), "aggregate"


def _of_privacy(table: Table) -> _Found:
    asked = table.privacy
    if asked.blanks:
        yield ("privacy", "suppression"), 'suppression = "blank"'
    for key in ("m_concealing", *OF_POPULATION, *OVERALL):
        if getattr(asked, key) is not None:
            yield ("privacy", key), key
    for key in PER_CLASS:
        for entry in asked.per_class[key]:
            if getattr(entry, "scope", "") == "joint":
                yield ("privacy", key), 'scope = "joint"'
            if getattr(entry, "distance", "") == "hierarchical":
                yield ("privacy", key), 'distance = "hierarchical"'


def _of_series(series: Series) -> _Found:
    if series.link is not None:
        yield ("link",), "link of series"
    if series.privacy.nulls != "null-pattern":
        yield ("privacy", "nulls"), "nulls"


def _of_events(events: Events) -> _Found:
    if events.privacy.method != "laplace":
        yield ("privacy", "method"), "method of events"
