"""What a plan of several releases is: a list of plans, which a notebook shows as `--plan` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqldeid.job import Job
from sqldeid.run.dates_before import in_words
from sqldeid.run.places import destination
from sqldeid.run.wings import Plan, wing_of
from sqldeid.stages import Explained, Target


class Plans(list[Plan]):
    """A plan for each release, in the order in which they are made.

    Parameters
    ----------
    dialect
        The engine on which they would run.
    looked
        By release what a run will look at beside shifted dates.
    """

    def __init__(
        self, plans: Iterable[Plan], job: Job, dialect: str, looked: Mapping[str, Mapping[str, Sequence[str]]]
    ) -> None:
        super().__init__(plans)
        self.job, self.dialect, self.looked = job, dialect, looked

    @property
    def explained(self) -> tuple[Explained, ...]:
        """Each plan in words, with its statements; no statement is run."""
        return tuple(
            _with_dates(explain_for(planned, self.job, self.dialect), self.looked.get(planned.name)) for planned in self
        )

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


def _with_dates(told: Explained, looked: Mapping[str, Sequence[str]] | None) -> Explained:
    """With what a run will look at beside shifted dates."""
    if looked is None:
        return told
    *before, last = told.parts
    last = replace(last, facts=(*last.facts, ("Dates", in_words(looked))))
    return replace(told, parts=(*before, last), content={**told.content, "shifted_dates": looked})
