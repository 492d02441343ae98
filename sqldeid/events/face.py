"""The face of this wing: plan, make, check again and show a job's releases of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqldeid.engine.base import Engine
from sqldeid.events.plan import EventsPlan
from sqldeid.events.plan import plan as plan_one
from sqldeid.events.release import run as run_one
from sqldeid.events.release import way_of
from sqldeid.events.verify import verify
from sqldeid.job import Job
from sqldeid.making import Checking, Making, Published
from sqldeid.publish.steps import in_dialect
from sqldeid.result import Release, Told
from sqldeid.stages import Explained, Target, explained, listed


def plan_unit(names: Sequence[str], job: Job, engine: Engine) -> EventsPlan:
    """Plan the one release that is named; no data is read."""
    return plan_one(names[0], job.events[names[0]], engine, job.folder)


def run(planned: EventsPlan, making: Making) -> list[Release]:
    """Make a release: staged and verified, not yet published."""
    return [run_one(planned, making)]


def recheck(planned: EventsPlan, there: Mapping[str, Published], checking: Checking) -> dict[str, Told]:
    """Check a published release again, against the source as it is now.

    Raises
    ------
    VerificationError
        If it is not what job, note and source say.
    """
    written, note = there[planned.name]
    return {planned.name: verify(planned, note, written, checking.engine)}


def explain(planned: EventsPlan, target: Target) -> Explained:
    """What `--plan` shows; how often statements run depends on the data."""
    return explained(planned, "events", in_dialect(listed(way_of(planned), target), target.dialect), target)


def check_promise(_: EventsPlan) -> None:
    """Nothing: what can be refused before a run was refused when it was planned."""
