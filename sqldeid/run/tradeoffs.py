"""`tradeoff`: what k and the suppression limit cost, without releasing anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqldeid import tables
from sqldeid.arguments import one_of
from sqldeid.engine.opening import Database, in_memory, is_connection, path_of
from sqldeid.job import Job
from sqldeid.run.calls import heard_by, taken
from sqldeid.run.foreign import refuse_missing_parts
from sqldeid.run.held import OF_THE_PAIR, hold
from sqldeid.run.places import Options, naming_job, naming_release, reading
from sqldeid.run.wings import gather, tables_among
from sqldeid.tables import Asked, Listener
from sqldeid.traded import Tradeoff

if TYPE_CHECKING:
    from sqldeid.engine.frames import Frames


def tradeoff(
    job: Job,
    database: Database | Frames,
    asked: Asked,
    *,
    options: Options | None = None,
    listener: Listener | None = None,
) -> dict[str, Tradeoff]:
    """The least loss for every pair of k and suppression limit, by table release; nothing is written.

    Empty where no table release is selected: only they have a lattice.

    Parameters
    ----------
    asked
        The pairs; the job's own k and limit are not among them unless they are named. With `local`, and for releases
        whose method is "local", each is answered by local recoding, too.

    Raises
    ------
    SqldeidError
        As `anonymize`.
    """
    options, listener = taken(job, options), heard_by(listener)
    one_of(Asked, "asked", asked, "sqldeid.Asked(ks, limits)")
    if in_memory(database):
        from sqldeid.run.frames import held

        with held(job, database, options.settings) as connection:
            return tradeoff(job, connection, asked, options=options, listener=listener)
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    if not names:
        return {}
    hold(job, options, names, apart_from=OF_THE_PAIR)
    refuse_missing_parts(job, names, database, "tradeoff")
    if asked.local:
        job = _by_local(job, names)
    with reading(database, path, options.settings, command="tradeoff") as engine, naming_job(job):
        found = {}
        for part in gather(job, names, lambda group: tables.plan_lattices(group, job, engine)):
            with naming_release(part.key):
                found[part.name] = tables.tradeoff(part, engine, asked, listener)
        return found


_READ = ("loss", "weights", "time_limit", "layers")
"""Keys of `search` that local recoding reads."""


def _by_local(job: Job, names: Sequence[str]) -> Job:
    """The job with local recoding for its method, held to the rules that go with it.

    Raises
    ------
    JobError
        If local recoding does not know what the job asks for.
    """
    content = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for name in names:
        table = content["tables"][name]
        kept = {key: value for key, value in table.get("search", {}).items() if key in _READ}
        table["search"] = {**kept, "method": "local"}
    return Job.parse(content, folder=job.folder, name=job.name)
