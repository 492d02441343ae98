"""What a report tells of a child table: the items of each person, and what whoever knows some of them finds."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.report.codebook import coded_sections
from sqldeid.report.sections import Grid, Section, grid, percent, told
from sqldeid.report.text import share
from sqldeid.result import Tree

SHOWN = 5e-5
"""A bound below it would be shown as 0 %, and says nothing."""


def child_sections(release: Tree) -> list[Section]:
    """The sections of one release for the data holder."""
    return [
        Section("In short", answers=tuple(_short(release))),
        Section("What protects the people in it?", words=(str(release["guarantee"]), _limits(release))),
        Section("What was lost?", words=tuple(_lost(release)), grids=(_levels(release),)),
        Section("Columns", grids=(_columns(release),)),
    ]


def public_child(release: Tree) -> list[Section]:
    """What may be published: the promise, its limits, and the columns."""
    promises = [release["guarantee"]] if "guarantee" in release else [c["guarantee"] for c in release["criteria"]]
    return [
        Section("What protects the people in it?", words=(*map(str, promises), _limits(release), *_limit(release))),
        Section("Columns", grids=(_columns(release),)),
        *coded_sections(release["columns"], untold="this group: it and all that is below it"),
    ]


def _short(release: Tree) -> Iterator[str]:
    yield (
        "Is it safe to publish? This report cannot decide that. What was asked for is met, and was counted again on "
        f"what was written, joined with {release['parent']}: {release['guarantee']}"
    )
    yield (
        f"{told(release['persons'])} of {told(release['parents'])} persons of {release['parent']} have rows here, "
        f"{told(release['rows'])} in all; {share(release['suppressed'], release['pairs'])} of the pairs of person and "
        "item were left out."
    )
    yield "It is pseudonymised, not anonymous: whoever holds the key can tell whose the items are."


def _lost(release: Tree) -> Iterator[str]:
    loss, bound = float(release["loss"]), float(release["bound"])
    if release.get("optimal"):
        least = "of releases of this kind none loses less (proven)"
    elif bound < SHOWN:
        least = "how much less a release of this kind can lose is not known"
    else:
        least = f"a release of this kind loses {percent(bound)} at least (proven)"
    yield f"{percent(loss)} of the information in the items is lost; {least}."
    beside = [name for name, c in release["columns"].items() if c.get("role") == "sensitive"]
    if beside:
        yield f"Beside each item leave as they are: {', '.join(beside)}. No other column of the source is released."
    else:
        yield "Order, dates and number of rows, and every other column of the source, are not released."


def _levels(release: Tree) -> Grid:
    rows = [(name, percent(float(part))) for name, part in release.get("levels", {}).items()]
    return grid("Items by level", ("Level", "Pairs of person and item"), rows, (1,))


def _limit(release: Tree) -> Iterator[str]:
    """How much may be missing, which is a part of the job; how much is missing is not told."""
    limit = release.get("suppression_limit")
    if limit is not None:
        yield (
            f"At most {100 * float(limit):.4g} % of the items, each counted once for each person who has it, may be "
            "missing; how many are is not told. So that a person shows no item does not say that the person has none."
        )


def _limits(release: Tree) -> str:
    words = str(release["limits"])
    return f"{words[:1].upper()}{words[1:]}."


def _columns(release: Tree) -> Grid:
    rows = [(name, str(c.get("role", "")), str(c.get("shown", ""))) for name, c in release["columns"].items()]
    return grid("Columns", ("Column", "Role", "Shown as"), rows)
