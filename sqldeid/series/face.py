"""The face of this wing: plan, make, check again and show a job's releases of series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqldeid.engine.base import Engine
from sqldeid.job import Job
from sqldeid.making import Checking, Making, Published
from sqldeid.publish import LEDGER_MARK
from sqldeid.publish.steps import in_dialect
from sqldeid.result import Release, Told
from sqldeid.series.ledger import audit
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.planning import plan as plan_one
from sqldeid.series.recheck import recheck as recheck_one
from sqldeid.series.release import run as run_one
from sqldeid.series.release import way_of
from sqldeid.stages import Explained, Target, explained, listed


def plan_unit(names: Sequence[str], job: Job, engine: Engine) -> SeriesPlan:
    """Plan the one release that is named; no data is read."""
    return plan_one(names[0], job.series[names[0]], engine, job.folder)


def run(planned: SeriesPlan, making: Making) -> list[Release]:
    """Make a release: staged and verified, not yet published."""
    return [run_one(planned, making)]


def recheck(planned: SeriesPlan, there: Mapping[str, Published], checking: Checking) -> dict[str, Told]:
    """Check a published release again, against the source as it is now.

    Raises
    ------
    VerificationError
        If it is not what job, note and source say.
    """
    written, note = there[planned.name]
    with checking.ledger(note) as found:
        audited = None if found is None else audit(found[0].book, planned, found[1], note.get(LEDGER_MARK))
        return {planned.name: recheck_one(planned, note, written, checking.engine, audited)}


def explain(planned: SeriesPlan, target: Target) -> Explained:
    """What `--plan` shows; how often statements run depends on the data."""
    return explained(planned, "series", in_dialect(listed(way_of(planned), target), target.dialect), target)


def check_promise(_: SeriesPlan) -> None:
    """Nothing: what can be refused before a run was refused when it was planned."""
