"""Rules of linked table releases: which belong together, and what they must agree on. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from sqldeid.job.criteria import asked_per_class
from sqldeid.job.sections import Found, section
from sqldeid.job.stack_rules import with_stacked

SEARCH_KEYS = ("method", "choose", "loss", "max_loss", "time_limit", "checks_limit")
"""Keys of [search] that the linked tables that state them state alike: there is one search."""

MOST_KNOWN = 12
"""Columns that m-concealing may call known, over all linked tables."""

UNWEIGHTED = ("dm_star", "entropy", "class_size", "payout")
"""Losses for which no weights of columns are defined; weights are refused with them, not ignored."""

_DEFAULTS: Mapping[tuple[str, ...], object] = {("text",): False, ("privacy", "suppression"): "drop"}
_NEVER = {
    "epsilon-safe": "its guarantee is of one table alone, without pseudonyms",
    "mondrian": "it cuts each table by itself, and has no lattice that the tables could share",
    "local": "linked tables share the levels of one node, and it has others for each class of each table",
}


def link_groups(job: Mapping[str, object]) -> list[tuple[str, ...]]:
    """The table releases that `link` puts together, in the order of the job; only groups of two and more.

    Whoever links the same table belongs to one group, and so does a chain; what a link cannot name is left out.
    """
    tables = section(job, "tables")
    group = {name: name for name in tables}
    for name in tables:
        other = section(tables, name).get("link")
        if isinstance(other, str) and other in group and group[other] != group[name]:
            old, new = group[name], group[other]
            group = {n: new if g == old else g for n, g in group.items()}
    found: dict[str, list[str]] = {}
    for name, one in group.items():
        found.setdefault(one, []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def link_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """Each link names another table release, never in a circle; linked tables agree on persons, search and form."""
    tables = section(job, "tables")
    for name in tables:
        yield from ((("tables", name, "link"), text) for text in _named(name, tables, job))
    groups = link_groups(job)
    for names in groups:
        linked = {name: section(tables, name) for name in names}
        for name, table in linked.items():
            yield from ((("tables", name, *keys), text) for keys, text in _member(table))
        first = next(iter(linked))
        yield from (
            (("tables", n, *keys), text)
            for n, keys, text in (*_agreement(first, linked), *_roles(linked), *_tops(linked), *_coarsened(linked))
        )
    tied = {name for names in groups for name in names}
    for name in section(job, "series"):
        if section(section(job, "series"), name).get("link") in tied:
            yield (
                ("series", name, "link"),
                "names a table that is linked with another one; a series follows one table alone: link either the "
                "tables or the series",
            )


def apart_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """Whom nobody is given beside a release is another table release, and not one that it is linked with."""
    tables, groups = section(job, "tables"), link_groups(job)
    for name in tables:
        named = section(tables, name).get("never_with")
        for other in named if isinstance(named, list) else ():
            where = ("tables", name, "never_with")
            if other == name:
                yield where, "names its own release; name those that nobody is given beside it"
            elif isinstance(other, str) and other not in tables:
                there = ", ".join(n for n in tables if n != name) or "none"
                yield where, f"must name other table releases of this job; there: {there}"
            elif any(name in group and other in group for group in groups):
                yield where, "names a release that it is linked with, which is given out to be joined; take one out"


def other_persons_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """Whose persons are others is another table release with a person key of another name."""
    tables = section(job, "tables")
    for name in tables:
        named, own = section(tables, name).get("other_persons"), section(tables, name).get("person")
        for other in named if isinstance(named, list) else ():
            where = ("tables", name, "other_persons")
            key = section(tables, other).get("person") if isinstance(other, str) else None
            if other == name:
                yield where, "names its own release; name those that hold no person of it"
            elif isinstance(other, str) and other not in tables:
                there = ", ".join(n for n in tables if n != name) or "none"
                yield where, f"must name other table releases of this job; there: {there}"
            elif not (isinstance(own, str) and isinstance(key, str)):
                yield where, f"needs a person key here and in tables.{other}; name both, or take this out"
            elif own.casefold() == key.casefold():
                yield (
                    where,
                    f"names a release with the same person key, {own}: that key means the same persons, who are ",
                )
                "compared; take it out"


def _named(name: str, tables: Mapping[str, object], job: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with where a link leads."""
    other = section(tables, name).get("link")
    if not isinstance(other, str):
        return
    if other == name:
        yield "names its own release; name the table release that it is to be joined with"
    elif other not in tables and other in section(job, "series"):
        own = section(section(job, "series"), other).get("link")
        said = "says so already" if own == name else f'says so, by link = "{name}"'
        yield f"names a series; take it out here: series.{other} follows the table, and its own section {said}"
    elif other not in tables:
        there = ", ".join(n for n in tables if n != name) or "none"
        yield f"must name another table release of this job; there: {there}"
    elif _circle(name, tables):
        yield "goes round in a circle; linked tables are joined all with all, so leave one link out: the other does"


def _circle(name: str, tables: Mapping[str, object]) -> bool:
    seen, here = {name}, section(tables, name).get("link")
    while isinstance(here, str) and here in tables and here not in seen:
        seen.add(here)
        here = section(tables, here).get("link")
    return here == name


def _member(table: Mapping[str, object]) -> Iterator[Found]:
    """What a table must be to be linked at all."""
    person = table.get("person")
    if person is None:
        yield ("person",), "missing; linked tables are joined by their persons, one row each: name the person key"
    elif isinstance(person, str) and not _released_person(table, person):
        yield (
            ("columns", person),
            "linked tables are joined by this key, so each must release its pseudonym: give it "
            '{ role = "identifying", pseudonym = true }, or take link out',
        )
    method = section(table, "search").get("method")
    if isinstance(method, str) and method in _NEVER:
        yield ("search", "method"), f"{method} does not go with link: {_NEVER[method]}"
    if table.get("view") == "computed":
        yield ("view",), "a computed view reads one table; linked tables need a snapshot"


def _released_person(table: Mapping[str, object], person: str) -> bool:
    columns = section(table, "columns")
    return any(n.casefold() == person.casefold() and section(columns, n).get("pseudonym") is True for n in columns)


def _agreement(first: str, linked: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Where a linked table says something else than the first one, or than the others together."""
    person = linked[first].get("person")
    stated: dict[str, object] = {}
    inverse = any(section(t, "search").get("method") == "inverse-ola" for t in linked.values())
    for name, table in linked.items():
        mine = table.get("person")
        if isinstance(mine, str) and isinstance(person, str) and mine.casefold() != person.casefold():
            yield name, ("person",), "is another key than that of the table it is linked with; join by one key"
        for keys, default in _DEFAULTS.items():
            if _at(table, keys, default) != _at(linked[first], keys, default):
                yield name, keys, "linked tables are suppressed and written alike: say the same in each"
        search = section(table, "search")
        for key in SEARCH_KEYS:
            if search.get(key) is not None and stated.setdefault(key, search[key]) != search[key]:
                yield name, ("search", key), "linked tables share one search: say the same in each, or in one alone"
        if inverse and asked_per_class(section(table, "privacy")):
            yield name, ("link",), "the linked tables are searched by inverse-ola, which knows no l or t; use another"
        if search.get("weights") and any(_loss(t) in UNWEIGHTED for t in linked.values()):
            yield name, ("search", "weights"), "the linked tables share one loss, for which no weights are defined"
    known = sum(len(section(section(section(t, "privacy"), "m_concealing"), "known")) for t in linked.values())
    if known > MOST_KNOWN:
        text = f"the linked tables call {known} columns known; at most {MOST_KNOWN} can be, over all of them"
        yield first, ("privacy", "m_concealing", "known"), text


def _roles(linked: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """A column of one name that one table hides, or generalises, and another releases: the join would show it."""
    guarded: dict[str, tuple[str, int]] = {}
    every = {name: _roles_of(table) for name, table in linked.items()}
    for name, roles in every.items():
        for column, (_, care) in roles.items():
            guarded[column] = max(guarded.get(column, ("", 0)), (name, care), key=lambda found: found[1])
    for name, roles in every.items():
        for column, (written, care) in roles.items():
            other, most = guarded[column]
            if care < most:
                yield (
                    name,
                    ("columns", written),
                    f"has another role in {other}, with which the table is linked, and is guarded more there; give it "
                    "that role here, or, if it is something else, another name in a source query",
                )


def _tops(linked: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """A column of one name that one table cuts at the top, and another shows above: the join would show it."""
    released = {
        name: {c.casefold(): (c, section(with_stacked(t), c).get("top_code")) for c in with_stacked(t) if _shown(t, c)}
        for name, t in linked.items()
    }
    least: dict[str, tuple[float, str]] = {}
    for name, columns in released.items():
        for column, (_, top) in columns.items():
            if isinstance(top, int | float) and top < least.get(column, (inf, ""))[0]:
                least[column] = (top, name)
    for name, columns in released.items():
        for column, (written, top) in columns.items():
            if column in least and top != least[column][0]:
                yield (
                    name,
                    ("columns", written, "top_code"),
                    f"is not that of {least[column][1]}, with which the table is linked, and what is cut there is "
                    "seen here; give it the same, or, if it is something else, another name in a source query",
                )


def _coarsened(linked: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """A date of one name that one table cuts to a month, and another shows finer: the join would show it."""
    units = {
        name: {c.casefold(): (c, section(with_stacked(t), c).get("to")) for c in with_stacked(t) if _shown(t, c)}
        for name, t in linked.items()
    }
    coarsest: dict[str, tuple[int, str]] = {}
    for name, columns in units.items():
        for column, (_, to) in columns.items():
            coarsest[column] = max(coarsest.get(column, (0, "")), (_COARSE.get(str(to), 0), name), key=lambda f: f[0])
    for name, columns in units.items():
        for column, (written, to) in columns.items():
            if _COARSE.get(str(to), 0) < coarsest[column][0]:
                yield (
                    name,
                    ("columns", written, "to"),
                    f"is finer than in {coarsest[column][1]}, with which the table is linked, and what is cut there is "
                    "seen here; give it the same, or, if it is something else, another name in a source query",
                )


_COARSE = {"day": 1, "week": 2, "month": 3}


def _shown(table: Mapping[str, object], column: str) -> bool:
    return section(with_stacked(table), column).get("role") in ("insensitive", "sensitive", "quasi-identifying")


def _roles_of(table: Mapping[str, object]) -> dict[str, tuple[str, int]]:
    """Column → its name as written, and how much it is guarded by its role."""
    columns = with_stacked(table)
    return {
        name.casefold(): (name, _GUARDED[role])
        for name in columns
        if isinstance(role := section(columns, name).get("role"), str) and role in _GUARDED
    }


_GUARDED = {"insensitive": 0, "sensitive": 0, "quasi-identifying": 1, "free-text": 2, "identifying": 2}
"""How much of a column its role lets out: its values, generalised ones, none."""


def _loss(table: Mapping[str, object]) -> object:
    return section(table, "search").get("loss")


def _at(table: Mapping[str, object], keys: tuple[str, ...], default: object) -> object:
    for key in keys[:-1]:
        table = section(table, key)
    return table.get(keys[-1], default)
