"""Jobs on data frames and Arrow tables: they are copied into an in-memory DuckDB that lives as long as the call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from sqldeid.engine.frames import Frames, hold, is_frame, read
from sqldeid.engine.opening import Database, close_access, open_connection
from sqldeid.engine.settings import Settings
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.job.rules import SECTIONS
from sqldeid.result import Result
from sqldeid.sql import parse_table


@contextmanager
def held(job: Job, frames: Frames, settings: Settings) -> Iterator[Database]:
    """A database of a caller's frames, closed to files and network unless releases are written to one."""
    named: Mapping[str, Any] = {_sole_source(job): frames} if is_frame(frames) else frames  # type: ignore[assignment]
    with closing(hold(named, settings)) as connection:
        if job.release.into is None:
            close_access(open_connection(connection), None)
        yield connection


def with_tables(result: Result, job: Job, connection: Any) -> Result:
    """A result with what was released into memory; of what went to a file, with nothing."""
    if job.release.into is not None:
        return result
    tables = {name: read(connection, job.release.schema_name, name) for name in result.releases}
    source = {**result.source, "database": "frames in memory"}
    return replace(result, tables_in_memory=tables, source=source)


def _sole_source(job: Job) -> str:
    """The table that one frame stands for.

    Raises
    ------
    JobError
        If the job has no source, several, or one that no frame can be.
    """
    parts = [part for section in SECTIONS for part in getattr(job, section, {}).values()]
    sources = {part.source.casefold() if isinstance(part.source, str) else "" for part in parts}
    how = 'give frames by the names of their tables: {"people": frame}'
    if "" in sources:
        raise JobError(f"{job.name}: a source is a query, whose tables one frame cannot be; {how}")
    if len(sources) != 1:
        raise JobError(f"{job.name}: one frame cannot be {len(sources)} sources; {how}")
    *place, name = parse_table(parts[0].source)
    if [part.casefold() for part in place] not in ([], ["main"]):
        raise JobError(f"{job.name}: the source {parts[0].source} is in another schema than main; write main.{name}")
    return name
