"""Rules of what becomes of values that a hierarchy does not cover, and of versions of codes. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.sections import Found, section

COVERING = ("mask", "keep_first", "suppress")
"""Rules that give every value a group, so that nothing is uncovered."""


def covering_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """Where `uncovered` and `version` of columns and stacks are read by nobody, or would tell of rows."""
    drawn = section(table, "search").get("method") == "epsilon-safe"
    for kind in ("columns", "stack"):
        parts = section(table, kind)
        for name in parts:
            one = section(parts, name)
            rule = section(one, "hierarchy")
            if one.get("uncovered") is not None:
                yield from (((kind, name, "uncovered"), text) for text in _uncovered(one["uncovered"], rule, drawn))
            if one.get("version") is not None:
                yield from (((kind, name, "version"), text) for text in _version(rule, drawn))


def _uncovered(asked: object, rule: Mapping[str, object], drawn: bool) -> Iterator[str]:
    """What becomes of uncovered values is settled where classes are cut from the values, or a node is drawn."""
    every = [key for key in COVERING if rule.get(key) is not None]
    if rule.get("median") is not None or rule.get("aggregate") is not None:
        yield f"goes with hierarchies of levels; {'median' if rule.get('median') else 'aggregate'} has none: remove it"
    elif every:
        yield f"is for hierarchies that may not know a value; {every[0]} takes every one: remove it"
    elif drawn and asked != "top":
        yield (
            'must be "top", or be left out: epsilon-safe takes such values to the top, for a refusal would tell of them'
        )


def _version(rule: Mapping[str, object], drawn: bool) -> Iterator[str]:
    """Versions of codes are counted, so never where a refusal would tell of rows; classes cut at medians have none."""
    if rule.get("median") is not None or rule.get("aggregate") is not None:
        yield f"goes with hierarchies of codes; {'median' if rule.get('median') else 'aggregate'} has none: remove it"
    elif drawn:
        yield "is not for epsilon-safe, where a refusal would tell of rows; keep one version by where"
