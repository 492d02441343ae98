"""What a text of evidence is made of, and how it is written: as Markdown, and for the page of the report's look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqldeid.report.text import plain

OPEN = "To be answered by you"
"""The mark of what the program cannot know."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 2 is a framework, level 3 one of its questions."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What was counted or stated."""

    text: str


@dataclass(frozen=True, slots=True)
class Open:
    """What only a person can answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text; the first column names its row."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Fact | Open | Grid


def grid(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """A table."""
    return Grid(caption, tuple(headings), tuple(tuple(row) for row in rows))


def open_in(blocks: Iterable[Block]) -> int:
    """How much is left open."""
    return sum(isinstance(block, Open) for block in blocks)


def markdown(title: str, head: Sequence[str], blocks: Iterable[Block]) -> str:
    """The text as Markdown; no name can be markup."""
    lines = [f"# {_md(title)}", "", *(line for text in head for line in (f"> {_md(text)}", ">"))][:-1]
    for block in blocks:
        lines += ["", *_lines(block)]
    return "\n".join(lines) + "\n"


def _lines(block: Block) -> list[str]:
    match block:
        case Heading(level, text):
            return [f"{'#' * level} {_md(text)}"]
        case Fact(text):
            return [_md(text)]
        case Open(text):
            return [f"**{OPEN}:** {_md(text)}"]
        case Grid(caption, headings, rows):
            table = [_row(headings), _row(["---"] * len(headings), raw=True), *map(_row, rows)]
            return [f"{_md(caption)}:", "", *table]


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return f"| {' | '.join(cells if raw else map(_md, cells))} |"


def _md(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", plain(text))
