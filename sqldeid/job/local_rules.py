"""Rules of `search.method = "local"`: what does not go with classes that each have levels of their own. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.criteria import entries
from sqldeid.job.sections import Found, section

RECODING = "recoding"
"""The column that tells the layer of each row, where `recoding = true` asks for it."""

LAYERS = "_layers"
"""What the table of layers is called, after the release's name."""

ROLLED_UP = "_rolled_up"
"""What the table of rows at common levels is called, where `roll_up` asks for it."""

HIERARCHIES = "_hierarchies"
"""What the table is called that tells what labels say, where `hierarchies = true` asks for it."""

BESIDE = (LAYERS, ROLLED_UP, HIERARCHIES)
"""What tables beside a release are called, after its name."""

_LOSSES = {
    "dm_star": "counts pairs of rows in one class, of whatever levels",
    "entropy": "is told of whole columns at one level",
    "height": "is told of whole columns at one level",
    "ambiguity": "is told of whole columns at one level",
    "normalised_entropy": "is told of whole columns at one level",
    "class_size": "counts classes, of whatever levels",
    "payout": "is told of whole columns at one level",
}
"""Losses that say nothing of a single class's levels."""


def local_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """What only local recoding reads goes with it alone, and what it cannot keep is refused by name."""
    search = section(table, "search")
    if search.get("method") != "local":
        if search.get("layers") is not None:
            yield ("search", "layers"), 'goes with method = "local" alone; remove it or change method'
        if table.get(RECODING) is True:
            yield (RECODING,), 'goes with search.method = "local" alone: elsewhere all rows have one node; remove it'
        if table.get("hierarchies") is True:
            yield (
                ("hierarchies",),
                'goes with search.method = "local" alone: elsewhere each column has one level; remove it',
            )
        if table.get("roll_up"):
            yield (
                ("roll_up",),
                'goes with search.method = "local" alone: elsewhere all rows have one level; remove it',
            )
        return
    yield from _search(search)
    yield from _criteria(section(table, "privacy"))
    if table.get("view") == "computed":
        yield ("view",), 'does not go with search.method = "local", whose classes no view can count; use a snapshot'
    if table.get(RECODING) is True:
        names = [name for name in section(table, "columns") if name.casefold() == RECODING]
        yield from ((("columns", n), f"the release adds a column {RECODING}; call this one otherwise") for n in names)


def layers_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """No release is called like a table that stands beside another one."""
    named = {n.casefold(): (kind, n) for kind in ("tables", "series", "events") for n in section(job, kind)}
    for name, table in section(job, "tables").items():
        if not isinstance(table, Mapping) or section(table, "search").get("method") != "local":
            continue
        for told, ending in (("layers", LAYERS), ("rolled-up rows", ROLLED_UP), ("hierarchies", HIERARCHIES)):
            if (taken := named.get(f"{name}{ending}".casefold())) is not None:
                yield taken, f"is what the table of {told} of tables.{name} is called; rename one of them"


def _search(search: Mapping[str, object]) -> Iterator[Found]:
    loss = search.get("loss", "loss")
    if isinstance(loss, str) and loss in _LOSSES:
        why = f'search.method = "local" gives each class levels of its own, and "{loss}" {_LOSSES[loss]}'
        yield ("search", "loss"), f'{why}; use "loss" or "prec"'
    if search.get("checks_limit") is not None:
        yield (
            ("search", "checks_limit"),
            'search.method = "local" checks no nodes one by one; give time_limit or layers, or remove it',
        )


def _criteria(privacy: Mapping[str, object]) -> Iterator[Found]:
    for asked in entries(privacy, "l_diversity"):
        if asked.get("scope") == "joint":
            yield (
                ("privacy", "l_diversity", "scope"),
                'with search.method = "local", scope is "independent", for classes are judged by one sensitive column '
                "at a time; or use frontier",
            )
