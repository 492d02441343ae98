"""Make text safe on any terminal: no control characters, no markup, nothing lost in a narrow window."""

from __future__ import annotations

import sys
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

NARROW = 40
"""Columns below which tables are set as if there were that many: they are then wrapped by the terminal."""


def console(stream: IO[str]) -> Console:
    """A console that takes text as it is: no markup, no emoji codes, no guessed highlights.

    Colour only on a terminal, and not where NO_COLOR is set.
    """
    made = _Console(file=stream, markup=False, emoji=False, highlight=False)
    if made.width >= NARROW:
        return made
    return _Console(file=stream, markup=False, emoji=False, highlight=False, width=NARROW)


class _Console(Console):
    """One that does not end the program, as `rich` does, where what reads it has left."""

    def on_broken_pipe(self) -> None:
        """Tell of standard output, whose end the command knows what to do about; be silent on standard error."""
        self.quiet = True
        if self.file is not sys.stderr:
            raise BrokenPipeError


def plain(text: object, *, lines: bool = False) -> str:
    """A name or message with control characters written out, so that none reaches the terminal.

    Parameters
    ----------
    lines
        Whether line ends stay.
    """
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escaped(c) for c in str(text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cell(text: object, style: str = "") -> Text:
    """A table cell."""
    return Text(plain(text), style=style, overflow="fold")


def table(*headings: str, right: tuple[int, ...] = ()) -> Table:
    """A table without lines; print it by `print_table`.

    Parameters
    ----------
    right
        Positions of the columns that are set flush right.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(headings), header_style="dim")
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="right" if i in right else "left", overflow="fold")
    return made


def put(to: Console, *parts: str | Text, style: str = "") -> None:
    """Print a paragraph, wrapped between words; no line ends in spaces."""
    _put(to, Text.assemble(*parts, style=style, overflow="fold"), 0)


def print_table(made: Table, to: Console) -> None:
    """Print a table, set in by two columns, after an empty line; no line ends in spaces."""
    to.print()
    _put(to, made, 2)


def _put(to: Console, what: Text | Table, indent: int) -> None:
    for line in to.render_lines(what, to.options.update_width(to.width - indent), pad=False):
        text = Text(" " * indent)
        for segment in line:
            text.append(segment.text, segment.style)
        text.rstrip()
        to.print(text, soft_wrap=True)


def facts(rows: list[tuple[str, object]]) -> Table:
    """Pairs of name and value, one a line."""
    made = table("", "")
    for name, value in rows:
        made.add_row(Text(name, style="dim"), value if isinstance(value, Text) else cell(value))
    return made


def share(part: float, whole: float) -> str:
    """A share in per cent, for people; `0` of nothing."""
    return f"{100 * part / whole:.2f} %" if whole else "0 %"


def number(value: float) -> str:
    """A loss or risk to six digits."""
    return f"{value:.6g}"


def count(n: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2 rows`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
