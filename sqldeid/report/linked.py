"""What a report tells of series that are linked to a table release: what the link kept, cost, and gives an attacker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqldeid.report.sections import Grid, Section, grid, people, percent, told
from sqldeid.result import Tree


class Tried(Protocol):
    """An attack with what came of it, shares 0 … 1."""

    @property
    def name(self) -> str:
        """What the attack is called."""

    @property
    def sole(self) -> float:
        """People singled out in the release."""

    @property
    def link(self) -> float:
        """Chance to name the right one."""

    @property
    def before(self) -> float | None:
        """People singled out in the originals."""


def linked_sections(release: Tree, given: Sequence[Tried]) -> list[Section]:
    """The section of a link, where there is one.

    Parameters
    ----------
    given
        The attackers who know the row in the table, too.
    """
    link = release.get("link") or {}
    if not link:
        return []
    words = (
        f"This release and the table {link['table']} number people alike (person_number), so whoever has both has one "
        "wider table. Everybody is in both or in neither. At least "
        f"{told(link['k'])} people share all that both show of a person: the row's class, the length, the common "
        "features, and which variables are missing (counted again on both, as written).",
    )
    return [
        Section("What does the link with a table cost, and give away?", words=words, grids=(_cost(link), _found(given)))
    ]


def linked_words(release: Tree) -> tuple[str, ...]:
    """What may be published of a link; of a result for the data holder, or of what may be published."""
    linked = release.get("linked") or (release.get("link") or {}).get("table")
    if not linked:
        return ()
    return (
        f"It numbers people as the table {linked} does. Everybody is in both releases or in neither, and what is "
        "promised holds for what both show together.",
    )


def _cost(link: Tree) -> Grid:
    rows = [
        ("People whom the table could release", people(link["in_table"])),
        ("People with series", people(link["in_series"])),
        ("In both", people(link["in_both"])),
        ("Released in both", people(link["released"])),
        ("Lost to the table", people(link["lost_of_table"])),
        ("Lost to the series", people(link["lost_of_series"])),
        ("Groups of people whom both show alike", told(link["combined_classes"])),
        ("The smallest of them", told(link["smallest"])),
    ]
    return grid("People in table and series", ("What", "People"), rows, (1,))


def _found(given: Iterable[Tried]) -> Grid:
    rows = [(a.name, "" if a.before is None else percent(a.before), percent(a.sole), percent(a.link)) for a in given]
    headings = ("Attacker", "Singled out in the originals", "Singled out in the release", "Chance")
    return grid("Who has a person's row in the table, and knows more", headings, rows, (1, 2, 3))
