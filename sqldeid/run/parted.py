"""Table releases by Mondrian in a run: assessed without a lattice."""

from __future__ import annotations

from dataclasses import replace

from sqldeid.engine.base import Engine
from sqldeid.insight import assess as assessing
from sqldeid.job import Job
from sqldeid.publish import published
from sqldeid.result import Risk
from sqldeid.run.places import destination
from sqldeid.sql import identifier
from sqldeid.tables.mondrian import release as partition
from sqldeid.tables.mondrian.criteria import measure_written


def assess_parted(job: Job, name: str, engine: Engine, *, release: bool) -> Risk:
    """Class sizes, criteria and risk of the source as it stands, or of what was released."""
    planned = partition.plan(name, job.tables[name], engine, job.folder)
    relation, columns = planned.source, [cut.source.name for cut in planned.cuts]
    named = {wanted: identifier(source.name) for wanted, source, _ in planned.others}
    if release:
        relation, columns = published(engine, destination(job), name)[0], [cut.name for cut in planned.cuts]
        named = {wanted: identifier(wanted) for wanted in named}
    risk = assessing.assess(relation, columns, engine)
    return replace(risk, criteria=measure_written(planned.criteria, relation, columns, engine, named))
