"""Rules of hierarchies whose levels stand in the database. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from sqldeid.job.sections import Found

_LINKED = ("child", "parent")


def in_database_problems(rule: Mapping[str, object]) -> Iterator[Found]:
    """Which columns are meant, and of links in which direction."""
    listed = rule.get("table") is not None or rule.get("query") is not None
    columns = rule.get("columns")
    if columns is not None and not listed:
        yield ("columns",), "goes with table or query alone; remove it"
    names = [name.casefold() for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    if len(set(names)) < len(names):
        yield ("columns",), "names a column twice; each is one level"
    if rule.get("parents") is not None:
        yield from _linked_problems(rule)
        return
    for name in (*_LINKED, "separation", "depths"):
        if rule.get(name) is not None:
            yield (name,), "goes with parents alone; remove it"


def _linked_problems(rule: Mapping[str, object]) -> Iterator[Found]:
    for name in _LINKED:
        if rule.get(name) is None:
            yield (name,), "missing; name the column"
    child, parent = (rule.get(name) for name in _LINKED)
    if isinstance(child, str) and isinstance(parent, str) and child.casefold() == parent.casefold():
        yield ("parent",), "is the column of child; name the one that holds the code above it"
    depths = rule.get("depths")
    whole = isinstance(depths, list) and all(isinstance(d, int) for d in depths)
    if isinstance(depths, list) and whole and any(a <= b for a, b in pairwise(depths)):
        yield ("depths",), "must fall from each level to the next, deepest first"
