"""HTML pages: templates with everything escaped, one style for all, no network.

A page is one file: its style and its scripts stand in it, and its content policy forbids everything else.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from sqldeid.report.text import number, plain, share
from sqldeid.report.words import LOSS_NAMES, levels_shown

UNSHOWN = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, UndefinedError)
"""What making a page of a file may raise where the file is not what it must be, though its shape is."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        lstrip_blocks=True,  # but not trim_blocks: with a line end the space between two sentences would go
    )
    made.filters.update(number=number, plain=plain, count=lambda n: f"{n:,}", percent=lambda part: share(part, 1))
    made.filters["lossname"] = lambda name: LOSS_NAMES.get(name, plain(name))
    made.filters["levels"] = levels_shown
    made.filters["rough"] = lambda part: f"about {100 * part:.0f} %"  # exact shares of small groups give counts away
    made.filters["figure"] = lambda value: f"{value:,}" if isinstance(value, int) else number(value)
    made.filters["plain_lines"] = lambda words: plain(words, lines=True)
    made.globals["share"] = share
    return made


def render(template: str, **content: object) -> str:
    """A page from a template of `sqldeid/report/templates`; whatever is no `Markup` is escaped."""
    return _environment().get_template(template).render(**content)
