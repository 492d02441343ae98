"""Find the wing of a release by its section of the job; every wing has the same face.

section     face                    part of the job
tables      sqldeid.tables.release.release  `job.tables[name]`
series      sqldeid.series.release  `job.series[name]`
events      sqldeid.events.release  `job.events[name]`
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.job.rules import SECTIONS
from sqldeid.publish import Staging
from sqldeid.result import Release, Told
from sqldeid.tables.release.release import Listener


class Plan(Told, Protocol):
    """What a release will do, from the job and the catalogue alone; its facts are what `--plan` prints."""

    @property
    def name(self) -> str:
        """The release's name."""

    @property
    def key(self) -> str:
        """Where the job asks for it: ``series.vitals``."""

    def to_dict(self) -> dict[str, object]:
        """The plan for JSON."""


class Face(Protocol):
    """The module that a wing shows."""

    def plan(self, name: str, part: Any, engine: Engine, folder: Path) -> Plan:
        """Plan a release; no input but the catalogue, no output."""

    def run(self, plan: Any, engine: Engine, staging: Staging, job_sha256: str, listener: Listener) -> Release:
        """Make a release: staged and verified, not yet published; it is `Told`, too."""

    def recheck(self, plan: Any, note: Mapping[str, object], written: exp.Expr, engine: Engine) -> Told:
        """Check a published release again; VerificationError if it is not what it must be."""


_FACES = {
    "tables": "sqldeid.tables.mondrian.release",  # of method = "mondrian"; others: `run.orchestrator`
    "series": "sqldeid.series.release",
    "events": "sqldeid.events.release",
}


def face(section: str) -> Face:
    """The wing of a section of the job other than `tables`; loaded when first asked for."""
    return cast(Face, import_module(_FACES[section]))


def part_of(job: Job, name: str) -> tuple[str, Any]:
    """The section that holds a release, and what it says there."""
    for section in SECTIONS:
        parts = getattr(job, section, {})
        if name in parts:
            return section, parts[name]
    raise JobError(f"{job.name}: there is no release {name}; it has {', '.join(names_of(job))}", key="only")


def names_of(job: Job) -> list[str]:
    """All releases of a job in the order in which they are made: tables first, for a series may follow one."""
    return [name for section in SECTIONS for name in getattr(job, section, {})]
