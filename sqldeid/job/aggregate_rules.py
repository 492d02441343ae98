"""Rules of microaggregation (`hierarchy = { aggregate = … }`): where a statistic of a class would not hold. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.criteria import OF_POPULATION
from sqldeid.job.sections import Found, section

METHODS = ("frontier", "best-first", "flash", "ola", "inverse-ola", "datafly", "igreedy")
"""Searches of nodes: each class of the release is one of a node."""

_WHY = {
    "epsilon-safe": "proves nothing of statistics",
    "mondrian": 'cuts every quasi-identifying column at medians (median = "mean" shows means)',
    "local": "recodes what is left over again and again, after statistics would have been told",
}


def aggregated(table: Mapping[str, object]) -> list[str]:
    """The columns of a release as written that leave as statistics of their classes."""
    columns = section(table, "columns")
    return [name for name in columns if section(section(columns, name), "hierarchy").get("aggregate") is not None]


def aggregate_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """A statistic is of all the rows of a class of a node, each of another person, and of no others."""
    for name in section(table, "stack"):
        if section(section(section(table, "stack"), name), "hierarchy").get("aggregate") is not None:
            yield (
                ("stack", name, "hierarchy"),
                "a stacked column is not aggregated by class; join the value in a source query",
            )
    named = aggregated(table)
    if not named:
        return
    where = ("columns", named[0], "hierarchy", "aggregate")
    yield from ((where, text) for text in _unfit(table))
    yield from _split_by_none(table, named)
    k = section(table, "privacy").get("k")
    if type(k) is int and k < 2:
        yield ("privacy", "k"), f"must be at least 2: of a class of one person, {named[0]} would be that person's value"
    for name in named:
        column = section(section(table, "columns"), name)
        statistic = section(column, "hierarchy")["aggregate"]
        if column.get("top_code") is not None and statistic in ("mode", "interval"):
            yield (
                ("columns", name, "top_code"),
                f"goes with mean and median alone: {statistic} would call the cut values their own; remove one of both",
            )
        if name in section(section(table, "search"), "weights"):
            yield ("search", "weights", name), "is aggregated, and has no levels to weigh; remove it"


def _split_by_none(table: Mapping[str, object], named: list[str]) -> Iterator[Found]:
    columns = section(table, "columns")
    quasi = [name for name in columns if section(columns, name).get("role") == "quasi-identifying"]
    if set(quasi) <= set(named) and not table.get("stack"):
        yield (
            ("columns",),
            "all quasi-identifying columns are aggregated, so that nothing tells classes apart; give one of them a "
            "hierarchy of levels",
        )


def _unfit(table: Mapping[str, object]) -> Iterator[str]:
    privacy, search = section(table, "privacy"), section(table, "search")
    method = search.get("method", "frontier")
    if isinstance(method, str) and method in _WHY:
        yield f'does not go with search.method = "{method}", which {_WHY[method]}; use frontier'
    if privacy.get("suppression") == "blank":
        yield 'does not go with suppression = "blank": blanked rows are no class to tell a statistic of; use "drop"'
    if table.get("rows") == "many":
        yield (
            'does not go with rows = "many": who has most rows would make the statistic; give one row per person (a '
            "source query)"
        )
    if table.get("view") == "computed":
        yield "does not go with a computed view, which knows no statistics; use a snapshot"
    if table.get("link") is not None:
        yield "does not go with link: the classes of the join would not be those of the statistic; remove it"
    for key in (k for k in OF_POPULATION if privacy.get(k) is not None):
        yield (
            f"does not go with {key}: the statistic is of the persons in the release, and tells them from the "
            "population's who fit by the other columns; remove one of the two"
        )


def linked_aggregate_problems(job: Mapping[str, object], name: str) -> Iterator[Found]:
    """Rows of a release that others are linked with leave its classes with theirs."""
    tables, series = section(job, "tables"), section(job, "series")
    named = aggregated(section(tables, name))
    by = [n for part in (tables, series) for n in part if section(part, n).get("link") == name]
    if named and by:
        yield (
            ("tables", name, "columns", named[0], "hierarchy", "aggregate"),
            f"does not go with a link from another release ({by[0]}), by which persons leave classes after the "
            "statistics were told; remove one of the two",
        )
