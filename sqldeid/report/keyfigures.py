"""What stands first on a page: the contents, and the few figures of each release that everybody asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqldeid.report.codebook import blanked
from sqldeid.report.sections import people, percent, told
from sqldeid.report.text import share
from sqldeid.report.words import odds
from sqldeid.result import Tree


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the contents: where it leads, and what stands there."""

    id: str
    title: str
    parts: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure, with what it means in a few words."""

    name: str
    value: str
    note: str = ""


def key_figures(release: Tree, of_job: int = 0) -> tuple[Figure, ...]:
    """The figures of a release by its kind; of what a result does not tell, none is made up.

    Parameters
    ----------
    of_job
        How many warnings there are about the job, which are about each of its releases.
    """
    found = {"table": _table, "series": _series, "events": _events, "child": _child}.get(str(release.get("kind")))
    figures = tuple(found(release)) if found is not None else ()
    warnings = len(release.get("warnings") or ()) + of_job
    among = f", {of_job:,} about the job" if of_job else ""
    return (*figures, Figure("Warnings", f"{warnings:,}", f"read them first{among}" if warnings else "none"))


def _table(release: Tree) -> Iterator[Figure]:
    rows, released = int(release["rows"]), int(release["released"])
    yield Figure("Smallest class", f"{release['k']:,}", "that look alike in what others may know")
    blanks = blanked(release)
    among = ", blanked ones among them" if blanks else ""
    yield Figure("Released", f"{released:,}", f"of {rows:,} rows ({share(released, rows)}){among}")
    if "suppressed" in release:
        name = "Blanked" if blanks else "Left out"
        yield Figure(name, share(release["suppressed"], rows), f"{release['suppressed']:,} rows")
    if (left := (release.get("risk") or {}).get("release")) is not None:
        source = release["risk"]["source"]
        yield Figure("Worst risk", odds(left["prosecutor"]), f"in the source: {odds(source['prosecutor'])}")
    if "loss" in (release.get("loss") or {}):
        yield Figure("Information lost", percent(release["loss"]["loss"]), "0 % none, 100 % all")


def _child(release: Tree) -> Iterator[Figure]:
    fewest = "–" if release["fewest"] is None else told(release["fewest"])
    yield Figure("Fewest who fit", fewest, f"of a class, who knows {told(release['known'])} items")
    yield Figure("Released", told(release["released"]), f"of {told(release['pairs'])} pairs of person and item")
    yield Figure("Left out", share(release["suppressed"], release["pairs"]), f"{told(release['suppressed'])} pairs")
    yield Figure("Information lost", percent(release["loss"]), "0 % none, 100 % all")


def _series(release: Tree) -> Iterator[Figure]:
    durations = release.get("durations") or {}
    if release.get("k") is not None:
        yield Figure("Smallest feature class", told(release["k"]), "people who share their features")
    if durations.get("k") is not None:
        yield Figure("Smallest length class", told(durations["k"]), "people of one length")
    if release.get("released") is not None:
        yield Figure("Released", people(release["released"]), f"of {people(release.get('persons'))} people")


def _events(release: Tree) -> Iterator[Figure]:
    promise, figures = release.get("guarantee") or {}, release.get("evaluation") or {}
    private = bool(promise.get("differentially_private"))
    yield Figure("Proven promise", "yes" if private else "no", f"method {promise.get('method', '–')}")
    if private and promise.get("epsilon") is not None:
        yield Figure("Epsilon", told(promise["epsilon"]), "the smaller, the stronger")
    yield Figure("Sequences made", told(release.get("objects")), f"{told(release.get('events'))} events")
    if "cover" in figures:
        yield Figure("Cover", f"{figures['cover']:.2f}", "1 is best")
