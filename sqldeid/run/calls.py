"""What a call of the Python API is given beside its job: options, a listener, settings; else the default ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqldeid.arguments import one_of, refused
from sqldeid.engine.settings import Settings
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.run.places import Options

if TYPE_CHECKING:
    from sqldeid.tables import Listener


def taken(job: Job, options: Options | None) -> Options:
    """The options of a call, the default ones where none are given.

    Raises
    ------
    JobError
        If these are no options, or the job is none, or no rule has looked at it as it is.
    """
    one_of(Job, "job", job, "sqldeid.Job.load(path) or Job.parse({…})")
    if not job.is_as_read:
        raise JobError.at(
            "job",
            "was made or changed past Job.load and Job.parse, so no rule has looked at it; read its mapping instead: "
            "sqldeid.Job.parse({**job.model_dump(by_alias=True, exclude_unset=True), …}, folder=job.folder)",
        )
    return Options() if options is None else one_of(Options, "options", options, "sqldeid.Options(…)")


def heard_by(listener: Listener | None) -> Listener:
    """Who listens to a call; nobody where no one is given.

    Raises
    ------
    JobError
        If it is nobody who can listen.
    """
    if listener is None:
        from sqldeid.tables import Listener

        return Listener()
    if not all(callable(getattr(listener, name, None)) for name in ("step", "search")):
        raise refused("listener", listener, "sqldeid.Listener(step=…, search=…)")
    return listener


def settings_of(settings: Settings | None) -> Settings:
    """The settings of a call, the default ones where none are given.

    Raises
    ------
    JobError
        If these are no settings.
    """
    return Settings() if settings is None else one_of(Settings, "settings", settings, "sqldeid.Settings(…)")
