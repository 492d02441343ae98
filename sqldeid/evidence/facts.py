"""Facts of the releases of a result, in words and tables: columns, criteria, risks, attacks, promises and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqldeid.evidence.blocks import Block, Fact, Grid, grid
from sqldeid.report.attacked import attack_sections
from sqldeid.report.sections import percent, told
from sqldeid.report.shape import kind_of
from sqldeid.report.words import few, not_protected, odds
from sqldeid.result import CHOICES, Tree

CLASSED = ("table", "local", "mondrian")
"""Kinds of releases that are rows in classes."""


def columns(name: str, release: Tree) -> Grid:
    """What each released column is, and what became of it."""
    rows = [(str(column), *_column(release, one)) for column, one in release.get("columns", {}).items()]
    return grid(f"Columns of {name}", ("Column", "Role or meaning", "What became of it"), rows)


def _column(release: Tree, one: Tree) -> tuple[str, str]:
    shown = str(one["shown"]) if one.get("shown") else ""
    if one.get("level") is not None:
        by = f" by {one['hierarchy']}" if one.get("hierarchy") else ""
        became = f"level {one['level']} of {one['height'] - 1} ({one['level_name']}){by}"
    elif one.get("level_names"):
        became = f"levels by class, of {', '.join(map(str, one['level_names']))}"
    elif kind_of(release) == "mondrian" and one.get("role") == "quasi-identifying":
        became = "cut into ranges"
    else:
        became = "" if kind_of(release) in (*CLASSED, "child") else "made common, or drawn anew"
    became = "; ".join(part for part in (became, shown) if part) or "as in the source"
    return str(one.get("role") or one.get("meaning") or "–"), became


def roles(release: Tree, role: str) -> list[str]:
    """The released columns of a role."""
    return [str(name) for name, one in release.get("columns", {}).items() if one.get("role") == role]


def criteria(name: str, release: Tree) -> Iterator[Block]:
    """What was asked, what was achieved, what that promises and what it does not."""
    found = release.get("criteria") or ()
    rows = [
        (
            f"{c['name']}{' of ' + str(c['column']) if c.get('column') else ''}",
            told(c["asked"]),
            told(c.get("achieved")),
            str(c.get("guarantee", "–")),
            not_protected(c["name"]),
        )
        for c in found
    ]
    if kind_of(release) == "mondrian":
        rows = [("k-anonymity", told(release["asked"]), told(release["k"]), "–", not_protected("k-anonymity")), *rows]
    if rows:
        headings = ("Criterion", "Asked", "Achieved", "What it promises", "What it does not protect")
        yield grid(f"Criteria of {name}, counted again in what was written", headings, rows)
    yield from promises(release)


def promises(release: Tree) -> Iterator[Fact]:
    """Promises and limits in words, of releases that have them."""
    guarantee = release.get("guarantee")
    text = guarantee.get("text") if isinstance(guarantee, Mapping) else guarantee
    if text:
        yield Fact(f"Promised: {text}")
    if isinstance(guarantee, Mapping) and "differentially_private" in guarantee:
        private = "is" if guarantee["differentially_private"] else "is not"
        yield Fact(f"Method {guarantee['method']}: it {private} differential privacy; protected: {guarantee['unit']}.")
    if kind_of(release) == "series":
        asked = release["asked"]
        yield Fact(
            f"Asked: {asked['durations']} persons of each length, {asked['k']} of each class of features; smallest "
            f"class released: {release['k']}. Method: {release['method']}."
        )
    if kind_of(release) == "child":
        fewest = "none" if release["fewest"] is None else f"{release['fewest']:,}"
        yield Fact(
            f"Asked: {release['k']} persons of a class for whoever knows {release['known']} of a person's items; "
            f"fewest that were counted: {fewest}."
        )
    if release.get("limits"):
        yield Fact(f"Not promised: {release['limits']}")
    if release.get("pseudonymised"):
        yield Fact(f"Pseudonymised, not anonymous: {', '.join(map(str, release['pseudonymised']))} hold pseudonyms.")
    if kind_of(release) == "table" and len(release.get("criteria") or ()) > 1:
        yield Fact(CHOICES[release["search"].get("choose", "by-all")])


def counts(name: str, release: Tree) -> Fact:
    """How much is in it."""
    match kind_of(release):
        case "series":
            return Fact(f"{name}: {release['released']:,} persons, {release['records']:,} records.")
        case "events":
            return Fact(
                f"{name}: {release['objects']:,} objects and {release['events']:,} events, all made by the model."
            )
        case "child":
            return Fact(
                f"{name}: {release['released']:,} of {release['pairs']:,} pairs of person and item, in "
                f"{release['rows']:,} rows; {few(release['suppressed'])} pairs suppressed."
            )
        case _:
            gone = f"{few(release['suppressed'])} rows suppressed"
            return Fact(f"{name}: {release['released']:,} rows in {release['classes']:,} classes; {gone}.")


def risks(name: str, release: Tree) -> Iterator[Block]:
    """Risks that follow from sizes of classes."""
    found = release.get("risk")
    if not isinstance(found, Mapping):
        yield Fact(f"{name}: no risk by sizes of classes is reckoned for this kind of release.")
        return
    lines = (
        ("Greatest risk of a person known to be in it", "prosecutor", odds),
        ("Greatest risk of a person not known to be in it", "journalist", odds),
        ("Expected share that a match of all finds", "marketer", percent),
    )
    rows = [(text, say(found["source"][key]), say(found["release"][key])) for text, key, say in lines]
    yield grid(f"Re-identification risk of {name}, by sizes of classes", ("Risk", "Source", "Release"), rows)
    if found["release"].get("journalist_is_prosecutor", True):
        yield Fact("No population was given: who is not known to be in it is taken to be at the same risk as who is.")
    if any("by weights" in str(c.get("name")) for c in release.get("criteria") or ()):
        yield Fact("The risk of who is not known to be in it is by the sum of a survey's weights: an estimate.")


def attacks(name: str, release: Tree) -> Iterator[Block]:
    """What attackers achieved on what was written."""
    if kind_of(release) in CLASSED:
        sections = attack_sections(release)
        for section in sections:
            for one in section.grids:
                yield grid(f"Attacks on {name}", one.headings, one.rows)
            yield from (Fact(words) for words in section.words)
        if not sections:
            yield Fact(f"{name} was not attacked: the job leaves the attacks out.")
        return
    rows = list(_figures(release.get("attacks") or {}))
    if rows:
        yield grid(f"Attacks on {name}", ("Figure", "Value"), rows)
    else:
        yield Fact(f"{name} was not attacked, or no attack could be measured.")


def _figures(found: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Figures of attacks by their places."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            yield from _figures(value, f"{at}, {key}" if at else str(key))
    elif not isinstance(found, (list, tuple)):
        yield at, told(found)


def searched(name: str, release: Tree) -> Fact:
    """How it was found, and whether that is proven."""
    match kind_of(release):
        case "table":
            search = release["search"]
            proven = "the least possible, proven" if search["optimal"] else f"within {search['gap']:.4g} of the least"
            if not search.get("lattice_size"):
                proven = "drawn, not searched"
            return Fact(
                f"{name}: method {search['method']}, loss {search['loss']} ({proven}); {search['checks']:,} of "
                f"{search['lattice_size']:,} nodes checked. Lost: {release['loss'].get(search['loss'], 0):.6g}."
            )
        case "local":
            return Fact(
                f"{name}: method local; at least {release['bound']:.6g} must be lost, {release['gap']:.6g} more is."
            )
        case "mondrian":
            return Fact(f"{name}: method mondrian ({release['heuristic']}); it is no search for the least loss.")
        case "child":
            least = "the least possible of this kind, proven" if release["optimal"] else "not proven to be the least"
            return Fact(f"{name}: one cut of the items' hierarchy. Lost: {release['loss']:.6g} ({least}).")
        case "series":
            return Fact(f"{name}: {release['distortion']:.4g} distortion per record.")
        case _:
            found = [f"{key} {told(value)}" for key, value in (release.get("evaluation") or {}).items()]
            return Fact(f"{name}: {'; '.join(found) or 'usefulness was not measured'}.")
