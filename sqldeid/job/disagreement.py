"""`disagreement` of a release of series in a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from sqldeid.job.parts import Section, Whole
from sqldeid.job.rules import Problem


class Disagreeing(Section):
    """Disagreement before and after (Mazzone 2020, §3.3), for the data holder's report alone."""

    distance: Literal["euclidean", "dtw"] = Field(default="euclidean", description="Between series; dtw: warped, dear.")
    band: Whole | None = Field(default=None, description="With dtw: steps that an alignment may stray (3).")
    persons: Whole | None = Field(
        default=None, description="Persons of each length whose disagreement is measured: all; with dtw 50."
    )


def disagreement_problems(asked: Mapping[str, object]) -> Iterator[Problem]:
    """A band is that of alignments."""
    if asked.get("band") is not None and asked.get("distance") != "dtw":
        yield Problem(("disagreement", "band"), 'goes with distance = "dtw" alone; remove it')
