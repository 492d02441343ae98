"""Rules of stacks, and the columns that they make. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from sqldeid.job.sections import Found, section

MAX_PLACES = 1000
"""The greatest place of a row that a stack takes: so many rows of each person are held in memory."""

ORDERED = ("first", "last")
"""Aggregates that ask for an order."""

_TAKES = ("first", "items", "aggregate")
_COLUMN_KEYS = ("role", "hierarchy", "uncovered")


def stack_names(name: str, stack: Mapping[str, object]) -> list[str]:
    """The columns of a stack: ``proc_1`` to ``proc_3``, ``proc_1`` and ``proc_5``, or ``proc`` alone."""
    if stack.get("aggregate") is not None:
        return [name]
    places = stack_places(stack)
    named = range(1, len(places) + 1) if stack.get("unordered") else places
    return [f"{name}_{i}" for i in named]


def stack_places(stack: Mapping[str, object]) -> list[int]:
    """Which rows of a person are taken, from 1 up; none for an aggregate."""
    first, items = stack.get("first"), stack.get("items")
    if type(first) is int:
        return list(range(1, min(first, MAX_PLACES) + 1))
    return [i for i in items if type(i) is int] if isinstance(items, list) else []


def with_stacked(table: Mapping[str, object]) -> dict[str, object]:
    """The columns of a table release as written, with those of its stacks; what `columns` says of one wins."""
    made: dict[str, object] = {}
    for name, stack in _stacks(table):
        made |= {c: {k: stack[k] for k in _COLUMN_KEYS if k in stack} for c in stack_names(name, stack)}
    return {**made, **section(table, "columns")} if made else dict(section(table, "columns"))


def stacks_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """Rules of each stack, and between stacks: no two make the same column."""
    seen: dict[str, str] = {}
    for name, stack in _stacks(table):
        yield from ((("stack", name, *keys), text) for keys, text in stack_problems(stack))
        if not name or "\0" in name:
            yield ("stack", name), "a stack names columns, so its name may not be empty or hold a NUL character"
        for made in stack_names(name, stack):
            if seen.setdefault(made.casefold(), name) != name:
                yield (
                    ("stack", name),
                    f"would make a column that stack {seen[made.casefold()]} makes; rename one of them",
                )
    if seen and table.get("view") == "computed":
        yield ("view",), "a computed view reads one table; stacks need a snapshot"


def stack_problems(stack: Mapping[str, object]) -> Iterator[Found]:
    """Rules between the keys of one stack."""
    given = [key for key in _TAKES if stack.get(key) is not None]
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "has none of them"
        yield (), f"must hold exactly one of {', '.join(_TAKES)}; it {found}"
    aggregate = stack.get("aggregate")
    if stack.get("value") is None and aggregate != "count":
        yield ("value",), "missing; name the column that is stacked"
    yield from _order(stack, ordered=aggregate is None or aggregate in ORDERED)
    if stack.get("unordered") and aggregate is not None:
        yield ("unordered",), "goes with first or items alone: an aggregate is one value; remove it"
    items = stack.get("items")
    whole = isinstance(items, list) and all(type(i) is int for i in items)
    if isinstance(items, list) and whole and not all(a < b for a, b in pairwise(items)):
        yield ("items",), "must rise: each place once, the first row of a person being 1"
    yield from _keys(stack)
    yield from _through(stack)


def _order(stack: Mapping[str, object], *, ordered: bool) -> Iterator[Found]:
    if ordered and stack.get("order") is None:
        yield ("order",), "missing; which row is first must not be an accident: name the column that orders the rows"
    for key in ("order", "then"):
        if not ordered and stack.get(key) is not None:
            yield (key,), f'has no meaning for aggregate = "{stack["aggregate"]}"; remove it'


def _keys(stack: Mapping[str, object]) -> Iterator[Found]:
    """Keys have as many names on the one side as on the other."""
    for key in ("on", "through_on"):
        names, others = (len(_listed(stack.get(k))) for k in (key, f"{key}_as"))
        if names and others and names != others:
            yield (f"{key}_as",), f"has {others} of the {names} names of {key}; give one for each, in their order"


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _through(stack: Mapping[str, object]) -> Iterator[Found]:
    """The keys of an intermediate table go together, and so do those of the pick among its rows."""
    through, pick = stack.get("through"), stack.get("pick")
    if through is not None and stack.get("through_on") is None:
        yield ("through_on",), "missing; name the key, or keys, by which through and from are joined"
    for key in ("through_on", "through_on_as", "through_where", "pick"):
        if through is None and stack.get(key) is not None:
            yield (key,), "goes with through alone; remove it or name the intermediate table"
    if pick is not None and stack.get("pick_order") is None:
        yield ("pick_order",), "missing; name the column of through by which one of its rows is picked"
    for key in ("pick_order", "pick_then"):
        if pick is None and stack.get(key) is not None:
            yield (key,), "goes with pick alone; remove it or say which row is picked"
    if stack.get("pick_until") is not None and pick != "longest":
        yield ("pick_until",), 'goes with pick = "longest" alone; remove it or change pick'


def _stacks(table: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, stack in section(table, "stack").items():
        if isinstance(stack, Mapping):
            yield name, stack
