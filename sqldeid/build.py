"""Parts of a job to build one in Python: each has the keys of its section of the job file, with their types.

>>> from sqldeid.build import Column, Privacy, Table
>>> job = sqldeid.Job.parse({"tables": {"census": Table(source="adult", columns={...}, privacy=Privacy(k=5))}})
>>> job.to_toml()

The same is checked as of a file: of each part when it is made, of all together by `Job.parse`. What is wrong is a
`JobError` that names the keys. A mapping may stand for any part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqldeid.job.about import About
    from sqldeid.job.events import Clusters, Events, EventsPrivacy, Generate
    from sqldeid.job.fields import HierarchyRule, Query
    from sqldeid.job.parts import Column, EpsilonSafeSettings, Release, Search, Table
    from sqldeid.job.privacy import (
        AtRisk,
        BetaLikeness,
        DeltaDisclosure,
        DeltaPresence,
        Game,
        LDiversity,
        MConcealing,
        Population,
        Privacy,
        TCloseness,
    )
    from sqldeid.job.series import Cohort, Durations, Labels, Perturb, Series, SeriesPrivacy, Variable
    from sqldeid.job.stack import Stack

_HOMES = {
    name: f"sqldeid.job.{home}"
    for home, names in {
        "about": "About",
        "events": "Clusters Events EventsPrivacy Generate",
        "fields": "HierarchyRule Query",
        "parts": "Column EpsilonSafeSettings Release Search Table",
        "privacy": "AtRisk BetaLikeness DeltaDisclosure DeltaPresence Game LDiversity MConcealing Population Privacy "
        "TCloseness",
        "series": "Cohort Durations Labels Perturb Series SeriesPrivacy Variable",
        "stack": "Stack",
    }.items()
    for name in names.split()
}
__all__ = [
    "About",
    "AtRisk",
    "BetaLikeness",
    "Clusters",
    "Cohort",
    "Column",
    "DeltaDisclosure",
    "DeltaPresence",
    "Durations",
    "EpsilonSafeSettings",
    "Events",
    "EventsPrivacy",
    "Game",
    "Generate",
    "HierarchyRule",
    "LDiversity",
    "Labels",
    "MConcealing",
    "Perturb",
    "Population",
    "Privacy",
    "Query",
    "Release",
    "Search",
    "Series",
    "SeriesPrivacy",
    "Stack",
    "TCloseness",
    "Table",
    "Variable",
]


class _Part:
    """A part as it is called: what pydantic finds wrong with it becomes a `JobError`."""

    def __init__(self, part: Any) -> None:
        self.part = part
        self.__name__, self.__doc__, self.__signature__ = part.__name__, part.__doc__, part.__signature__

    def __call__(self, **given: object) -> Any:
        from sqldeid.job.job import make_part

        aliases = {name: field.alias or name for name, field in self.part.model_fields.items()}
        return make_part(self.part, {aliases.get(name, name): value for name, value in given.items()})

    def __repr__(self) -> str:
        return f"<sqldeid.build.{self.__name__}>"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _Part(getattr(import_module(_HOMES[name]), name))
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
