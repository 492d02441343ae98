"""What a plan of several releases is: a list of plans, which a notebook shows as `--plan` does."""

from __future__ import annotations

from collections.abc import Iterable

from sqldeid.job import Job
from sqldeid.run.places import destination
from sqldeid.run.wings import Plan, wing_of
from sqldeid.stages import Explained, Target


class Plans(list[Plan]):
    """A plan for each release, in the order in which they are made.

    Parameters
    ----------
    dialect
        The engine on which they would run.
    """

    def __init__(self, plans: Iterable[Plan], job: Job, dialect: str) -> None:
        super().__init__(plans)
        self.job, self.dialect = job, dialect

    @property
    def explained(self) -> tuple[Explained, ...]:
        """Each plan in words, with its statements; no statement is run."""
        return tuple(explain_for(planned, self.job, self.dialect) for planned in self)

    def __repr__(self) -> str:
        """The releases by name: a notebook keeps this text unseen beside what it shows."""
        return f"<Plans of {', '.join(part.name for told in self.explained for part in told.parts)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows; no row was read for it."""
        from sqldeid.notebook import html_of_plan

        return html_of_plan(self.explained)


def explain_for(planned: Plan, job: Job, dialect: str) -> Explained:
    """What is told of a plan on an engine."""
    return wing_of(planned).explain(planned, Target(job.release.kind, dialect, destination(job).shown))
