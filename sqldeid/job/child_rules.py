"""Rules of child tables, of many rows per person: what they say themselves, and what their parent must be. Pure.

They yield (keys, text) rather than problems, so that `sqldeid.job.rules` can take them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqldeid.job.sections import Found, section

OWN = frozenset({"source", "person", "where", "parent", "items", "known", "columns", "privacy"})
"""Keys that a child table may have; whatever else is asked of a table is not done for it, and refused."""

ASKED = frozenset({"k", "suppression_limit", "suppression"})
"""What may be asked of a child, or of the parent of one: classes that criteria beyond k were judged in are smaller for
whoever knows items besides, and nothing holds for these parts."""

METHODS = ("frontier", "best-first", "flash", "ola", "datafly", "igreedy")
"""Searches that give a parent classes of a k that is known beforehand."""


def child_problems(table: Mapping[str, object]) -> Iterator[Found]:
    """What a child table says; `items` and `known` go with `parent` alone."""
    if table.get("parent") is None:
        for key in ("items", "known"):
            if table.get(key) is not None:
                yield (key,), "goes with parent, for child tables alone; remove it, or name the parent"
        return
    for key in table:
        if key not in OWN and table[key] is not None:
            yield (key,), "does not go with parent: a child table has its parent's classes, and items alone; remove it"
    for key in ("items", "known"):
        if table.get(key) is None:
            yield (key,), f"missing; a child table says {_SAYS[key]}"
    if table.get("person") is None:
        yield ("person",), "missing; name the column that holds the parent's persons"
    yield from _privacy(section(table, "privacy"))
    yield from _columns(table)


_SAYS = {
    "items": "which column holds the items that others may know",
    "known": "how many of a person's items others may know",
}


def _privacy(privacy: Mapping[str, object]) -> Iterator[Found]:
    for key in privacy:
        if key not in ASKED and privacy[key] is not None:
            yield ("privacy", key), "does not go with parent: only k is counted for sets of items; remove it"
    if privacy.get("suppression") == "blank":
        yield ("privacy", "suppression"), 'does not go with parent: items are shown or left out; write "drop"'


def _columns(table: Mapping[str, object]) -> Iterator[Found]:
    """The items leave, and what nobody is said to know of them."""
    columns, items = section(table, "columns"), table.get("items")
    if isinstance(items, str) and items not in columns:
        yield ("items",), "must name a column of this table, with a hierarchy"
    for name in columns:
        one = section(columns, name)
        role = one.get("role")
        if name == items:
            if role not in (None, "quasi-identifying"):
                yield ("columns", name, "role"), 'holds the items, which others may know: "quasi-identifying"'
            rule = section(one, "hierarchy")
            for key in ("aggregate", "median"):
                if rule.get(key) is not None:
                    yield (
                        ("columns", name, "hierarchy", key),
                        "is no hierarchy of labels, and items have one; take another",
                    )
            if one.get("top_code") is not None:
                yield ("columns", name, "top_code"), "is of numbers, and items are codes; remove it"
        elif role == "sensitive":
            yield from (
                (("columns", name, key), "does not go with a sensitive column of a child table, which leaves as it is")
                for key in one
                if key != "role" and one[key] is not None
            )
        elif role not in ("identifying", "free-text") or one.get("pseudonym") is not None:
            yield (
                ("columns", name),
                "is not the column of items, and others of a child table are released as sensitive alone: order, dates "
                'and further values of a row could be known as well; remove it, or write role = "sensitive", where '
                "nobody knows it of a person",
            )


def parent_problems(job: Mapping[str, object]) -> Iterator[Found]:
    """A child's parent is one table of the job with pseudonyms and classes of k, and asks for nothing further."""
    tables, seen = section(job, "tables"), dict[str, str]()
    for name in tables:
        child = section(tables, name)
        parent = child.get("parent")
        if not isinstance(parent, str):
            continue
        where = ("tables", name, "parent")
        if parent == name or parent not in tables:
            there = ", ".join(str(n) for n in tables if n != name) or "none"
            yield where, f"names no other table release of this job; there: {there}"
            continue
        yield from _beside(name, seen.setdefault(parent, name), tables)
        yield from ((("tables", parent, *keys), text) for keys, text in _parent(section(tables, parent)))
        yield from _classes(name, parent, child, section(tables, parent))
    children = {n for n in tables if section(tables, n).get("parent") is not None}
    parents = {str(section(tables, n).get("parent")) for n in children}
    for name in section(job, "series"):
        if section(section(job, "series"), name).get("link") in children | parents:
            yield (
                ("series", name, "link"),
                "names a child table, or the parent of one; who knows items besides would find fewer persons of a "
                "series' class: release them without link",
            )
    for name in tables:
        link = section(tables, name).get("link")
        if link in children:
            yield ("tables", name, "link"), "names a child table, which has many rows of a person; link another one"
        elif link in parents:
            yield (
                ("tables", name, "link"),
                "names a table that has a child table, and the classes of linked tables are those of their join; "
                "remove one of both",
            )


def _beside(name: str, first: str, tables: Mapping[str, object]) -> Iterator[Found]:
    """Child tables of one parent share one promise: whoever knows items of several of them counts them together."""
    child, other = section(tables, name), section(tables, first)
    same = "child tables of one parent share one promise, of items of all of them together"
    if child.get("known") != other.get("known"):
        yield ("tables", name, "known"), f"must be that of tables.{first}, {other.get('known')!r}: {same}"
    mine, theirs = section(child, "privacy").get("k"), section(other, "privacy").get("k")
    if mine != theirs:
        yield ("tables", name, "privacy", "k"), f"must be that of tables.{first}, {theirs!r}: {same}"


def _classes(name: str, parent: str, child: Mapping[str, object], table: Mapping[str, object]) -> Iterator[Found]:
    """The classes are the parent's: the child asks for no greater k."""
    k, classes = section(child, "privacy").get("k"), section(table, "privacy").get("k")
    if type(k) is int and type(classes) is int and k > classes:
        yield (
            ("tables", name, "privacy", "k"),
            f"is above that of tables.{parent}, whose classes may have fewer persons; lower it, or raise that one",
        )


def _parent(table: Mapping[str, object]) -> Iterator[Found]:
    """What the parent of a child table must be."""
    for key in ("parent", "link", "sample", "stack"):
        if table.get(key):
            yield (key,), f"does not go with a child table of this one, {_WHY[key]}; remove one of both"
    yield from _keyed(table)
    if table.get("rows") == "many":
        yield ("rows",), 'must be "one": a child table is joined by a pseudonym that stands for one row'
    if table.get("view") == "computed":
        yield ("view",), 'must be "snapshot": a child table is counted in classes that stay'
    yield from _search(section(table, "search"))
    for name in section(table, "columns"):
        if section(section(section(table, "columns"), name), "hierarchy").get("aggregate") is not None:
            yield (
                ("columns", name, "hierarchy"),
                "does not go with a child table of this one: no class shows a statistic",
            )
    yield from _parent_privacy(section(table, "privacy"))


def _keyed(table: Mapping[str, object]) -> Iterator[Found]:
    """The parent's persons are there as pseudonyms."""
    person = table.get("person")
    if not isinstance(person, str):
        yield ("person",), "missing; a child table is joined by the person's pseudonym"
    elif not any(
        name.casefold() == person.casefold() and section(section(table, "columns"), name).get("pseudonym") is True
        for name in section(table, "columns")
    ):
        yield (
            ("columns", person),
            'must leave as a pseudonym (role = "identifying", pseudonym = true), by which a child table is joined',
        )


def _parent_privacy(privacy: Mapping[str, object]) -> Iterator[Found]:
    for key in privacy:
        if key not in ASKED and privacy[key] is not None:
            yield (
                ("privacy", key),
                "does not go with a child table of this one: who knows items besides looks at a part of a class, for "
                "which it was not judged; remove it",
            )
    if privacy.get("suppression") == "blank":
        yield ("privacy", "suppression"), 'must be "drop": blanked rows are a class that was not judged'


def _search(search: Mapping[str, object]) -> Iterator[Found]:
    method = search.get("method", METHODS[0])
    if isinstance(method, str) and method not in METHODS:
        yield ("search", "method"), f"must be one of {', '.join(METHODS)} where a table has a child table"


_WHY = {
    "parent": "for it would be a child itself, without classes",
    "link": "for the classes of linked tables are those of their join",
    "sample": "for rows of persons outside the sample would have to be told apart",
    "stack": "for what is stacked of a person's rows may be the items that are known",
}
