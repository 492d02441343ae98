"""What a job says of its releases to whoever receives them: title, contact, date and a few sentences."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from sqldeid.job.fields import Section

Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$", max_length=400)]
"""One line of text."""


def _iso(value: object) -> object:
    """A date of TOML as it is written."""
    return value.isoformat() if isinstance(value, date) else value


Day = Annotated[str, BeforeValidator(_iso), StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
"""A day as 2026-01-31; TOML's own dates are taken, too."""


class About(Section):
    """What the public page says first. It is published as it stands: nothing of the source belongs here."""

    title: Line | None = Field(default=None, description="What the releases are called, on the public page and report.")
    contact: Line | None = Field(default=None, description="Whom recipients may ask: a name, an address, a URL.")
    date: Day | None = Field(default=None, description="The day of the release, as 2026-01-31.")
    text: Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=10_000)] | None = Field(
        default=None, description="What recipients should know: where the data comes from, terms of use. Plain text."
    )
