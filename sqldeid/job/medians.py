"""Rules of `search.method = "mondrian"`: which columns it takes, and what does not go with it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.criteria import entries
from sqldeid.job.sections import Found, section


def median_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """Every quasi-identifying column is cut at medians, or none is."""
    asked = section(table, "search").get("method") == "mondrian"
    for name in section(table, "columns"):
        yield from _column(name, section(section(table, "columns"), name), asked)
    if not asked and section(table, "search").get("heuristic") is not None:
        yield ("search", "heuristic"), 'goes with method = "mondrian" alone; remove it or change method'
    if asked:
        yield from _refused(table, section(table, "privacy"))


def _column(name: str, column: Mapping[str, object], asked: bool) -> Iterator[Found]:
    cut = section(column, "hierarchy").get("median") is not None
    if cut and not asked:
        yield ("columns", name, "hierarchy", "median"), 'goes with search.method = "mondrian" alone'
    if asked and not cut and column.get("role") == "quasi-identifying":
        yield (
            ("columns", name, "hierarchy"),
            'search.method = "mondrian" cuts at medians: write { median = "range" } or { median = "mean" }',
        )
    for disguise in ("pseudonym", "shift", "to", "top_code"):
        if asked and column.get(disguise) is not None:
            yield ("columns", name, disguise), 'does not go with search.method = "mondrian"'


def _refused(table: Mapping[str, object], privacy: Mapping[str, object]) -> Iterator[Found]:
    if privacy.get("m_concealing"):
        yield ("privacy", "m_concealing"), 'search.method = "mondrian" knows k, l and t alone; use frontier'
    for asked in entries(privacy, "l_diversity"):
        if asked.get("scope") == "joint":
            yield ("privacy", "l_diversity"), 'with search.method = "mondrian", scope is "independent"; or use frontier'
    for asked in entries(privacy, "t_closeness"):
        if asked.get("distance") in ("ordered", "hierarchical"):
            yield ("privacy", "t_closeness"), 'with search.method = "mondrian", distance is "equal"; or use frontier'
    if privacy.get("suppression") == "blank" or privacy.get("suppression_limit"):
        yield ("privacy",), 'search.method = "mondrian" suppresses nothing; remove suppression and suppression_limit'
    for key in ("stack", "text"):
        if table.get(key):
            yield (key,), 'does not go with search.method = "mondrian"; use a source query'
    if table.get("view") == "computed":
        yield ("view",), 'does not go with search.method = "mondrian"; use a snapshot'
