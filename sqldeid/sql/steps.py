"""Name a statement of a stage by its template: what it is for stands in the template's head."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqldeid.sql.templates import head_of, source_of
from sqldeid.stages import Step

LOCAL = "duckdb"
"""The dialect in which templates are written."""


def step(template: str, times: int | None = 1, *statements: str) -> Step:
    """A statement, or a kind of statement, of a stage; as `Step`."""
    return Step(template, purpose(template), times, statements)


def as_needed(*templates: str) -> Iterator[Step]:
    """Kinds of statement that are run as often as the data ask."""
    return (step(template, None) for template in templates)


def once(*templates: str) -> Iterator[Step]:
    """Statements that are run once each."""
    return (step(template) for template in templates)


def purpose(template: str) -> str:
    """The first sentence of a template's head."""
    named = [source_of(f"{template}{engine}") for engine in (f".{LOCAL}", ".each", "", ".postgres", ".spark")]
    text = next(found for found in named if found is not None)
    head = re.sub(r"\s+", " ", head_of(text)).strip()
    return re.split(r"(?<=\.) ", head, maxsplit=1)[0]
