"""What a report tells of a table release by Mondrian: classes instead of a lattice, and what its cuts tell."""

from __future__ import annotations

from collections.abc import Iterable

from sqldeid.report.attacked import attack_sections
from sqldeid.report.sections import Grid, Section, grid, percent, told
from sqldeid.report.words import in_short, known_of, not_protected
from sqldeid.result import Tree


def parted_sections(release: Tree) -> list[Section]:
    """The sections of one release for the data holder."""
    return [
        Section("In short", answers=tuple(_short(release))),
        Section("What protects the people in it?", words=(_limits(release),), grids=(_criteria(release),)),
        Section("What was lost?", words=(_LOST,), grids=(_columns(release),)),
        *attack_sections(release),
    ]


def public_parted(release: Tree) -> list[Section]:
    """What may be published: criteria, columns and limits."""
    return [
        Section("What protects the people in it?", words=(_limits(release),), grids=(_criteria(release, public=True),)),
        Section("Columns", grids=(_columns(release),)),
    ]


_LOST = (
    "No loss is computed for classes that are cut at medians: their ranges differ from class to class, so that no "
    "level says what became of a column."
)


def _short(release: Tree) -> Iterable[str]:
    yield from in_short(release["k"], 1 / release["k"] if release["k"] else 0.0, _unit(release))
    rows, share = release["rows"], release["released"] / release["rows"] if release["rows"] else 0.0
    classes = told(release["classes"])
    yield f"{told(release['released'])} of {told(rows)} rows ({percent(share)}) are in it, in {classes} classes."


def _unit(release: Tree) -> str:
    """What k counts; results of earlier versions do not say it."""
    return str(release.get("unit", "person"))


def _limits(release: Tree) -> str:
    words = str(release["limits"])
    return f"{words[:1].upper()}{words[1:]}."


def _criteria(release: Tree, *, public: bool = False) -> Grid:
    rows: list[tuple[str, ...]] = []
    if "asked" in release:  # a result for the data holder, where k stands apart
        asked = release["asked"]
        k = {"name": "k-anonymity", "column": None, "asked": asked, "achieved": release.get("k")}
        promise = f"Whoever knows {known_of(_unit(release))} finds at least {asked} rows that fit, or none."
        rows.append(_row({**k, "guarantee": promise}, public=public))
    rows += [_row(c, public=public) for c in release.get("criteria", ())]
    achieved = () if public else ("Achieved", "What it promises")
    headings = ("Criterion", "Asked", *achieved, "What it does not protect")
    return grid("Criteria", headings, rows, (1,) if public else (1, 2))


def _row(c: Tree, *, public: bool) -> tuple[str, ...]:
    named = f"{c['name']} of {c['column']}" if c.get("column") else str(c["name"])
    achieved = () if public else (told(c["achieved"]), str(c["guarantee"]))
    return (named, told(c["asked"]), *achieved, not_protected(str(c["name"])))


def _columns(release: Tree) -> Grid:
    rows = [
        (name, str(c.get("role", "")), f"{c['median']} of a class" if c.get("median") else "as in the source")
        for name, c in release["columns"].items()
    ]
    return grid("Columns", ("Column", "Role", "Shown as"), rows)
