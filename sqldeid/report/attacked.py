"""What attackers achieve on a table release, in words that a board understands, and the types of what is read of it.

A group of fewer than `FEW` rows is told as that, and shares as the few digits that their number of rows bears out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from sqldeid.report.attacked_shares import (
    CompositionTold,
    DisclosureTold,
    GroupsTold,
    InferredTold,
    LinkedTold,
    MinimalityTold,
    OrderTold,
    ShareTold,
    SingledTold,
    composed,
    disclosed,
    estimated,
    hit,
    inferred,
    linked,
    minimal,
    ordered,
    singled,
)
from sqldeid.report.sections import Section, grid
from sqldeid.report.shape_parts import Count, Part
from sqldeid.result import Tree

TITLE = "What do attackers achieve?"

WHAT = (
    "The program attacked the release as its readers could. A figure says what an attacker achieves, not what the "
    "release promises; it is for the data holder, and no part of it goes with the release."
)

NAMES = {
    "downcoding": "Undoing levels (downcoding)",
    "singling_out": "Singling out",
    "linkability": "Linking",
    "inference": "Inferring values",
    "disclosure": "Values that classes tell",
    "minimality": "Values that the levels tell",
    "composition": "Two releases together",
    "order": "Order of rows",
    "groups": "Who is hit",
}
"""What each attack is called on the page."""


class BitsTold(Part):
    """Bits with their interval; `high` is None where nothing bounds them."""

    value: Annotated[float, Field(ge=0, le=1e9)]
    low: Annotated[float, Field(ge=0, le=1e9)]
    high: Annotated[float, Field(ge=0, le=1e9)] | None
    of: Count
    exact: bool


class DowncodingTold(Part):
    """What `sqldeid.attacked.Downcoding` writes."""

    rows: ShareTold
    cells: ShareTold
    present: ShareTold
    bits: BitsTold


class LeftOutTold(Part):
    """An attack that was not made, at all or on one column; of two releases together, on that other one."""

    attack: str
    reason: str
    column: str = ""


class AttacksTold(Part):
    """What `sqldeid.attacked.Attacks` writes."""

    left_out: Sequence[LeftOutTold] = ()
    downcoding: DowncodingTold | None = None
    singling_out: SingledTold | None = None
    linkability: LinkedTold | None = None
    inference: InferredTold | None = None
    disclosure: DisclosureTold | None = None
    minimality: MinimalityTold | None = None
    composition: CompositionTold | None = None
    order: OrderTold | None = None
    groups: GroupsTold | None = None


def attack_sections(release: Tree) -> list[Section]:
    """The section of a release's attacks; none where the job asked for none."""
    attacks = release.get("attacks")
    if attacks is None:
        return []
    rows = [(NAMES[name], *told) for name, tell in _TOLD.items() if attacks.get(name) for told in tell(attacks[name])]
    words = [WHAT, *_left_out(attacks.get("left_out", ()))]
    grids = (grid("Attacks", ("Attack", "What it finds", "How often"), rows, (2,)),) if rows else ()
    return [Section(TITLE, words=tuple(words), grids=grids)]


def _bits(found: Tree) -> str:
    if found["exact"]:
        return f"{found['value']:.2g} bits a row"
    high = "more" if found["high"] is None else f"{found['high']:.2g}"
    return f"{found['value']:.2g} bits a row ({found['low']:.2g} to {high})"


def _downcoding(found: Tree) -> Iterator[tuple[str, str]]:
    yield (
        "Rows in a group of which it is certain how many have each finer value, to who knows how levels are chosen",
        estimated(found["rows"]),
    )
    yield "Coarse values in whose group every next finer value is certain to be there", estimated(found["present"])
    yield "What knowing the algorithm adds for each row, in the mean", _bits(found["bits"])


_TOLD: Mapping[str, Callable[[Tree], Iterator[tuple[str, str]]]] = {
    "downcoding": _downcoding,
    "singling_out": singled,
    "linkability": linked,
    "inference": inferred,
    "disclosure": disclosed,
    "minimality": minimal,
    "composition": composed,
    "order": ordered,
    "groups": hit,
}
"""By attack: what it finds, and how often."""


def _left_out(found: Sequence[Tree]) -> Iterator[str]:
    """Which attacks were not made, reason by reason."""
    for reason in dict.fromkeys(one["reason"] for one in found):
        names = ", ".join(_of(one) for one in found if one["reason"] == reason)
        yield f"Not attacked: {names}: {reason}."


def _of(left_out: Tree) -> str:
    """An attack that was not made, with the column if it was made on others."""
    name = NAMES.get(left_out["attack"], "another attack")
    of = "with" if left_out["attack"] == "composition" else "of"
    return f"{name} {of} {left_out['column']}" if left_out.get("column") else name
