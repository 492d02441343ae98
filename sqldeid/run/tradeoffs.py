"""`tradeoff`: what k and the suppression limit cost, without releasing anything."""

from __future__ import annotations

from sqldeid import tables
from sqldeid.engine.opening import Database, is_connection, path_of
from sqldeid.job import Job
from sqldeid.result import Tradeoff
from sqldeid.run.foreign import refuse_missing_parts
from sqldeid.run.places import Options, naming_job, naming_release, reading
from sqldeid.run.wings import gather, tables_among
from sqldeid.tables import Asked, Listener


def tradeoff(
    job: Job, database: Database, asked: Asked, *, options: Options | None = None, listener: Listener | None = None
) -> dict[str, Tradeoff]:
    """The least loss for every pair of k and suppression limit, by table release; nothing is written.

    Empty where no table release is selected: only they have a lattice.

    Parameters
    ----------
    asked
        The pairs; the job's own k and limit are not among them unless they are named.

    Raises
    ------
    SqldeidError
        As `anonymize`.
    """
    options = options or Options()
    path = None if is_connection(database) else path_of(database)
    names = tables_among(job, options.only)
    if not names:
        return {}
    refuse_missing_parts(job, names, database, "tradeoff")
    with reading(database, path, options.settings, command="tradeoff") as engine, naming_job(job):
        found = {}
        for part in gather(job, names, lambda group: tables.plan_lattice(group, job, engine)):
            with naming_release(part.key):
                found[part.name] = tables.tradeoff(part, engine, asked, listener or Listener())
        return found
